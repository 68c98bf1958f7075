"""The header as its template needs it: every name chosen, every text escaped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from opgen.bindings.c.names import OpNames, spellings
from opgen.bindings.c.text import block_comment, one_line, paragraphs, wrapped
from opgen.bindings.c.values import elements, plain_words
from opgen.bindings.formula import Formula
from opgen.spec.model import Attr, Module, OpSpec, Reduce, Require, ShapeLet, Sizes, Tensor
from opgen.spec.walk import subexpressions

ABI = 1
"""The version of the C ABI: it changes with every change that a compiled caller would notice."""
RANK = 8
"""The dimensions that a shape has room for, unless an op needs more."""
_TEXT = 92


@dataclass(frozen=True)
class FieldView:
    """A field of a struct of attributes: its declaration, and the lines that explain it."""

    declaration: str
    doc: tuple[str, ...]


@dataclass(frozen=True)
class OpHeader:
    """An op's declarations.  `inputs` and `outputs` are the parameters of its functions."""

    name: str
    names: OpNames
    doc: str
    fields: tuple[FieldView, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    shapes: tuple[str, ...]


@dataclass(frozen=True)
class HeaderView:
    """`prefix` begins every name, `macro` is the same in capitals; `source` names the spec."""

    prefix: str
    macro: str
    source: str
    doc: str
    abi: int
    rank: int
    ops: tuple[OpHeader, ...]


def header_view(module: Module, prefix: str, source: str) -> HeaderView:
    """The view of a module's header."""
    ranks = [o.rank for op in module.ops for o in (*op.outputs, *op.tensors)]
    return HeaderView(
        prefix=prefix,
        macro=prefix.upper(),
        source=one_line(source),
        doc="".join(f" * {line}".rstrip() + "\n" for line in paragraphs(module.doc or module.name, _TEXT)),
        abi=ABI,
        rank=max([RANK, *ranks]),
        ops=tuple(_op(op, prefix) for op in module.ops),
    )


def _op(op: OpSpec, prefix: str) -> OpHeader:
    names = OpNames(op, prefix)
    return OpHeader(
        name=op.name,
        names=names,
        doc=block_comment(_documentation(op, names)),
        fields=tuple(_fields(op, names)),
        inputs=tuple(f"const {prefix}_tensor *{n}" for n in names.inputs.values()),
        outputs=tuple(f"const {prefix}_tensor *{n}" for n in names.outputs.values()),
        shapes=tuple(f"{prefix}_shape *{n}" for n in names.outputs.values()),
    )


# Attributes -----------------------------------------------------------------------------------------


def _fields(op: OpSpec, names: OpNames) -> Iterator[FieldView]:
    for attr in op.attrs:
        for name in spellings(attr):
            doc = _attribute_doc(op, attr) if name == attr.name else f"Another name for `{attr.name}`: not beside it."
            lines = tuple(wrapped(doc, _TEXT, hanging=""))
            field = names.fields[name]
            if attr.shape:
                element = "double" if attr.kind == "float" else "int64_t"
                yield FieldView(f"const {element} *{field};", lines)
                yield FieldView(f"int32_t {names.lengths[name]};", ())
            else:
                yield FieldView(_scalar_declaration(attr, field), lines)


def _scalar_declaration(attr: Attr, field: str) -> str:
    if attr.kind in ("enum", "layout"):
        return f"const char *{field};"
    return {"int": f"int64_t {field};", "float": f"double {field};", "bool": f"bool {field};"}[attr.kind]


def _attribute_doc(op: OpSpec, attr: Attr) -> str:
    default = ""
    if attr.has_default and attr.default is not None:
        shown = list(attr.default) if isinstance(attr.default, tuple) else attr.default
        default = f" Default: {str(shown).lower() if isinstance(shown, bool) else shown}."
    deprecated = "" if attr.deprecated is None else f" Deprecated: {attr.deprecated}"
    return f"{_values(op, attr)} {attr.doc}{default}{deprecated}"


def _values(op: OpSpec, attr: Attr) -> str:
    if attr.kind in ("enum", "layout"):
        words = ", ".join(f'"{w}"' for w in plain_words(attr))
        instead = "" if attr.payload is None else f", or NULL and a list in `{attr.payload[1]}`"
        return f"One of {words}{instead}."
    bounds = [f"at least {attr.minimum}"] if attr.minimum is not None else []
    bounds += [f"at most {attr.maximum}"] if attr.maximum is not None else []
    bound = f", {' and '.join(bounds)}" if bounds else ""
    if attr.shape:
        kind = "numbers" if attr.kind == "float" else "integers"
        return f"{elements(attr)} {kind}{bound}{', or none' if attr.optional else ''}."
    return {"int": f"An integer{bound}.", "float": f"A number{bound}.", "bool": "true or false."}[attr.kind]


# Documentation --------------------------------------------------------------------------------------


def _documentation(op: OpSpec, names: OpNames) -> Iterator[str]:
    formula = Formula(op)
    yield from paragraphs(op.doc or op.name, _TEXT)
    yield ""
    for given in op.inputs:
        yield from wrapped(f"@param {names.inputs[given.name]} {_input(formula, given)}", _TEXT)
    yield f"@param attrs The attributes; NULL: all at their defaults (see {names.attrs})."
    for output in op.outputs:
        text = f"{_tensor(formula, output)} {output.doc} Memory of the caller's, apart from the inputs'."
        yield from wrapped(f"@param {names.outputs[output.name]} {text}", _TEXT)
    for v in op.type_variables:
        yield from wrapped(f"Type {v.name}: {', '.join(t.name for t in v.allowed)}.", _TEXT)
    yield ""
    yield "Formula:"
    yield from _formulas(op, formula)
    requirements = [c for c in op.checks if isinstance(c, Require)]
    if requirements:
        yield ""
        yield "Required:"
    for check in requirements:
        text = "".join(p if isinstance(p, str) else f"{{{formula.text(p)}}}" for p in check.expected)
        yield from wrapped(f"`{check.argument}`: expected {text}.", _TEXT, "    ")


def _input(formula: Formula, given: Tensor | Sizes) -> str:
    if isinstance(given, Tensor):
        return f"{_tensor(formula, given)} {given.doc}" + (" Only its shape counts." if given.shape_only else "")
    forms = (f"[{', '.join(formula.dimension(d) for d in form)}]" for form in given.forms)
    return f"A vector of int32 or int64 whose values are {' or '.join(forms)}. {given.doc}"


def _tensor(formula: Formula, t: Tensor) -> str:
    return formula.tensor(t) + (f" in the order of `{t.layout}`." if t.layout is not None else ".")


def _formulas(op: OpSpec, formula: Formula) -> Iterator[str]:
    for check in op.checks:
        if isinstance(check, ShapeLet):
            yield from wrapped(formula.let(check), _TEXT, "    ")
    for d in op.definitions:
        ranges = [r for e in subexpressions(d.value) if isinstance(e, Reduce) for r in e.indices]
        bounds = f" for {formula.ranges(tuple(dict.fromkeys(ranges)))}" if ranges else ""
        yield from wrapped(f"{formula.definition(d)}{bounds}", _TEXT, "    ")
