"""Windows whose lanes lie along a row of the map: each tap reads the row a step further, borders are masks.

for c: for y in tiles: for x in vectors: for the rows that are read: for the results that need one: for s: lanes

Where a condition picks every other place, lanes go along a phase of the row, and both phases are in one tile.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from opgen.schedule.auto.cuts import Cut, sizes
from opgen.schedule.auto.ends import ends_of
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.nests import reduces, touched_bytes
from opgen.schedule.auto.non_temporal import store_non_temporally
from opgen.schedule.auto.walks import Walk
from opgen.schedule.cost.calibration import (
    LANE_STEP,
    RESULTS_CONFLICTING,
    ROWS_STREAMED,
    TAPS,
    TURNS,
)
from opgen.schedule.split import Tail
from opgen.schedule.steps import Parallel, Partition, Reorder, Skew, Split, Step, Unroll, Vectorize


@dataclass(frozen=True)
class RowTile(LaneNest):
    @property
    def legal(self) -> bool:
        known = self.lanes > 1 and self.roles.known and reduces(self.nest) and len(self.nest.allocations) == 1
        return known and self._column is not None and self._only_taps

    def take(self) -> bool:
        row, fresh = self._row, self.trial.fresh
        steps, x_o, inner, x_l = self._lane_splits()
        order = [n for n in self.nest.names if n != self.vector]
        taps, tile = list(self.roles.counts), []
        high = None if row is None else Cut(self._extent(row.result), self._height(row))
        if row is not None and high is not None:
            y_o, y_i = fresh(f"{row.result}_o"), fresh(f"{row.result}_i")
            steps.append(Split(row.result, high.size, high.tail, y_o, y_i))
            order = [*(n for n in order if n != row.result), y_o]
            taps.remove(row.term)
            taps, tile = [row.term, y_i, *taps], [y_i]
        taps += inner
        if not self.trial.take(*steps, Reorder((*order, x_o, *taps, x_l))):
            return False
        return self._finish(order, x_o, x_l, taps, tile, high)

    def _lane_splits(self) -> tuple[list[Step], str, list[str], str]:
        """How the loop of lanes is split: the steps, the loop of tiles, loops within a tile, the lanes."""
        fresh, along = self.trial.fresh, self.vector
        x_o, x_l = fresh(f"{along}_o"), fresh(f"{along}_l")
        steps: list[Step] = []
        inner: list[str] = []
        if self._phases > 1:
            along, phase = fresh(f"{self.vector}_q"), fresh(f"{self.vector}_p")
            steps.append(Split(self.vector, self._phases, "exact", along, phase))
            inner.append(phase)
        width, size = self._width, self._across.size
        wide: Tail = "exact" if width % size == 0 else "guard" if width < size else "overlap"
        return [*steps, Split(along, size, wide, x_o, x_l)], x_o, inner, x_l

    def _finish(self, order: list[str], x_o: str, x_l: str, taps: list[str], tile: list[str], high: Cut | None) -> bool:
        row, column = self._row, self._column
        assert column is not None
        if row is not None and row.factor is not None:
            name = self.trial.fresh(f"{row.term}_{row.result}")
            if self.trial.take(Skew(row.term, tile[0], row.factor, name)):
                taps[0] = name
        if not self.trial.take(*(Unroll(n) for n in taps), Vectorize(x_l)):
            return False
        few = (self.nest.extent(order[0]) if order and order[0] in self.nest.names else 0) or 0
        apart = self._rows_apart(high)
        ahead = order if not apart else order[:-1]
        self.trial.fused_prefix(ahead[: 2 if few < TURNS * self.machine.cores else 1], Parallel)
        if self.vector in self.nest.borders:
            reach = max(1, (self.roles.counts[column.term] - 1) * abs(column.apart))
            if at := ends_of(self.nest, self.vector, self._across, reach, self._phases):
                self.trial.take(Partition(x_o, at))
        if apart:
            self.trial.take(Partition(order[-1], apart))
        if self._across.tail == "exact" and self._phases == 1:
            store_non_temporally(self.nest, self.vector, self.trial, self.machine)
        return True

    def _rows_apart(self, high: Cut | None) -> tuple[int, ...]:
        """Tiles of rows that have bodies of their own: those at the border, or a last one that reaches over the end."""
        if high is None or self._row is None or high.count == 1:
            return ()
        if self._row.result in self.nest.borders:
            return high.border(self._row.reach(self.roles.counts[self._row.term]))
        return () if high.tail == "exact" else (-1,)

    @cached_property
    def _across(self) -> Cut:
        return Cut(self._width, self.lanes)

    # What there is ----------------------------------------------------------------------------------

    @cached_property
    def _phases(self) -> int:
        return self.nest.phases.get(self.vector, 1)

    @cached_property
    def _width(self) -> int:
        return self._extent(self.vector) // self._phases

    @cached_property
    def _column(self) -> Walk | None:
        """The walk along the lanes, if what it reads lies together, or nearly."""
        found = [w for w in self.roles.walks if w.result == self.vector and abs(w.step) <= LANE_STEP]
        near = [w for w in found if w.stride(self.nest) == w.load.dtype.bytes]
        return near[0] if near else None

    @cached_property
    def _row(self) -> Walk | None:
        column = self._column
        found = [
            w for w in self.roles.walks if column is not None and w.load == column.load and w.result != self.vector
        ]
        return found[-1] if found else None

    @property
    def _only_taps(self) -> bool:
        """Whether the reduction runs over few taps: rows of them, steps along the lanes, and others within these."""
        own = [w.term for w in (self._row, self._column) if w is not None]
        if self._phases > LANE_STEP or self._extent(self.vector) % self._phases:
            return False
        few = 0 < prod(self.roles.counts.values()) <= TAPS
        return few and own == list(self.roles.counts)[: len(own)]

    def _height(self, row: Walk) -> int:
        """Rows of a tile: each that is read serves as many as it can, unless memory takes longer to bring them."""
        unit = self.nest.phases.get(row.result, 1)
        most = ROWS_STREAMED if self.memory.is_far(touched_bytes(self.nest)) else RESULTS_CONFLICTING
        return max(sizes(self._extent(row.result), unit, max(1, most // unit)))
