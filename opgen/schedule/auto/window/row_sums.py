"""Windows of few results whose terms lie along the rows of a map: lanes along a row, partial sums, a tree at the end.

    for c: for y in tiles: for x in vectors: for the rows that are read: for r, s: lanes of sum[r, s]

What is summed lies consecutively along the innermost loop of the reduction.  Partial results, one for each lane, make
its iterations independent: one vector of each sum goes over the whole map, in a register.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from opgen.loop.nodes import Load
from opgen.schedule.auto.cuts import Cut, sizes
from opgen.schedule.auto.ends import needed
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.nests import depends, read_bytes
from opgen.schedule.auto.walks import Walk
from opgen.schedule.cost.calibration import LANE_STEP, ROW_SUMS, TERMS_SHARED
from opgen.schedule.steps import (
    Parallel,
    Partition,
    Regroup,
    Reorder,
    Rfactor,
    Skew,
    Split,
    Step,
    Unroll,
    Vectorize,
)


@dataclass(frozen=True)
class RowSums(LaneNest):
    """Lanes along the innermost loop of the sum."""

    @property
    def legal(self) -> bool:
        known = self.lanes > 1 and self.roles.is_sum and not self.nest.phases
        return known and self._row is not None and self._column is not None and self._suits(self._column)

    def take(self) -> bool:
        row, column = self._row, self._column
        assert row is not None
        assert column is not None
        partial = self.trial.fresh(f"{self.nest.allocations[0].name}_partial")
        y_o, y_i = (self.trial.fresh(f"{row.term}_{part}") for part in "oi")
        vectors, lane = f"{column.term}_o", f"{column.term}_l"
        cut, taps = self._cut, self._taps
        rows: list[Step] = [Split(row.term, cut.size, cut.tail, y_o, y_i)]
        if self._vectors > 1:
            rows.append(Regroup(y_i, vectors))
        others = [n for n in self.nest.names if n not in taps]
        outer = [n for n in self.roles.counts if n not in (row.term, column.term)]
        order = (*others, *outer, y_o, *([vectors] if self._vectors > 1 else []), y_i, *taps, lane)
        if not self.trial.take(Rfactor(column.term, self.lanes, partial), *rows, Reorder(order)):
            return False
        tiles = y_i
        if row.step % row.apart == 0 and taps[0] == row.result:
            both = self.trial.fresh(f"{y_i}_{row.result}")
            if self.trial.take(Skew(y_i, row.result, row.step // row.apart, both)):
                tiles = both
        alone = () if self._vectors > 1 else (vectors,)
        if not self.trial.take(*(Unroll(n) for n in (*alone, tiles, *taps)), Vectorize(lane)):
            return False
        halves = [self.lanes >> k for k in range(1, self.lanes.bit_length() - 1)]
        self.trial.take(Vectorize(f"{partial}_i"), *(Vectorize(f"{partial}_{width}") for width in halves))
        self._set_apart(vectors, y_o, cut)
        self.trial.fused_prefix(others[:1], Parallel)
        return True

    def _set_apart(self, vectors: str, tiles: str, cut: Cut) -> None:
        """The first and the last vector of a row, and rows at the border, where there is one."""
        if self._vectors > 1:
            self.trial.take(Partition(vectors, (1, -1) if self._vectors > 2 else (1,)))
        row = self._row.term if self._row is not None else ""
        bounded = row in self.nest.borders
        if cut.count > 1 and (bounded or cut.tail != "exact"):
            cuts = (1, -1) if cut.count > 2 else (1,)
            at = needed(self.nest, row, cuts, cut.size) if cut.tail == "exact" else cuts
            if at:
                self.trial.take(Partition(tiles, at))

    # What there is ----------------------------------------------------------------------------------

    def _suits(self, column: Walk) -> bool:
        """Whether all that is read lies along the row, and is worth it."""
        along = [e for e in self.nest.summed if depends(e.indices, column.term)]
        if len(along) < len(self.nest.summed) or any(depends(e.indices[:-1], column.term) for e in along):
            return False
        taps = list(self._taps)
        sums = prod(self.nest.extent(n) or ROW_SUMS + 1 for n in taps)
        if self._mixed(taps, along):
            return False
        terms = [s.var for s in self.nest.inner_loops]
        return sums <= ROW_SUMS and terms[-1] == column.term and 2 * self._width > self.lanes

    def _mixed(self, taps: list[str], along: list[Load]) -> bool:
        """Whether a vector or more of results share what is read: a contraction, which does better."""
        others = [n for n in self.nest.names if n not in taps and not all(depends(e.indices, n) for e in along)]
        return any((self.nest.extent(n) or 0) >= self.lanes for n in others)

    @cached_property
    def _taps(self) -> tuple[str, ...]:
        """The loops over results that share what they read."""
        walks = [w.result for w in (self._row, self._column) if w is not None]
        return tuple(n for n in self.nest.names if n in walks)

    @cached_property
    def _width(self) -> int:
        return 0 if self._column is None else self.roles.counts[self._column.term]

    @property
    def _vectors(self) -> int:
        """How many vectors of a row there are."""
        return -(-self._width // self.lanes)

    @cached_property
    def _column(self) -> Walk | None:
        """The walk along which lanes are neighbours."""
        found = [w for w in self.roles.walks if w.stride(self.nest) == w.load.dtype.bytes and 1 <= w.apart <= LANE_STEP]
        return found[-1] if found else None

    @cached_property
    def _row(self) -> Walk | None:
        column = self._column
        own = [w for w in self.roles.walks if column is not None and w.load == column.load]
        return next(
            (w for w in own if column is not None and not {w.result, w.term} & {column.result, column.term}), None
        )

    @cached_property
    def _cut(self) -> Cut:
        """As many rows as share what they read well enough; one by one as they come from memory."""
        length = self.roles.counts[self._row.term] if self._row is not None else 1
        if self.memory.is_far(read_bytes(self.nest)):
            return Cut(length, 1)
        return Cut(length, max(sizes(length, 1, TERMS_SHARED if length % TERMS_SHARED == 0 else 2 * TERMS_SHARED - 1)))
