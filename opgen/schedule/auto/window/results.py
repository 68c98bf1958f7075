"""Windows of few terms: a tile of results in registers, the taps unrolled inside."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from opgen.schedule.auto.cuts import Cut
from opgen.schedule.auto.ends import ends_of
from opgen.schedule.auto.nests import depends, read_bytes, touched_bytes
from opgen.schedule.auto.window.choice import Tile, TileChoice
from opgen.schedule.auto.window.nest import Lanes, WindowNest
from opgen.schedule.cost.calibration import NON_TEMPORAL_WINDOW, TILES_SEARCHED, TURNS
from opgen.schedule.steps import Parallel, Partition, Reorder, Skew, Split, Stage, Step, Stream, Unroll, Vectorize


@dataclass(frozen=True)
class ResultTile(WindowNest):
    @property
    def proven(self) -> bool:
        return not self.few_results

    def take(self) -> bool:
        lanes = self._lanes
        steps = [Split(n, cut.size, cut.tail, self._outer[n], self._inner[n]) for n, cut in self._cuts.items()]
        if not self.trial.take(*steps, lanes.split, Reorder((*self._around, *self._inner_order(), lanes.lane))):
            return False
        copies = self._kept() if self._tile.resident else []
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
        return self.split()

    @property
    def _around(self) -> tuple[str, ...]:
        """Vectors within the tiles, so that memory is read row by row."""
        around = [n for n in self.nest.names if n not in (self.vector, *self.beside)]
        return (*(self._outer.get(n, n) for n in around), self._lanes.vectors)

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

    def _kept(self) -> list[Step]:
        """What the taps read, staged in registers; gives the steps that make the copying vector code, to be taken once
        the lanes are.
        """
        (taps,) = self._choice.taps
        name, along = self.trial.fresh(f"{taps.buffer}_kept"), [depends(i, self.vector) for i in taps.indices]
        if along.count(True) != 1 or not self.trial.take(
            Stage(taps.buffer, self._lanes.vectors, "register", False, name)
        ):
            return []
        lanes = along.index(True)
        return [*(Unroll(f"{name}_{d}") for d in range(len(along)) if d != lanes), Vectorize(f"{name}_{lanes}")]
