"""Windows of few results, each a sum of many terms: all sums in registers, the terms in tiles.

    parallel for vectors: for y: for x in tiles: for r, x, s: sum[r, s]

What comes from memory is read in order: vectors are inside, and sums wait for the next tile, some rows high, so that
they have enough to do.

    parallel for blocks: for y in tiles: for x: for vectors: for the rows that are read: for s: sum[r, s]
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from opgen.schedule.auto.cuts import Cut, largest_divisor, sizes
from opgen.schedule.auto.ends import set_apart
from opgen.schedule.auto.nests import read_bytes
from opgen.schedule.auto.window.nest import Lanes, WindowNest
from opgen.schedule.cost.calibration import STREAMS, SUM_OPERANDS, SUM_TERMS, TAPS, TERMS_SHARED
from opgen.schedule.steps import Parallel, Regroup, Reorder, Skew, Split, Stage, Unroll, Vectorize


@dataclass(frozen=True)
class SumTile(WindowNest):
    @property
    def proven(self) -> bool:
        return self.few_results

    def tile(self) -> bool:
        return self._in_order() if self._is_far else self._by_vectors()

    def _by_vectors(self) -> bool:
        """Vectors outermost; within the other results where they are not whole."""
        cut, lanes, tiled = self._cut, self.split(), self.column.term
        t_o, t_i = self.trial.fresh(f"{tiled}_o"), self.trial.fresh(f"{tiled}_i")
        long = [t_o if n == tiled else n for n in self.roles.counts]
        rows = [n for n in self._sums if n not in (self.column.result, *self.beside)]
        tile = (*rows, t_i, self.column.result, *self.beside)
        others = [n for n in self.nest.names if n not in (self.vector, *self._sums)]
        exact = self.width % self.lanes == 0
        around = (lanes.vectors, *others) if exact else (*others, lanes.vectors)
        if not self.trial.take(
            Split(tiled, cut.size, cut.tail, t_o, t_i),
            *(Regroup(t_i, n) for n in self.roles.terms[self.roles.terms.index(tiled) + 1 :]),
            *lanes.splits,
            Reorder((*around, *long, *tile, lanes.lane)),
            *(Unroll(n) for n in tile),
            Vectorize(lanes.lane),
        ):
            return False
        self.trial.fused_prefix([n for n in around if n != lanes.vectors or exact][:1], Parallel)
        set_apart(self.trial, self.nest, self.column, t_o, cut)
        return True

    @cached_property
    def _cut(self) -> Cut:
        """As many terms as leave registers for what they read; 4 are enough to share that."""
        length = self.roles.counts[self.column.term]
        room = max(1, self.machine.registers - SUM_OPERANDS - prod(self._extent(n) for n in self._sums))
        most = min(room, TERMS_SHARED if length % TERMS_SHARED == 0 else 2 * TERMS_SHARED - 1)
        return Cut(length, max(sizes(length, 1, most)))

    @cached_property
    def _sums(self) -> tuple[str, ...]:
        """The loops of results that are kept in registers: those of the taps, or the columns alone."""
        wanted = {w.result for w in (self.row, self.column) if w is not None} | set(self.beside)
        if prod(self._extent(n) for n in wanted) <= TAPS:
            return tuple(n for n in self.nest.names if n in wanted)
        return (self.column.result, *self.beside)

    # What comes from memory -------------------------------------------------------------------------

    @cached_property
    def _is_far(self) -> bool:
        """Whether all that is read comes from memory, and results are whole vectors of taps."""
        if self.row is None or self.width % self.lanes or not self.memory.is_far(read_bytes(self.nest)):
            return False
        row, column = self.row, self.column
        taps = {self.vector, row.result, column.result} == set(self.nest.names) == {self.vector, *self._sums}
        ends = tuple(self.roles.counts)[-2:] == (row.term, column.term)
        return taps and ends and row.apart % row.step == 0 and self._blocks is not None

    @cached_property
    def _blocks(self) -> Lanes | None:
        """Vectors in blocks, one or more for each core; none if there are not two vectors for each."""
        vectors, cores = self.width // self.lanes, self.machine.cores
        together = largest_divisor(vectors, -(-vectors // cores))
        return self.split(together) if together > 1 else None

    def _in_order(self) -> bool:
        assert self.row is not None
        assert self._blocks is not None
        row, x, lanes, high = self.row, self.column.term, self._blocks, self._high
        sums = self.nest.allocations[0].name
        y_o, y_i = self.trial.fresh(f"{row.term}_o"), self.trial.fresh(f"{row.term}_i")
        both, kept = self.trial.fresh(f"{row.result}_{y_i}"), self.trial.fresh(f"{sums}_kept")
        terms = [y_o if n == row.term else n for n in self.roles.counts]
        tile = (row.result, y_i, self.column.result)
        return self.trial.take(
            Split(row.term, high.size, high.tail, y_o, y_i),
            *lanes.splits,
            Regroup(y_i, x),
            Reorder((lanes.block or "", *terms, lanes.vectors, *tile, lanes.lane)),
            Skew(row.result, y_i, row.apart // row.step, both),
            Stage(sums, lanes.vectors, "register", False, kept),
            *(Unroll(n) for n in (both, *tile)),
            Vectorize(lanes.lane),
            *(Unroll(f"{kept}_{d}") for d in range(3)),
            Vectorize(f"{kept}_3"),
            Parallel(lanes.block or ""),
        ) and set_apart(self.trial, self.nest, self.column, x, Cut(self.roles.counts[x], 1))

    @cached_property
    def _high(self) -> Cut:
        """As many rows as load and store least for each term."""
        assert self.row is not None
        row, (down, across) = self.row, (self._extent(w.result) for w in (self.row, self.column))
        columns, length = self.column.places(across, 1), self.roles.counts[row.term]

        def cost(cut: Cut) -> float:
            read = row.places(down, cut.size) * columns
            return (read + cut.size + 2 * down * across) / cut.size * cut.waste

        room = max(1, min(SUM_TERMS, self.machine.registers - SUM_OPERANDS - down * across))
        found = [Cut(length, h) for h in sizes(length, 1, room) if row.places(down, h) <= STREAMS or h == 1]
        return min(found, key=lambda c: (cost(c), -c.size))
