"""Attributes: from declarations to the model, with their layouts, bounds, defaults and payloads checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from math import prod
from typing import TypeAlias

from opgen.diagnostics import did_you_mean
from opgen.spec.model import model as m
from opgen.spec.model.bounds import bounds, expected_scalar
from opgen.spec.resolve.kinds import number
from opgen.spec.resolve.names import check_name, check_word
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.report import Report

Scalar: TypeAlias = int | float | bool | str

_KINDS: dict[str, m.AttrKind] = {
    "int": "int",
    "int64": "int",
    "float": "float",
    "bool": "bool",
    "enum": "enum",
    "layout": "layout",
}


def build_attrs(report: Report, decls: Sequence[s.AttrDecl]) -> list[m.Attr]:
    """Return the validly declared attributes; every mistake in the others is noted."""
    built = [(decl, _raw(report, decl)) for decl in decls]
    raw = {attr.name: attr for _, attr in built if attr is not None}
    finished = []
    for decl, attr in built:
        if attr is None or raw[attr.name] is not attr:
            continue
        attr = _with_layout(report, decl, attr, raw)
        attr = _with_payload(report, decl, attr, raw)
        finished.append(_with_default(report, decl, attr))
    carriers = {a.payload[1]: a.name for a in finished if a.payload is not None}
    return [dataclasses.replace(a, carried_by=carriers[a.name]) if a.name in carriers else a for a in finished]


def _raw(report: Report, decl: s.AttrDecl) -> m.Attr | None:
    """Return an attribute without the parts that depend on others."""
    kind = _KINDS.get(decl.type.kind.name)
    if kind is None or (kind in ("enum", "layout")) != bool(decl.type.words):
        report.unknown("type of attributes", decl.type.kind.name, decl.type.kind.span, _KINDS)
        return None
    values = _words(report, decl, kind)
    shape = tuple(int(size) if isinstance(size, str) and len(size) < 6 else 0 for size in decl.type.shape)
    if any(not 1 <= size <= 1000 for size in shape) or len(shape) > 2:
        report.add("S030", "a list has one or two dimensions of 1 to 1000 elements", decl.type.span)
        return None
    if shape and kind == "bool":
        report.add("S030", "lists are of int or float", decl.type.span)
        return None
    if decl.alias is not None:
        check_name(report, decl.alias.name, decl.alias.span)
    return m.Attr(
        name=decl.name.name,
        kind=kind,
        shape=shape,
        values=values,
        minimum=_bound(report, decl, decl.minimum),
        maximum=_bound(report, decl, decl.maximum),
        wide=decl.type.kind.name == "int64",
        compatibility=decl.compatibility,
        deprecated=None if decl.deprecated is None else decl.deprecated.value,
        alias=None if decl.alias is None else decl.alias.name,
        counter=decl.counter,
        doc="" if decl.doc is None else decl.doc.value,
        span=decl.span,
    )


def _words(report: Report, decl: s.AttrDecl, kind: m.AttrKind) -> tuple[str, ...]:
    values: list[str] = []
    for word in decl.type.words:
        name = word.name.name
        if name in values:
            report.add("S011", f"'{name}' is listed twice", word.name.span)
            continue
        check_word(report, name, word.name.span)
        if kind == "layout" and len(set(name)) < len(name):
            report.add("S032", f"the layout '{name}' names a dimension twice", word.name.span)
        elif kind == "layout" and values and sorted(values[0]) != sorted(name):
            report.add("S032", f"the layout '{name}' does not have the letters of '{values[0]}'", word.name.span)
        values.append(name)
    return tuple(values)


def _bound(report: Report, decl: s.AttrDecl, tree: s.Constant | None) -> int | None:
    if tree is None:
        return None
    value = number(tree)
    if not isinstance(value, int) or _KINDS.get(decl.type.kind.name) not in ("int", "float"):
        message = (
            "a bound is an integer"
            if _KINDS.get(decl.type.kind.name) in ("int", "float")
            else "only numbers have bounds"
        )
        report.add("S030", message, tree.span)
        return None
    return value


def _with_layout(report: Report, decl: s.AttrDecl, attr: m.Attr, others: dict[str, m.Attr]) -> m.Attr:
    if decl.layout is None:
        return attr
    letters = layout_letters(report, decl.layout, others)
    if letters is None:
        return attr
    if not attr.shape or attr.shape[0] != len(letters):
        message = f"'{attr.name}' must be a list of {len(letters)} to follow '{decl.layout.name}'"
        report.add("S032", message, decl.layout.span)
        return attr
    return dataclasses.replace(attr, layout=decl.layout.name)


def layout_letters(report: Report, name: s.Ident, attrs: dict[str, m.Attr]) -> str | None:
    """Return the letters of a layout attribute; None, with a note, if the attribute does not exist."""
    attr = attrs.get(name.name)
    if attr is None or attr.kind != "layout":
        report.unknown("layout", name.name, name.span, [a.name for a in attrs.values() if a.kind == "layout"])
        return None
    return attr.values[0] if attr.values else None


def _with_payload(report: Report, decl: s.AttrDecl, attr: m.Attr, others: dict[str, m.Attr]) -> m.Attr:
    carried = [w for w in decl.type.words if w.payload is not None]
    for word in carried:
        if word.payload is None:
            continue
        target = others.get(word.payload.name)
        if target is None:
            report.unknown("attribute", word.payload.name, word.payload.span, others)
        elif attr.kind != "enum" or not target.shape or target.kind != "int":
            report.add("S030", "a word of an enumeration may stand for a list of integers only", word.span)
        elif word is not carried[0]:
            report.add("S030", "only one word of an enumeration may stand for a list", word.span)
        else:
            attr = dataclasses.replace(attr, payload=(word.name.name, target.name))
    return attr


# Defaults -----------------------------------------------------------------------------------------


def _with_default(report: Report, decl: s.AttrDecl, attr: m.Attr) -> m.Attr:
    low, high = attr.minimum, attr.maximum
    if low is not None and high is not None and low > high:
        report.add("S030", f"no value is >= {low} and <= {high}", decl.type.span)
        return attr
    if decl.default is None:
        return attr
    if isinstance(decl.default, s.ListValue) and not decl.default.items and attr.shape:
        return dataclasses.replace(attr, has_default=True, default=(), optional=True)
    wrong = why_wrong(decl.default, attr)
    if wrong is not None:
        name = decl.default.name if isinstance(decl.default, s.Named) else ""
        report.add("S031", f"expected {wrong}", decl.default.span, did_you_mean(name, attr.values) if name else None)
        return attr
    return dataclasses.replace(attr, has_default=True, default=literal(decl.default, attr))


def why_wrong(tree: s.Value, attr: m.Attr) -> str | None:
    """Describe the expected value if a literal is not a value of an attribute; return None if it is one."""
    if not attr.shape:
        return None if _scalar(tree, attr) is not None else expected_scalar(attr)
    items = flat(tree)
    if not isinstance(tree, s.ListValue) or len(items) != prod(attr.shape):
        return f"a list of {prod(attr.shape)} values"
    wrong = next((i for i in items if _scalar(i, attr) is None), None)
    return None if wrong is None else f"a list of {prod(attr.shape)}, each {expected_scalar(attr)}"


def literal(tree: s.Value, attr: m.Attr) -> Scalar | tuple[int, ...] | tuple[float, ...]:
    """Return the value of a literal that is valid for an attribute."""
    if not attr.shape:
        found = _scalar(tree, attr)
        return 0 if found is None else found
    scalars = [_scalar(i, attr) for i in flat(tree)]
    if attr.kind == "int":
        return tuple(v for v in scalars if isinstance(v, int))
    return tuple(float(v) for v in scalars if isinstance(v, int | float))


def flat(tree: s.Value) -> list[s.Value]:
    """Return the scalars of a nested list, in order."""
    if isinstance(tree, s.ListValue):
        return [scalar for item in tree.items for scalar in flat(item)]
    return [tree]


def _scalar(tree: s.Value, attr: m.Attr) -> Scalar | None:
    if isinstance(tree, s.Named):
        if attr.kind in ("enum", "layout"):
            return tree.name if tree.name in attr.values else None
        words: dict[str, Scalar] = {}
        if attr.kind == "bool":
            words = {"true": True, "false": False}
        elif attr.kind == "float":
            words = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}
        return words.get(tree.name)
    if not isinstance(tree, s.Constant):
        return None
    value = number(tree)
    if value is None or attr.kind not in ("int", "float") or (attr.kind == "int" and not isinstance(value, int)):
        return None
    low, high = bounds(attr)
    return (float(value) if attr.kind == "float" else value) if low <= value <= high else None
