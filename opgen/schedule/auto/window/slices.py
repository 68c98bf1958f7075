"""Windows with strided lanes: a slice of lanes is transposed to be contiguous, computed, and transposed back.

    for c: for y, x: for r, s: out[c, y, x] += map[c, y + r, x + s] * taps[r, s, c]

Lanes along the rows of a map are unsuitable if rows have more than two phases, or there are many taps.  Along `c` every
window is the same.  For example, a copy of each 16 maps is made with `c` last, in blocks that are transposed in
registers.  The schedules of windows with contiguous lanes then apply.
"""

from __future__ import annotations

from dataclasses import dataclass

from opgen.locks import cached_property
from opgen.loop.nodes import Load, Store, Var
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.nests import Nest, coefficient, is_contiguous, own_axis, with_last
from opgen.schedule.auto.plan import Cut, Operand, Plan
from opgen.schedule.auto.site import lanes_of
from opgen.schedule.auto.window.results import ResultTile
from opgen.schedule.auto.window.sums import SumTile
from opgen.schedule.cost.calibration import WINDOW_STEP
from opgen.schedule.split import Tail


@dataclass(frozen=True)
class Slices(LaneNest):
    """Slices of `lanes` iterations of a loop, which every access follows along a dimension of its own."""

    @property
    def legal(self) -> bool:
        """Return True if only arguments are copied."""
        return self.roles.is_sum and {e.buffer for e in self.apart} <= {b.name for b in self.trial.kernel.buffers}

    @property
    def proven(self) -> bool:
        """Return True if at least half of the lanes are busy."""
        return 2 * self.lanes >= lanes_of(self.nest, self.machine, None)

    def take(self) -> bool:
        """Take the steps of the copies, then those of the window between them."""
        inner = self.trial.fresh(f"{self.vector}_i")
        if not self.realised(self._copies()):
            return False
        window = (self.trial.nest(inner), self.trial, inner, self.lanes, self.machine)
        return any(kind(*window).run() for kind in (ResultTile, SumTile))

    def _copies(self) -> Plan:
        c = self.vector
        around = (*self._items, f"{c}.s")
        rest = (n for n in self.nest.names if n != c and n not in self._items)
        tail: Tail = "exact" if self.width % self.lanes == 0 else "overlap"
        return Plan(
            "slices",
            cuts=(Cut(c, self.lanes, around[-1], f"{c}.i", tail),),
            order=(*around, *rest, f"{c}.i"),
            operands=tuple(self._slice(e, around[-1]) for e in self.apart),
            threads=around[:1],
        )

    def _slice(self, access: Load | Store, at: str) -> Operand:
        axis = own_axis(access, self.vector) or 0
        return Operand(access.buffer, "panel", with_last(len(access.indices), axis), at, "slice")

    @cached_property
    def apart(self) -> tuple[Load | Store, ...]:
        """Return one access of each buffer in which lanes are not contiguous."""
        found = {e.buffer: e for e in _touched(self.nest)}
        return tuple(e for e in found.values() if not is_contiguous(e, self.vector, self.nest.shapes))

    @cached_property
    def _items(self) -> tuple[str, ...]:
        """Return the loops around that of the lanes that index everything that is transposed: they stay outside."""
        around = self.nest.names[: self.nest.names.index(self.vector)]
        return tuple(n for n in around if all(Var(n) in e.indices for e in self.apart))


def sliced_loop(nest: Nest) -> str | None:
    """Return the loop along which slices are independent windows: every access follows it by its own dimension."""
    touched = _touched(nest)
    for name in nest.names:
        followed = all(own_axis(e, name) is not None and _along(e, name) <= WINDOW_STEP for e in touched)
        if followed and not all(is_contiguous(e, name, nest.shapes) for e in touched):
            return name
    return None


def _along(access: Load | Store, loop: str) -> int:
    """Return the places by which an iteration advances an access along its dimension.

    If that is not known, the result is one more than the largest step that is accepted.
    """
    places = coefficient(access.indices[own_axis(access, loop) or 0], loop) or 0
    return places if places >= 1 else WINDOW_STEP + 1


def _touched(nest: Nest) -> tuple[Load | Store, ...]:
    return (*nest.outside_loads, *nest.results)
