"""Windows without mixing: each lane reduces over its own neighbourhood, and neighbours share what they read.

Two kinds, by what is few: the terms of a sum (`results.py`: a tile of results in registers) or the results
(`sums.py`: all sums in registers, a tile of terms; `sum_blocks.py`: so, but memory is read in order).
In all, taps are unrolled, so that what is read once serves all that need it; columns at the border are loops of their
own, rows at the border are branches.
"""

from __future__ import annotations

from dataclasses import dataclass

from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.walks import Walk, walks
from opgen.schedule.auto.window.results import ResultTile
from opgen.schedule.auto.window.sum_blocks import SumBlocks
from opgen.schedule.auto.window.sums import SumTile
from opgen.schedule.cost.calibration import TAPS


@dataclass(frozen=True)
class Window(LaneNest):
    def take(self) -> bool:
        found = [w for w in walks(self.nest) if w.result != self.vector]
        if not found or any(constant_extent(s) is None for s in self.nest.inner_loops):
            return False
        column = found[-1]
        row = next((w for w in reversed(found) if not {w.result, w.term} & {column.result, column.term}), None)
        given = (self.nest, self.trial, self.vector, self.lanes, self.machine)
        if not self._few_results(column):
            return ResultTile(*given, row, column).run()
        if row is not None and self.trial.attempt(SumBlocks(*given, row, column).run):
            return True
        return SumTile(*given, row, column).run()

    def _few_results(self, column: Walk) -> bool:
        terms = next(constant_extent(s) or 0 for s in self.nest.inner_loops if s.var == column.term)
        return (self.nest.extent(column.result) or 0) < min(terms, TAPS + 1)
