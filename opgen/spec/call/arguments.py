"""Attribute values from a caller: checked, completed with defaults, brought into logical order."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from math import prod
from typing import SupportsFloat, SupportsIndex, TypeAlias

from opgen.diagnostics import UserError, did_you_mean
from opgen.spec.call.environment import AttrStored, Value
from opgen.spec.model import model as m
from opgen.spec.model.bounds import bounds, expected_scalar

_LONG = 80
"""Maximum number of characters of a value in a message."""
_DEEP = 4
"""Depth to which lists are examined; no valid list nests deeper."""

AttrArgument: TypeAlias = "int | float | bool | str | Sequence[AttrArgument] | None"


class CallError(UserError, ValueError):
    """Error for a call that an op refuses: the argument, the expected value, the given value."""

    def __init__(self, op: str, argument: str, expected: str, given: str) -> None:
        self.op, self.argument, self.expected, self.given = op, argument, expected, given
        super().__init__(f"{op}: argument '{argument}': expected {expected}, given {given}")


class CallTypeError(CallError, TypeError):
    """CallError for an argument of the wrong type."""


def logical_axes(op: m.OpSpec, layout: str | None, words: Mapping[str, AttrStored], rank: int) -> tuple[int, ...]:
    """Return the position of each logical dimension in the caller's order."""
    if layout is None:
        return tuple(range(rank))
    word = words[layout]
    return tuple(str(word).index(letter) for letter in op.attr(layout).values[0])


def settle_attrs(
    op: m.OpSpec, given: Mapping[str, AttrArgument]
) -> tuple[dict[str, AttrStored], dict[str, AttrArgument]]:
    """Return every attribute's value (lists flat, in logical order), and the caller's raw values for messages.

    Raises CallError for an unknown, missing or illegal attribute.
    """
    physical, raw = placed_attrs(op, given)
    words: dict[str, AttrStored] = {a.name: physical[a.name] for a in op.attrs if a.kind == "layout"}
    return {a.name: _in_order(op, a, physical[a.name], words) for a in op.attrs}, raw


def placed_attrs(
    op: m.OpSpec, given: Mapping[str, AttrArgument]
) -> tuple[dict[str, AttrStored], dict[str, AttrArgument]]:
    """Return the same as `settle_attrs`, with lists in the caller's order."""
    raw = _by_name(op, given)
    physical = {a.name: _settled(op.name, a, raw[a.name]) for a in op.attrs}
    for attr in op.attrs:
        if attr.payload is not None:
            _take_payload(op, attr, raw, physical)
    return physical, raw


def _by_name(op: m.OpSpec, given: Mapping[str, AttrArgument]) -> dict[str, AttrArgument]:
    """Return the given value of each attribute, or None; aliases are resolved."""
    aliases = {a.alias: a.name for a in op.attrs if a.alias is not None}
    raw: dict[str, AttrArgument] = {a.name: None for a in op.attrs}
    for name, value in given.items():
        target = aliases.get(name, name)
        if target not in raw:
            near = did_you_mean(name, [*raw, *aliases])
            raise CallTypeError(op.name, name, "no such argument" + (f" ({near})" if near else ""), show(value))
        if value is None:
            continue
        if raw[target] is not None:
            raise CallError(op.name, name, f"only one of '{target}' and '{op.attr(target).alias}'", "both")
        raw[target] = value
    return raw


def _settled(op: str, attr: m.Attr, value: AttrArgument) -> AttrStored:
    """Return the value in the caller's order; a payload is replaced by its word."""
    if value is None:
        if attr.has_default and attr.default is not None:
            return attr.default
        if attr.carried_by is not None:
            return ()
        raise CallTypeError(op, attr.name, _expected(attr), "nothing")
    if attr.payload is not None and _is_list(value):
        return attr.payload[0]
    if not attr.shape:
        scalar = _scalar(attr, value)
        if scalar is None:
            raise _wrong(op, attr, value)
        if attr.payload is not None and scalar == attr.payload[0]:
            raise CallError(op, attr.name, f"a list in place of '{scalar}'", show(value))
        return scalar
    if not _is_list(value):
        raise CallTypeError(op, attr.name, _expected(attr), show(value))
    items = flatten_list(value)
    if not items and attr.optional:
        return ()
    if len(items) != prod(attr.shape):
        raise CallError(op, attr.name, _expected(attr), show(value))
    scalars = [_scalar(attr, item) for item in items]
    if attr.kind == "int":
        integers = tuple(v for v in scalars if isinstance(v, int))
        if len(integers) == len(items):
            return integers
    reals = tuple(float(v) for v in scalars if isinstance(v, int | float))
    if attr.kind == "float" and len(reals) == len(items):
        return reals
    raise _wrong(op, attr, value)


def _wrong(op: str, attr: m.Attr, value: AttrArgument) -> CallError:
    near = did_you_mean(value, attr.values) if isinstance(value, str) else None
    return CallError(op, attr.name, _expected(attr) + (f" ({near})" if near else ""), show(value))


def _expected(attr: m.Attr) -> str:
    if not attr.shape:
        words = [v for v in attr.values if attr.payload is None or v != attr.payload[0]]
        if attr.payload is not None:
            return f"one of {', '.join(words)} or a list of integers"
        return expected_scalar(attr)
    each = expected_scalar(attr)
    return f"a list of {prod(attr.shape)}, each {each}" + (", or an empty one" if attr.optional else "")


def _scalar(attr: m.Attr, value: AttrArgument) -> Value | str | None:
    """Convert a scalar to the attribute's kind; None if it is not a value of that kind."""
    if isinstance(value, str):
        return value if attr.kind in ("enum", "layout") and value in attr.values else None
    if attr.kind == "bool":
        return value if isinstance(value, bool) else None
    if attr.kind not in ("int", "float") or isinstance(value, bool) or value is None or _is_list(value):
        return None
    number: int | float
    low, high = bounds(attr)
    try:
        if isinstance(value, SupportsIndex):  # any integer type, such as numpy's
            number = operator.index(value)
        elif attr.kind == "float" and isinstance(value, SupportsFloat):
            number = float(value)
        else:
            return None
        # Written so that NaN passes: no comparison with a bound excludes it.
        inside = not (number < low or number > high)
        return (float(number) if attr.kind == "float" else number) if inside else None
    except (TypeError, ValueError, OverflowError):  # an array of several numbers; an integer beyond all floats
        return None


def _is_list(value: AttrArgument) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def flatten_list(value: AttrArgument, deep: int = _DEEP) -> list[AttrArgument]:
    """Return the scalars of nested lists, in order; a list too deep (perhaps cyclic) counts as one scalar."""
    if _is_list(value) and isinstance(value, Sequence) and deep:
        return [scalar for item in value for scalar in flatten_list(item, deep - 1)]
    return [value]


def _take_payload(op: m.OpSpec, attr: m.Attr, raw: dict[str, AttrArgument], physical: dict[str, AttrStored]) -> None:
    """Move a list that was given instead of a word to the attribute that carries it."""
    if attr.payload is None or not _is_list(raw[attr.name]):
        return
    carrier = op.attr(attr.payload[1])
    try:
        physical[carrier.name] = _settled(op.name, carrier, raw[attr.name])
    except CallError as error:
        raise CallError(op.name, attr.name, f"{_expected(attr)}: {error.expected}", error.given) from None
    if physical[carrier.name] == ():
        raise CallError(op.name, attr.name, _expected(carrier).removesuffix(", or an empty one"), "[]")


def _in_order(op: m.OpSpec, attr: m.Attr, value: AttrStored, words: Mapping[str, AttrStored]) -> AttrStored:
    if not isinstance(value, tuple) or not value or attr.layout is None:
        return value
    axes = logical_axes(op, attr.layout, words, attr.shape[0])
    row = prod(attr.shape[1:])
    if attr.kind == "float":
        return tuple(float(v) for axis in axes for v in value[axis * row : (axis + 1) * row])
    return tuple(int(v) for axis in axes for v in value[axis * row : (axis + 1) * row])


def show(value: AttrArgument) -> str:
    """Format a value as a caller would write it, truncated if long; objects are shown by their class."""
    text = _shown(value, _DEEP)
    return text if len(text) <= _LONG else text[: _LONG - 3] + "..."


def _shown(value: object, deep: int) -> str:
    if isinstance(value, str | bytes):
        return repr(value[: _LONG + 1])
    if isinstance(value, list | tuple):
        return f"[{', '.join(_shown(v, deep - 1) for v in value[: _LONG // 3 + 1])}]" if deep else "[...]"
    if isinstance(value, int) and value.bit_length() > 4 * _LONG:  # Python refuses to write the longest ones
        return f"an integer of {value.bit_length()} bits"
    literal = value is None or isinstance(value, int | float)
    return repr(value) if literal else f"an object of type {type(value).__name__}"
