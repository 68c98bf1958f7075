"""Attributes as Python: parameters of a function, and the statements that check them."""

from __future__ import annotations

from dataclasses import dataclass

from opgen.bindings.python.scope import OpScope, elements
from opgen.bindings.python.text import literal
from opgen.diagnostics import InternalError
from opgen.spec.model.model import Attr, AttrValue, OpSpec


@dataclass(frozen=True)
class ParameterView:
    """A parameter of a generated function: its name, annotation, default (source text; None if it must be given)."""

    name: str
    annotation: str
    default: str | None = None

    @property
    def declaration(self) -> str:
        return f"{self.name}: {self.annotation}" + ("" if self.default is None else f" = {self.default}")


def parameters(op: OpSpec, scope: OpScope) -> tuple[ParameterView, ...]:
    """Return the parameters of the op's function, in the order of its signature.

    Once one has a default, all that follow have one: `None`, which the check refuses, where the spec has none.
    """
    views: list[ParameterView] = []
    for argument in op.signature:
        view = _parameter(op, scope, argument)
        if view.default is None and any(v.default is not None for v in views):
            view = ParameterView(view.name, f"{view.annotation} | None", "None")
        views.append(view)
    return tuple(views)


def _parameter(op: OpSpec, scope: OpScope, argument: str) -> ParameterView:
    if argument == "name" and all(a.name != "name" for a in op.attrs):
        return ParameterView("name", "str | None", "None")
    name = scope.arguments[argument]
    attr = next((a for a in op.attrs if argument in (a.name, a.alias)), None)
    if attr is None:
        return ParameterView(name, "TensorLike")
    if attr.counter:
        return ParameterView(name, "int | None", "None")
    annotation = annotation_of(op, attr)
    if attr.alias is not None:
        return ParameterView(name, f"{annotation} | None", "None")
    if not _has_default(attr):
        return ParameterView(name, annotation)
    default = () if attr.optional and not attr.has_default else attr.default
    return ParameterView(name, f"{annotation} | None", literal(default))


def _has_default(attr: Attr) -> bool:
    return attr.has_default or attr.optional


def annotation_of(op: OpSpec, attr: Attr) -> str:
    """Return the values of an attribute as a type."""
    match attr.kind:
        case "enum" | "layout":
            words = f"Literal[{', '.join(literal(v) for v in plain_words(attr))}]"
            if attr.payload is None:
                return words
            pairs = len(op.attr(attr.payload[1]).shape) > 1
            return f"{words} | {'Sequence[Integers]' if pairs else 'Integers'}"
        case "int":
            return "Integers" if attr.shape else "int"
        case "float" if attr.shape:
            return "Numbers"
    return attr.kind


def plain_words(attr: Attr) -> tuple[str, ...]:
    """Return the words that a caller may write (the one that means a list is excluded)."""
    return tuple(v for v in attr.values if attr.payload is None or v != attr.payload[0])


def attribute_check(op: OpSpec, scope: OpScope, attr: Attr) -> str | None:
    """Return the statement that makes a plain value of an attribute; None for one that another carries."""
    if attr.carried_by is not None:
        return None
    name = scope.arguments[attr.name]
    if attr.payload is not None:
        return _payload_check(op, scope, attr)
    given = f"{literal(attr.name)}, {name}"
    if attr.alias is not None:
        given = f"{literal(attr.name)}, check.alias({given}, {literal(attr.alias)}, {scope.arguments[attr.alias]})"
    return f"{name} = check.{_method(attr)}({', '.join([given, *_options(attr)])})"


def _method(attr: Attr) -> str:
    match attr.kind:
        case "enum" | "layout":
            return "word"
        case "int":
            return "integers" if attr.shape else "integer"
        case "float":
            return "numbers" if attr.shape else "number"
        case "bool":
            return "boolean"
    raise InternalError(f"attribute kind {attr.kind}")


def _options(attr: Attr) -> list[str]:
    """Return the arguments of a check besides the name and the value."""
    options: list[str] = []
    if attr.kind in ("enum", "layout"):
        options.append(tuple_literal(attr.values))
    elif attr.shape:
        options.append(str(elements(attr)))
    options += _bounds(attr)
    if attr.optional:
        options.append("optional=True")
    if _has_default(attr):
        default = attr.default if attr.has_default else ()
        options.append(f"default={tuple_literal(default) if isinstance(default, tuple) else literal(default)}")
    return options


def _bounds(attr: Attr) -> list[str]:
    bounds = (("minimum", attr.minimum), ("maximum", attr.maximum))
    told = [f"{word}={value}" for word, value in bounds if value is not None]
    return [*told, "wide=True"] if attr.wide else told


def _payload_check(op: OpSpec, scope: OpScope, attr: Attr) -> str:
    if attr.payload is None:
        raise InternalError(f"attribute {attr.name} carries no list")
    word, carried_name = attr.payload
    carried = op.attr(carried_name)
    options = [tuple_literal(plain_words(attr)), literal(word), tuple_literal(carried.shape), *_bounds(carried)]
    name = scope.arguments[attr.name]
    targets = f"{name}, {scope.arguments[carried_name]}"
    return f"{targets} = check.word_or_list({', '.join([literal(attr.name), name, *options])})"


def tuple_literal(values: tuple[object, ...]) -> str:
    """Return Python source for a tuple of plain values."""
    inside = ", ".join(literal(v) for v in values)
    return f"({inside},)" if len(values) == 1 else f"({inside})"


def element_names(scope: OpScope, attr: Attr, used: list[AttrValue]) -> str | None:
    """Return the statement that unpacks a list in a layout's order, for its used elements; None if none is used."""
    if attr.layout is None or not attr.shape:
        return None
    order = scope.op.attr(attr.layout).values[0]
    wanted = {e.element[0] for e in used if e.attr == attr.name}
    if not wanted:
        return None
    targets = ", ".join(scope.derived(attr.name, x) if i in wanted else "_" for i, x in enumerate(order))
    values = scope.arguments[attr.name]
    if attr.optional:
        values = f"padded({values}, {elements(attr)})"
    if len(attr.shape) > 1:
        values = f"rows({values}, {attr.shape[1]})"
    return f"{targets} = logical({values}, {scope.arguments[attr.layout]}, {literal(order)})"
