"""Bounds of the values of attributes."""

from __future__ import annotations

from opgen.spec.model import model as m

_INT32 = (-(2**31), 2**31 - 1)
_INT64 = (-(2**63), 2**63 - 1)


def bounds(attr: m.Attr) -> tuple[float, float]:
    """Return the least and the greatest value; an int is an int32 unless its bounds reach further or it is an int64."""
    if attr.kind == "float":
        low: float = float("-inf") if attr.minimum is None else attr.minimum
        return low, float("inf") if attr.maximum is None else attr.maximum
    widest = _INT64 if _is_wide(attr) else _INT32
    least = widest[0] if attr.minimum is None else attr.minimum
    return least, widest[1] if attr.maximum is None else attr.maximum


def _is_wide(attr: m.Attr) -> bool:
    given = [b for b in (attr.minimum, attr.maximum) if b is not None]
    return attr.wide or any(not _INT32[0] <= b <= _INT32[1] for b in given)


def expected_scalar(attr: m.Attr) -> str:
    """Describe the allowed values of an attribute (or of an element of it)."""
    if attr.kind in ("enum", "layout"):
        return f"one of {', '.join(attr.values)}"
    if attr.kind == "bool":
        return "true or false"
    name = "an integer" if attr.kind == "int" else "a number"
    if attr.kind == "int" and (attr.minimum is None or attr.maximum is None):
        name = f"a {64 if _is_wide(attr) else 32}-bit integer"  # shows the missing bound
    given = [f">= {attr.minimum}"] if attr.minimum is not None else []
    given += [f"<= {attr.maximum}"] if attr.maximum is not None else []
    return " ".join([name, " and ".join(given)]) if given else name
