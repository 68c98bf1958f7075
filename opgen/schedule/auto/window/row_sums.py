"""Windows of few results with terms along the rows of a map: lanes along a row, partial sums, a tree at the end.

    for c: for y in tiles: for x in vectors: for the rows that are read: for r, s: lanes of sum[r, s]

Terms are contiguous along the innermost loop of the reduction.  Partial results, one for each lane, make its iterations
independent: one vector of each sum accumulates the whole map, in a register.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from opgen.locks import cached_property
from opgen.loop.nodes import Load
from opgen.schedule.auto.cuts import Tiles, sizes
from opgen.schedule.auto.ends import ends_of
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.nests import depends, read_bytes
from opgen.schedule.auto.partial import tree_in_lanes
from opgen.schedule.auto.plan import Ends, Plan, Skewed
from opgen.schedule.auto.walks import Walk
from opgen.schedule.cost.calibration import LANE_STEP, ROW_SUMS, TERMS_SHARED
from opgen.schedule.steps import Rfactor


@dataclass(frozen=True)
class RowSums(LaneNest):
    """Schedule with lanes along the innermost loop of the sum."""

    @property
    def legal(self) -> bool:
        known = self.lanes > 1 and self.roles.is_sum and not self.nest.phases
        return known and self._row is not None and self._column is not None and self._suits(self._column)

    def take(self) -> bool:
        """Make partial sums in lanes, then follow the plan of their terms, then make the tree."""
        assert self._column is not None
        partial, term = self.trial.fresh(f"{self.nest.allocations[0].name}_partial"), self._column.term
        if not self.trial.take(Rfactor(term, self.lanes, partial)):
            return False
        if not self.realised(self._plan(f"{term}_o", f"{term}_l"), self.nest.names[0]):
            return False
        tree_in_lanes(self.trial, partial, self.lanes, self.lanes)
        return True

    def _plan(self, vectors: str, lane: str) -> Plan:
        row, column, taps, tiles = self._row, self._column, self._taps, self._tiles
        assert row is not None
        assert column is not None
        y, several = tiles.cut(row.term), self._width > self.lanes
        others = tuple(n for n in self.nest.names if n not in taps)
        outer = [n for n in self.roles.terms if n not in (row.term, column.term)]
        shared = row.step % row.apart == 0 and taps[0] == row.result
        ends = () if not several else (Ends(vectors, (1, -1) if self._width > 2 * self.lanes else (1,)),)
        return Plan(
            "row_sums",
            lane,
            cuts=(y,),
            order=others,
            regrouped=((y.inner, vectors),) if several else (),
            terms=(*outer, y.outer, *([vectors] if several else []), y.inner, *taps),
            skewed=(Skewed(y.inner, row.result, row.step // row.apart),) if shared else (),
            unrolled=(*([] if several else [vectors]), y.inner, *taps),
            threads=others[:1],
            ends=(*ends, *ends_of(self.nest, row.term, tiles, 1)),
        )

    # Structure ----------------------------------------------------------------------------------

    def _suits(self, column: Walk) -> bool:
        """Return True if all reads are contiguous along the row, and lanes pay."""
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
        """Return True if a vector or more of results share their reads: such a contraction has a better schedule."""
        others = [n for n in self.nest.names if n not in taps and not all(depends(e.indices, n) for e in along)]
        return any((self.nest.extent(n) or 0) >= self.lanes for n in others)

    @cached_property
    def _taps(self) -> tuple[str, ...]:
        """Return the loops over results that share their reads."""
        walks = [w.result for w in (self._row, self._column) if w is not None]
        return tuple(n for n in self.nest.names if n in walks)

    @cached_property
    def _width(self) -> int:
        return 0 if self._column is None else self.roles.counts[self._column.term]

    @cached_property
    def _column(self) -> Walk | None:
        """Return the window access along which lanes are neighbours."""
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
    def _tiles(self) -> Tiles:
        """Return tiles of rows that share their reads well enough; single rows if they come from memory."""
        length = 1 if self._row is None else self.roles.counts[self._row.term]
        most = TERMS_SHARED if length % TERMS_SHARED == 0 else 2 * TERMS_SHARED - 1
        return Tiles(length, 1 if self.memory.is_far(read_bytes(self.nest)) else max(sizes(length, 1, most)))
