"""Forms of generic ops that a library is to have: plain ops, each with a name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from opgen import files
from opgen.cli.forms import Form, Given, first_example
from opgen.diagnostics import UserError, did_you_mean
from opgen.spec.model import model as m
from opgen.spec.resolve.names import snake_case, why_no_op
from opgen.spec.syntax import nodes as s

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
RESULTS = "results"
"""Number of results wanted, among the parts of a form; an attribute of this name goes first."""


def forms_of_each(modules: Sequence[m.Module], texts: Iterable[str]) -> list[list[str]]:
    """Return the forms of each module's generic ops.  Raises UserError for a form that no module has."""
    found: list[list[str]] = [[] for _ in modules]
    for text in _lines(texts):
        word = _word(text)
        _generic(modules, text, word)
        for module, forms in zip(modules, found, strict=True):
            if any(word in (g.name, g.function_name) for g in module.generics):
                forms.append(text)
    return found


def with_forms(module: m.Module, texts: Iterable[str]) -> m.Module:
    """Return the module with a plain op for each form, `[NAME=]OP[:INPUT=?,?][:ATTRIBUTE=VALUE][:T=TYPE]...`.

    A text that is a file has one form a line.

    NAME is the plain op's (the generic op's own if not given); an attribute's value in the form is its default.  OP
    alone means the call of its first example.  Raises UserError that begins with the form.
    """
    ops = list(module.ops)
    functions = {f.name: f for f in module.functions}
    for text in _lines(texts):
        op, used = _form(module, text)
        taken = next((o for o in ops if o.name == op.name or o.function_name == op.function_name), None)
        if taken is not None:
            raise UserError(f"--form {text}: there is an op '{taken.name}' already; give another name: NAME={text}")
        ops.append(op)
        functions |= {f.name: f for f in used}
    return replace(module, ops=tuple(ops), functions=tuple(functions.values()))


def _lines(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        path = Path(text)
        for line in files.text(path).splitlines() if path.is_file() else [text]:
            if form := line.partition("#")[0].strip():
                yield form


def _form(module: m.Module, text: str) -> tuple[m.OpSpec, tuple[m.Function, ...]]:
    head, *parts = (part.strip() for part in text.split(":"))
    name, equals, _ = head.rpartition("=")
    generic = _generic([module], text, _word(text))
    called = name if equals else generic.name
    reason = why_no_op(called) if _NAME.fullmatch(called) else f"'{called}' is no name of an op"
    if reason is not None:
        raise UserError(f"--form {text}: {reason}")
    parts = parts or [part for _, part in first_example(generic)]
    try:
        form = Form(generic, given := _given(generic, parts))
        if missing := form.missing():
            raise UserError(f"a form of '{generic.name}' also needs {', '.join(f'{n}=...' for _, n in missing)}")
        made = form.instance(module, given.results)
    except UserError as error:
        raise UserError(f"--form {text}: {error}") from None
    told = {part.partition("=")[0] for part in parts}
    attrs = tuple(replace(a, has_default=True, default=made.attributes[a.name]) if a.name in told else a
                  for a in made.op.attrs)  # fmt: skip
    kept = {a.name for a in attrs} | {i.name for i in made.op.inputs}
    signature = tuple(n for n in made.op.signature if n in kept)
    doc = f"{made.op.doc}\n\nThe form of {generic.name} for {', '.join(parts)}."
    op = replace(made.op, name=called, function_name=snake_case(called), doc=doc, attrs=attrs, signature=signature)
    return op, made.functions


def _word(text: str) -> str:
    """Return the generic op that a form names."""
    return text.partition(":")[0].strip().rpartition("=")[2]


def _generic(modules: Sequence[m.Module], text: str, word: str) -> m.GenericOp:
    known = {n: g for module in modules for g in module.generics for n in (g.function_name, g.name)}
    if word in known:
        return known[word]
    if any(word in (o.name, o.function_name) for module in modules for o in module.ops):
        raise UserError(f"--form {text}: '{word}' is not generic: it is built as it is")
    hint = did_you_mean(word, known)
    raise UserError(f"--form {text}: no such generic op '{word}'" + (f"; {hint}" if hint else ""))


def _given(op: m.GenericOp, parts: Iterable[str]) -> Given:
    tensors = {i.name.name for i in op.inputs if isinstance(i, s.TensorDecl | s.SeveralDecl)}
    statics = {i.name.name for i in op.inputs} - tensors
    attrs = {a.name.name for a in op.attrs}
    types = {i.name.name for i in op.decl.items if isinstance(i, s.TypeDecl)}
    groups: dict[str, list[str]] = {"dtypes": [], "shapes": [], "sizes": [], "attrs": []}
    results = None
    for part in parts:
        name, _, value = part.partition("=")
        if name == RESULTS and name not in attrs:
            if not value.isdecimal() or int(value) < 1:
                raise UserError(f"{part}: expected a number of results")
            results = int(value)
            continue
        kind = "shapes" if name in tensors else "sizes" if name in statics else "dtypes" if name in types else "attrs"
        groups[kind].append(part)
    return Given(**{kind: tuple(found) for kind, found in groups.items()}, results=results)
