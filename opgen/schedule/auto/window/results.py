"""Windows of few terms: a tile of results in registers, the taps unrolled inside."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from opgen.schedule.auto.copies.held import stage_in_registers, stage_on_stack
from opgen.schedule.auto.cuts import Cut, largest_divisor
from opgen.schedule.auto.ends import ends_of
from opgen.schedule.auto.nests import read_bytes, touched_bytes
from opgen.schedule.auto.window.choice import Tile, TileChoice
from opgen.schedule.auto.window.nest import Lanes, WindowNest
from opgen.schedule.cost.calibration import BLOCK_VECTORS, NON_TEMPORAL_WINDOW, TILES_SEARCHED, TURNS
from opgen.schedule.steps import Parallel, Partition, Reorder, Skew, Split, Step, Stream, Unroll, Vectorize


@dataclass(frozen=True)
class ResultTile(WindowNest):
    @property
    def proven(self) -> bool:
        return not self.few_results

    def tile(self) -> bool:
        lanes = self._lanes
        steps = [Split(n, cut.size, cut.tail, self._outer[n], self._inner[n]) for n, cut in self._cuts.items()]
        if not self.trial.take(*steps, *lanes.splits, Reorder((*self._around, *self._inner_order(), lanes.lane))):
            return False
        copies = self._copies()
        taps, columns = self._skewed(), self._long()
        if not self.trial.take(
            *(Unroll(n) for n in (*taps, *self._inner.values(), *self.beside)), Vectorize(lanes.lane), *copies
        ):
            return False
        self._spread()
        for n, cut in self._cuts.items():
            if n != self.column.result or not self._apart(columns):
                self._set_apart(n, cut)
        self._stream()
        return True

    @cached_property
    def _choice(self) -> TileChoice:
        return TileChoice(self.nest, self.machine, self.row, self.column, prod(self._extent(n) for n in self.beside))

    @cached_property
    def _tile(self) -> Tile:
        return self.trial.decisions.choose(self._choice.tiles[:TILES_SEARCHED])

    # Loops ------------------------------------------------------------------------------------------

    @cached_property
    def _cuts(self) -> dict[str, Cut]:
        cuts = {self.column.result: self._tile.wide}
        return cuts if self.row is None or self._tile.high is None else {**cuts, self.row.result: self._tile.high}

    @cached_property
    def _outer(self) -> dict[str, str]:
        return {n: self.trial.fresh(f"{n}_o") for n in self._cuts}

    @cached_property
    def _inner(self) -> dict[str, str]:
        return {n: self.trial.fresh(f"{n}_i") for n in self._cuts}

    @cached_property
    def _lanes(self) -> Lanes:
        vectors, rest = divmod(self.width, self.lanes)
        return self.split(1 if rest else self._block(vectors))

    @property
    def _around(self) -> tuple[str, ...]:
        """Vectors within the tiles, so that memory is read row by row; around them where one vector's map is small; in
        blocks around them and one by one within where the lines of a row evict each other, or what a tile reads does.
        """
        around = [n for n in self.nest.names if n not in (self.vector, *self.beside)]
        first = min(around.index(n) for n in self._cuts)
        ahead, tiles = around[:first], [self._outer.get(n, n) for n in around[first:]]
        lanes = self._lanes
        if lanes.block is not None:
            return (*ahead, lanes.block, *tiles, lanes.vectors)
        small = self._choice.small and self.width % self.lanes == 0
        return (*ahead, lanes.vectors, *tiles) if small else (*ahead, *tiles, lanes.vectors)

    def _block(self, vectors: int) -> int:
        """How many vectors are done together, block by block; 1 where there is no need of blocks."""
        if self._choice.lines >= 2 * self._tile.rows * self._tile.columns:
            together = 1 if self._choice.small else self._choice.together(self._tile, vectors)
            return together if together < vectors else 1
        if self._choice.conflicts(self._tile):
            return self._choice.copied(vectors)
        return largest_divisor(vectors, BLOCK_VECTORS)

    def _inner_order(self) -> list[str]:
        """Taps and results of a tile, row by row: all that one row serves stands together."""
        order = [*self._choice.terms, self._inner[self.column.result]]
        if self.row is not None:
            order.insert(order.index(self.row.term) + 1, self._inner[self.row.result])
        return [*order, *self.beside]

    def _skewed(self) -> list[str]:
        """Rows of taps run over the rows that are read; gives the loops of taps to be unrolled."""
        taps = list(self._choice.unrolled)
        if self.row is not None and self.row.factor is not None and self._choice.rows_unrolled:
            name = self.trial.fresh(f"{self.row.term}_{self.row.result}")
            if self.trial.take(Skew(self.row.term, self._inner[self.row.result], self.row.factor, name)):
                taps[taps.index(self.row.term)] = name
        return taps

    def _long(self) -> str:
        """A loop over the columns that are read, where taps along a row are too many to be unrolled: whether a column
        is there is asked once for all results that need it.
        """
        name = self.trial.fresh(f"{self.column.term}_{self.column.result}")
        inner, factor = self._inner[self.column.result], self.column.factor
        if self.column.term in self._choice.unrolled or factor is None or self._ends == 0:
            return ""
        return name if self.trial.take(Skew(self.column.term, inner, factor, name)) else ""

    @property
    def _ends(self) -> int:
        """The columns at either end of a row of taps that not all results of a tile need; 0 if there are no others."""
        ends = (self._tile.wide.size - 1) * abs(self.column.factor or 0)
        return ends if ends < self._extent(self.column.term) else 0

    def _apart(self, columns: str) -> bool:
        """Bodies of their own for these ends, in which it is known what each result needs; whether that was done."""
        first, last = self.trial.fresh("middle"), self.trial.fresh("last")
        return columns != "" and self.trial.take(
            Partition(columns, (self._ends,), first),
            Partition(f"{columns}_{first}", (-self._ends,), last),
            Unroll(columns),
            Unroll(f"{columns}_{first}_{last}"),
        )

    def _stream(self) -> None:
        """Non-temporal stores of whole lines that the last cache would not hold: they need not be read first."""
        read, touched = read_bytes(self.nest), touched_bytes(self.nest)
        whole = self.machine.vector_bytes == self.machine.l1.line and self._extent(self.vector) % self.lanes == 0
        if whole and self.memory.is_far(touched) and touched - read >= read / NON_TEMPORAL_WINDOW:
            self.trial.take(*(Stream(s.buffer) for s in self.nest.results))

    def _spread(self) -> None:
        """Threads: over loops whose ends are not set apart, so that there is one parallel region."""
        apart = {self._outer[n] for n, cut in self._cuts.items() if n == self.column.result or cut.tail != "exact"}
        if self._extent(self.vector) % self.lanes:
            apart.add(self._lanes.vectors)
        ahead = [n for n in self._around if n not in apart]
        counts = {self._outer[n]: cut.count for n, cut in self._cuts.items()}
        counts |= {n: self._extent(n) for n in self.nest.names}
        few = bool(ahead) and counts.get(ahead[0], self.machine.cores) < TURNS * self.machine.cores
        self.trial.fused_prefix(ahead[: 2 if few else 1], Parallel)

    def _set_apart(self, loop: str, cut: Cut) -> None:
        """Columns at the border; and rows only where a tile reaches over the end of the results."""
        if cut.tail == "exact" and loop not in self.nest.borders:
            return
        reach = self.column.reach(self._extent(self.column.term)) if loop == self.column.result else 0
        if at := ends_of(self.nest, loop, cut, reach):
            self.trial.take(Partition(self._outer[loop], at))

    # Copies -----------------------------------------------------------------------------------------

    def _copies(self) -> list[Step]:
        """The map of a block of vectors, where its lines evict each other; what the taps read, in registers.

        Gives the steps still to be taken for the copies.
        """
        steps: list[Step] = []
        lanes, tile = self._lanes, self._tile
        if lanes.block is not None and self._choice.conflicts(tile):
            most = self.memory.usable(2)
            steps += stage_on_stack(self.trial, self.column.load, lanes.block, self.vector, self.lanes, most)
        if self._choice.resident(tile):
            steps += stage_in_registers(self.trial, self._choice.taps[0], lanes.vectors, self.vector)
        return steps
