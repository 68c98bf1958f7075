"""The docstring of a generated function: the spec's text about an op, in one order for all ops."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from opgen.bindings.formula import Formula
from opgen.bindings.python.attributes import plain_words
from opgen.bindings.python.scope import OpScope
from opgen.bindings.python.text import literal, paragraphs, wrapped
from opgen.bindings.signatures import calls, form_notes, other_names
from opgen.spec.model.model import Attr, Example, ExampleValue, OpSpec, Reduce, Require, ShapeLet, Sizes, Tensor
from opgen.spec.model.walk import subexpressions

TEXT = 112
"""The width of a docstring's text; with four columns of indentation it stays within the lines of the module."""


def op_docstring(op: OpSpec, scope: OpScope, function: str) -> str:
    """Return the text of an op's docstring, unescaped."""
    formula = Formula(op)
    summary, rest = summary_and_rest(op.doc or op.name)
    lines = [summary, *(["", *paragraphs(rest, TEXT)] if rest else []), "", "Args:"]
    for argument in op.signature:
        lines += _item(scope.arguments.get(argument, argument), _argument(op, formula, argument))
    for other, argument in other_names(op).items():
        lines += _item(other, f"Another name for `{argument}`.")
    lines += _item("out", _OUT if len(op.outputs) == 1 else f"A tuple of {len(op.outputs)} arrays. {_OUT}")
    lines += _signatures(op)
    lines += ["", "Returns:"]
    for output in op.outputs:
        lines += _item(output.name, f"{_tensor(formula, output)} {output.doc}")
    if op.type_variables:
        lines += ["", "Types:"]
        for v in op.type_variables:
            lines += _item(v.name, ", ".join(t.name for t in v.allowed))
    lines += ["", "Formula:", *_formulas(op, formula)]
    lines += ["", "Raises:", *_errors(op, formula)]
    for example in op.examples:
        lines += ["", *_example(op, scope, function, example)]
    return "\n".join(lines)


def _signatures(op: OpSpec) -> Iterator[str]:
    """Yield a table of the calls that the function takes, if these are several."""
    rows = list(calls(op))
    if rows:
        yield from ("", "Signatures (a call that fits several means the same in each, or is refused):")
        for label, call in rows:
            yield from wrapped(f"{label}: {call}", TEXT, "    ")


_OUT = (
    "Where to write the result: a C-contiguous writeable numpy array of its shape and type, or a tensor of another "
    "library that lends such memory by DLPack; it shares no memory with the inputs."
)


def summary_and_rest(doc: str) -> tuple[str, str]:
    """Return the first sentence (or paragraph) on a line, and the text after it."""
    first, _, rest = doc.strip().partition("\n\n")
    first = " ".join(first.split())
    if len(first) <= TEXT:
        return first, rest
    sentence = re.match(r".*?[.!?](?=\s)", first)
    if sentence is None or len(sentence[0]) > TEXT:
        return first, rest
    return sentence[0], f"{first[sentence.end() :].strip()}\n\n{rest}".strip()


def _item(name: str, text: str) -> list[str]:
    return wrapped(f"{name}: {text}", TEXT, "    ")


def _argument(op: OpSpec, formula: Formula, argument: str) -> str:
    given = next((i for i in op.inputs if i.name == argument), None)
    if isinstance(given, Tensor):
        return f"{_tensor(formula, given)} {given.doc}" + (" Only its shape counts." if given.shape_only else "")
    if isinstance(given, Sizes):
        forms = (f"[{', '.join(formula.dimension(d) for d in form)}]" for form in given.forms)
        return f"integers {' or '.join(forms)}. {given.doc}"
    for attr in op.attrs:
        if argument == attr.name:
            return f"{_values(op, attr)} {attr.doc}{_default(attr)}{_notes(attr)}{form_notes(op, argument)}"
        if argument == attr.alias:
            return f"Another name for `{attr.name}`."
    return "A name for the call; accepted, without effect."


def _tensor(formula: Formula, t: Tensor) -> str:
    return formula.tensor(t) + (f" in the order of `{t.layout}`." if t.layout is not None else ".")


def _values(op: OpSpec, attr: Attr) -> str:
    """Return the description of an attribute's possible values."""
    if attr.kind in ("enum", "layout"):
        words = ", ".join(literal(w) for w in plain_words(attr))
        if attr.payload is None:
            return f"One of {words}."
        return f"One of {words}, or {_list(op.attr(attr.payload[1]))}."
    if attr.shape:
        text = _list(attr)
        return f"{text[0].upper()}{text[1:]}."
    return {"int": f"An integer{_bounds(attr)}.", "float": "A number.", "bool": "True or False."}[attr.kind]


def _list(attr: Attr) -> str:
    if attr.carried_by is not None and len(attr.shape) > 1:
        return f"{attr.shape[0]} pairs of integers{_bounds(attr)}"
    count = 1
    for n in attr.shape:
        count *= n
    what = "numbers" if attr.kind == "float" else "integers"
    return f"{count} {what}{_bounds(attr)}{', or none' if attr.optional else ''}"


def _bounds(attr: Attr) -> str:
    low = "" if attr.minimum is None else f", at least {attr.minimum}"
    return low + ("" if attr.maximum is None else f", at most {attr.maximum}")


def _default(attr: Attr) -> str:
    if attr.counter:
        return " It is worked out of the elements if it is not given, by an op of its own that runs first."
    if attr.has_default and attr.default not in (None, ()):
        return f" The default is {literal(attr.default)}."
    return ""


def _notes(attr: Attr) -> str:
    deprecated = "" if attr.deprecated is None else f" Deprecated: {attr.deprecated}"
    return deprecated + ("" if attr.alias is None else f" Not beside `{attr.alias}`.")


def _formulas(op: OpSpec, formula: Formula) -> Iterator[str]:
    """Yield the named integers and the mathematics, in the spec's notation."""
    for check in op.checks:
        if isinstance(check, ShapeLet):
            yield from wrapped(formula.let(check), TEXT, "    ")
    for d in op.definitions:
        ranges = [r for e in subexpressions(d.value) if isinstance(e, Reduce) for r in e.indices]
        bounds = f" for {formula.ranges(tuple(dict.fromkeys(ranges)))}" if ranges else ""
        yield from wrapped(f"{formula.definition(d)}{bounds}", TEXT, "    ")


def _errors(op: OpSpec, formula: Formula) -> Iterator[str]:
    yield from _item("ArgumentTypeError", "An argument of the wrong kind, or a tensor of the wrong scalar type.")
    yield from _item("ArgumentValueError", "A value out of range, sizes that do not fit together, or not as follows.")
    for check in op.checks:
        if isinstance(check, Require):
            expected = "".join(p if isinstance(p, str) else f"`{formula.text(p)}`" for p in check.expected)
            yield from wrapped(f"`{check.argument}`: expected {expected}.", TEXT, "        ")
    yield from _item("ArgumentMemoryError", "A result too large for this machine.")


def _example(op: OpSpec, scope: OpScope, function: str, example: Example) -> Iterator[str]:
    """Yield a doctest.  Nested lists are float32 tensors, so the results are floats where the type allows it."""
    values = dict(example.values)
    given = [a for a in op.signature if a in values]
    arguments = ", ".join(f"{scope.arguments[a]}={literal(values[a])}" for a in given)
    variable = op.type_variable(op.outputs[0].dtype)
    as_float = variable is not None and any(t.is_float for t in variable.allowed)
    yield from wrapped(f"Example, {example.title}:", TEXT, hanging="")
    yield f"    >>> {function}({arguments}).tolist()"
    yield f"    {literal(_shown(values[op.outputs[0].name], as_float))}"


def _shown(value: ExampleValue, as_float: bool) -> ExampleValue:
    if isinstance(value, tuple):
        return tuple(_shown(v, as_float) for v in value)
    if as_float and isinstance(value, int | float):
        return float(np.float32(value))
    return value
