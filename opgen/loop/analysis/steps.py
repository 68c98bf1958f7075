"""Indices that go on by steps: by a number from one iteration to the next, and by less than that within one.

t[16*i + 3], t[16*i + k] with 0 <= k < 16       different elements for different i
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opgen.loop.analysis.polynomial import Polynomial, atom, polynomial
from opgen.loop.nodes import INDEX, Expr, Load, Var
from opgen.loop.walk import walk_expr

Ranges = Mapping[str, tuple[int, int] | None]
"""The least and the greatest value of the names bound within an iteration; None where they are not known."""


@dataclass(frozen=True)
class _Index:
    """step * loop + common + something from `low` to `high`; `common` has no name bound within an iteration."""

    step: int
    common: Polynomial
    low: int
    high: int


def steps_apart(var: str, indices: Sequence[tuple[Expr, Ranges]]) -> bool:
    """Return True if all these indices of one dimension, each with its ranges, differ between iterations of a loop."""
    found = [index for e, inside in indices if (index := _index(e, var, inside)) is not None]
    if len(found) < len(indices) or len({(i.step, i.common) for i in found}) != 1:
        return False
    return max(i.high for i in found) - min(i.low for i in found) < abs(found[0].step)


def _index(e: Expr, var: str, inside: Ranges) -> _Index | None:
    if any(isinstance(n, Load) or n.type != INDEX for n in walk_expr(e)):
        return None
    parts = polynomial(e).split(atom("var", Var(var)))
    if parts is None or not parts[0].value or any(var in a.variables for a in parts[1].atoms):
        return None
    common, low, high = parts[1], 0, 0
    for name, bounds in inside.items():
        if not any(name in a.variables for a in common.atoms):
            continue
        own = common.split(atom("var", Var(name)))
        if own is None or bounds is None or own[0].value is None or any(name in a.variables for a in own[1].atoms):
            return None
        ends = sorted(own[0].value * bound for bound in bounds)
        common, low, high = own[1], low + ends[0], high + ends[1]
    fixed = common.terms.get((), 0)
    return _Index(parts[0].value, common - fixed, low + fixed, high + fixed)
