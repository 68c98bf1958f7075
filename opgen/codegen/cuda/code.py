"""C expressions as text, with the properties needed to put one into a larger one."""

from __future__ import annotations

from dataclasses import dataclass

from opgen.dtypes import DType

TERNARY, OR, AND, BITWISE, EQUALITY, RELATION, SUM, PRODUCT, UNARY, PRIMARY = range(10)
"""Precedence, weakest first.  Adjacent bitwise operators always get parentheses."""

Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Code:
    """C text; its precedence; the interval of its value (integers only); True if C takes it for an `int`."""

    text: str
    level: int = PRIMARY
    interval: Interval | None = None
    is_literal: bool = False

    def at(self, level: int) -> str:
        """Return the text in a place that takes an operand of at least that precedence."""
        return self.text if self.level >= level else f"({self.text})"


def infix(left: str, operator: str, right: str, level: int, interval: Interval | None = None) -> Code:
    return Code(f"{left} {operator} {right}", level, interval)


def exact_interval(op: str, a: Interval, b: Interval) -> Interval | None:
    """Return the interval of the result if nothing wraps; None if it is unknown."""
    match op:
        case "add":
            return a[0] + b[0], a[1] + b[1]
        case "sub":
            return a[0] - b[1], a[1] - b[0]
        case "mul":
            products = [x * y for x in a for y in b]
            return min(products), max(products)
        case "min":
            return min(a[0], b[0]), min(a[1], b[1])
        case "max":
            return max(a[0], b[0]), max(a[1], b[1])
        case "floordiv" if b[0] > 0:
            quotients = [x // y for x in a for y in b]
            return min(quotients), max(quotients)
        case "mod" if b[0] > 0:
            return 0, min(a[1], b[1] - 1) if a[0] >= 0 else b[1] - 1
        case _:
            return None


def full_interval(dtype: DType) -> Interval:
    return dtype.least, dtype.greatest


def within(inner: Interval, outer: Interval) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]
