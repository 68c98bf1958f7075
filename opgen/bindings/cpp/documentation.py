"""The comments of a generated class, in the order of TensorFlow's: purpose, arguments, attributes, results."""

from __future__ import annotations

from collections.abc import Iterator

from opgen.bindings.c.names import spellings
from opgen.bindings.c.text import one_line, paragraphs, wrapped
from opgen.bindings.c.values import elements, plain_words
from opgen.bindings.cpp.attributes import optional_attrs, required_attrs
from opgen.bindings.cpp.names import ClassNames
from opgen.bindings.formula import Formula
from opgen.spec.model.model import Attr, Definition, OpSpec, Reduce, Require, ShapeLet, Sizes, Tensor
from opgen.spec.model.walk import subexpressions

_TEXT = 110


def class_comment(op: OpSpec, names: ClassNames) -> tuple[str, ...]:
    """Return the lines of a class's comment."""
    return tuple(_class_comment(op, names))


def function_comment(op: OpSpec, names: ClassNames) -> tuple[str, ...]:
    """Return the lines of a direct function's comment."""
    results = "the result" if len(op.outputs) == 1 else "the results in their order"
    text = f"{op.name} at once, without a graph: {results}, or why there are none. See ops::{names.cls}."
    return tuple(wrapped(text, _TEXT, hanging=""))


def setter_comments(op: OpSpec) -> dict[str, tuple[str, ...]]:
    """Return the lines of each setter's comment, by the attribute's spelling."""
    comments: dict[str, tuple[str, ...]] = {}
    for attr in optional_attrs(op):
        default = default_text(attr)
        defaults = ("", one_line(default)) if default is not None else ()
        comments[attr.name] = (*wrapped(attribute_text(op, attr), _TEXT - 4, hanging=""), *defaults)
        if attr.alias is not None:
            comments[attr.alias] = tuple(wrapped(f"Another name for `{attr.name}`: not beside it.", _TEXT - 4))
    return comments


def _class_comment(op: OpSpec, names: ClassNames) -> Iterator[str]:
    formula = Formula(op)
    yield from paragraphs(op.doc or op.name, _TEXT)
    yield from ("", "Arguments:", "* scope: A Scope object")
    for given in op.inputs:
        yield from _item(names.parameters[given.name], input_text(formula, given))
    for attr in required_attrs(op):
        yield from _item(names.parameters[attr.name], attribute_text(op, attr))
    optional = [s for a in optional_attrs(op) for s in spellings(a)]
    if optional:
        yield from ("", "Optional attributes (see `Attrs`):")
        yield from wrapped(", ".join(names.setters[s] for s in optional) + ".", _TEXT, hanging="")
    yield from ("", "Returns:")
    for output in op.outputs:
        yield from _item(names.outputs[output.name], f"{tensor_text(formula, output)} {output.doc}")
    for v in op.type_variables:
        yield from ("", *wrapped(f"Type {v.name}: {', '.join(t.name for t in v.allowed)}.", _TEXT))
    yield from ("", "Formula:")
    for text in formula_texts(op, formula):
        yield from wrapped(text, _TEXT, "    ")
    requirements = list(requirement_texts(op, formula))
    if requirements:
        yield from ("", "Required:")
    for text in requirements:
        yield from wrapped(text, _TEXT, "    ")


def _item(name: str, text: str) -> list[str]:
    return wrapped(f"* {name}: {text}", _TEXT, hanging="  ")


def input_text(formula: Formula, given: Tensor | Sizes) -> str:
    """Return the description of an input, not escaped."""
    if isinstance(given, Tensor):
        return f"{tensor_text(formula, given)} {given.doc}" + (" Only its shape counts." if given.shape_only else "")
    forms = (f"[{', '.join(formula.dimension(d) for d in form)}]" for form in given.forms)
    return f"An int32 vector {' or '.join(forms)}. {given.doc}"


def tensor_text(formula: Formula, t: Tensor) -> str:
    """Return a tensor's type and shape, not escaped."""
    return formula.tensor(t) + (f" in the order of `{t.layout}`." if t.layout is not None else ".")


def attribute_text(op: OpSpec, attr: Attr) -> str:
    """Return the description of an attribute's possible values, not escaped."""
    deprecated = "" if attr.deprecated is None else f" Deprecated: {attr.deprecated}"
    return f"{_values(op, attr)} {attr.doc}{deprecated}"


def _values(op: OpSpec, attr: Attr) -> str:
    if attr.kind in ("enum", "layout"):
        words = ", ".join(f'"{w}"' for w in plain_words(attr))
        return f"One of {words}" + ("." if attr.payload is None else f", or {_numbers(op.attr(attr.payload[1]))}.")
    if attr.shape:
        text = _numbers(attr)
        return f"{text[0].upper()}{text[1:]}."
    return {"int": f"An integer{_bounds(attr)}.", "float": f"A number{_bounds(attr)}.", "bool": "true or false."}[
        attr.kind
    ]


def _numbers(attr: Attr) -> str:
    kind = "numbers" if attr.kind == "float" else "integers"
    rows = f" ({attr.shape[0]} rows of {attr.shape[1]})" if len(attr.shape) > 1 else ""
    none = ", or none" if attr.optional and attr.carried_by is None else ""
    return f"{elements(attr)} {kind}{rows}{_bounds(attr)}{none}"


def _bounds(attr: Attr) -> str:
    low = "" if attr.minimum is None else f", at least {attr.minimum}"
    return low + ("" if attr.maximum is None else f", at most {attr.maximum}")


def default_text(attr: Attr) -> str | None:
    """Return the description of the default, not escaped; None if there is none."""
    if not attr.has_default or attr.default is None:
        return None
    shown = list(attr.default) if isinstance(attr.default, tuple) else attr.default
    return f'Defaults to "{shown}"' if isinstance(shown, str) else f"Defaults to {str(shown).lower()}"


def formula_texts(op: OpSpec, formula: Formula) -> Iterator[str]:
    """Yield the named integers and definitions of an op, each on a line, not escaped."""
    for check in op.checks:
        if isinstance(check, ShapeLet):
            yield formula.let(check)
    for d in op.definitions:
        yield f"{formula.definition(d)}{_ranges(d, formula)}"


def _ranges(d: Definition, formula: Formula) -> str:
    ranges = [r for e in subexpressions(d.value) if isinstance(e, Reduce) for r in e.indices]
    return f" for {formula.ranges(tuple(dict.fromkeys(ranges)))}" if ranges else ""


def requirement_texts(op: OpSpec, formula: Formula) -> Iterator[str]:
    """Yield the requirements of an op on its arguments, not escaped."""
    for check in op.checks:
        if isinstance(check, Require):
            text = "".join(p if isinstance(p, str) else f"`{formula.text(p)}`" for p in check.expected)
            yield f"`{check.argument}`: expected {text}."
