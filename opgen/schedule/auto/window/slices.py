"""Windows whose lanes would lie apart: a slice of lanes is transposed to lie side by side, worked on, and transposed
back.

    for c: for y, x: for r, s: out[c, y, x] += map[c, y + r, x + s] * taps[r, s, c]

Lanes along the rows of a map are no choice where rows have more phases than two, and a poor one where there are many
taps for one vector.  Along `c` every window is the same: of each 16 maps, say, a copy is
made with `c` last, in blocks that are transposed in registers, and all that is known of windows with consecutive lanes
applies.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from opgen.loop.analysis.polynomial import linear
from opgen.loop.nodes import Const, Load, Store, Var
from opgen.schedule.auto.copies.blocks import transposed_blocks
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.nests import Nest, is_contiguous, own_axis, with_last
from opgen.schedule.auto.site import lanes_of
from opgen.schedule.auto.window.results import ResultTile
from opgen.schedule.auto.window.sums import SumTile
from opgen.schedule.cost.calibration import WINDOW_STEP
from opgen.schedule.split import Tail
from opgen.schedule.steps import Fuse, Pack, Parallel, Reorder, Split


@dataclass(frozen=True)
class Slices(LaneNest):
    """Slices of `lanes` iterations of a loop, which every access follows along a dimension of its own."""

    @property
    def legal(self) -> bool:
        """Whether only arguments are copied."""
        return self.roles.is_sum and {e.buffer for e in self.apart} <= {b.name for b in self.trial.kernel.buffers}

    @property
    def proven(self) -> bool:
        """Whether half of the lanes at least are at work."""
        return 2 * self.lanes >= lanes_of(self.nest, self.machine, None)

    def take(self) -> bool:
        fresh, extent = self.trial.fresh, self.nest.extent(self.vector) or 0
        outer, inner = fresh(f"{self.vector}_s"), fresh(f"{self.vector}_i")
        tail: Tail = "exact" if extent % self.lanes == 0 else "overlap"
        rest = [n for n in self.nest.names if n != self.vector and n not in self._items]
        if not self.trial.take(
            Reorder((*self._items, self.vector, *rest)),
            Split(self.vector, self.lanes, tail, outer, inner),
            Reorder((inner, *rest)),
            Reorder((*rest, inner)),
        ):
            return False
        around = [*self._items, outer][:2]
        self.trial.take(Parallel(around[0]))  # now, while the loop holds little
        if not self._transposed(outer):
            return False
        window = (self.trial.nest(inner), self.trial, inner, self.lanes, self.machine)
        if not any(kind(*window).run() for kind in (ResultTile, SumTile)):
            return False
        if len(around) > 1:
            self.trial.take(Fuse(around[0], around[1], fresh("_".join(around))))
        return True

    def _transposed(self, outer: str) -> bool:
        """Copies of what a slice reads and writes."""
        for access in self.apart:
            axis = own_axis(access, self.vector)
            if axis is None:
                return False
            order = with_last(len(access.indices), axis)
            name = self.trial.fresh(f"{access.buffer}_slice")
            if not self.trial.take(Pack(access.buffer, order, name, outer)):
                return False
            transposed_blocks(self.trial, name, self.machine.vector_bytes, ())
        return True

    @cached_property
    def apart(self) -> tuple[Load | Store, ...]:
        """One access of each buffer in which lanes do not lie side by side."""
        found = {e.buffer: e for e in _touched(self.nest)}
        return tuple(e for e in found.values() if not is_contiguous(e, self.vector, self.nest.shapes))

    @cached_property
    def _items(self) -> tuple[str, ...]:
        """Loops around that of the lanes that are an index of everything that is transposed: they stay outside."""
        around = self.nest.names[: self.nest.names.index(self.vector)]
        return tuple(n for n in around if all(Var(n) in e.indices for e in self.apart))


def sliced_loop(nest: Nest) -> str | None:
    """The loop along which slices are independent windows: every access follows it by a dimension of its own."""
    touched = _touched(nest)
    for name in nest.names:
        followed = all(own_axis(e, name) is not None and _along(e, name) <= WINDOW_STEP for e in touched)
        if followed and not all(is_contiguous(e, name, nest.shapes) for e in touched):
            return name
    return None


def _along(access: Load | Store, loop: str) -> int:
    """How many places further an access goes along its dimension with each iteration; more than any if not known."""
    form = linear(access.indices[own_axis(access, loop) or 0], loop)
    places = int(form[0].value) if form is not None and isinstance(form[0], Const) else 0
    return places if places >= 1 else WINDOW_STEP + 1


def _touched(nest: Nest) -> tuple[Load | Store, ...]:
    return (*nest.outside_loads, *nest.results)
