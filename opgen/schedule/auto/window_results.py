"""Windows of few terms: a tile of results in registers, the taps unrolled inside."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from opgen.loop.nodes import Load
from opgen.machine import Machine
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.copies import stage_in_registers
from opgen.schedule.auto.nests import Nest, depends, divisibility
from opgen.schedule.auto.trial import Trial
from opgen.schedule.auto.walks import Walk
from opgen.schedule.auto.window_tiles import Cut, sizes
from opgen.schedule.split import Tail
from opgen.schedule.steps import Parallel, Partition, Reorder, Skew, Split, Step, Unroll, Vectorize

ACCUMULATORS = 8
"""Most results of a tile, for each phase of a stride: enough to hide the latency of the arithmetic."""
TAPS = 25
"""Most taps that are unrolled in two dimensions; else the rows of taps stay a loop."""
BALANCED = 4
"""So many iterations for each thread are shared evenly enough."""
FAR = 2
"""What a read of the map costs beside one of the taps: it may straddle two lines, or come from a further cache."""


@dataclass(frozen=True)
class ResultTile:
    nest: Nest
    trial: Trial
    vector: str
    lanes: int
    machine: Machine
    row: Walk | None
    column: Walk

    def run(self) -> bool:
        cuts = self._cuts()
        width = self._extent(self.vector)
        wide: Tail = "exact" if width % self.lanes == 0 else "overlap"
        fresh = self.trial.fresh
        v_o, v_l = fresh(f"{self.vector}_o"), fresh(f"{self.vector}_l")
        outer = {n: fresh(f"{n}_o") for n in cuts}
        inner = {n: fresh(f"{n}_i") for n in cuts}
        steps: list[Step] = [Split(n, cut.size, cut.tail, outer[n], inner[n]) for n, cut in cuts.items()]
        steps.append(Split(self.vector, self.lanes, wide, v_o, v_l))
        order = self._outer_order(cuts, outer, v_o, wide)
        steps.append(Reorder((*order, *self._inner_order(inner), v_l)))
        if not self.trial.take(*steps):
            return False
        copies = self._kept(cuts, v_o)
        taps = self._skewed(inner)
        if not self.trial.take(*(Unroll(n) for n in (*taps, *inner.values())), Vectorize(v_l), *copies):
            return False
        self._spread([n for n in order if n != v_o or wide == "exact"], cuts, outer)
        for n, cut in cuts.items():
            self._set_apart(n, outer[n], cut)
        return True

    # Loops ------------------------------------------------------------------------------------------

    def _extent(self, loop: str) -> int:
        extent = self.nest.extent(loop)
        assert extent is not None
        return extent

    @cached_property
    def _terms(self) -> dict[str, int]:
        return {s.var: constant_extent(s) or 0 for s in self.nest.inner_loops}

    @cached_property
    def _unrolled(self) -> dict[str, int]:
        """The loops of taps that are unrolled."""
        if prod(self._terms.values()) <= TAPS:
            return self._terms
        taps = self._terms[self.column.term]
        return {self.column.term: taps} if taps <= TAPS else {}

    @property
    def _rows_unrolled(self) -> bool:
        return self.row is not None and self.row.term in self._unrolled

    def _outer_order(self, cuts: dict[str, Cut], outer: dict[str, str], v_o: str, wide: Tail) -> list[str]:
        """Lanes within the tiles, so that memory is read row by row; around them where one vector's map is small."""
        around = [n for n in self.nest.names if n != self.vector]
        tiles = [n for n in around if n in cuts]
        whole = prod(self._extent(n) for n in tiles) * self.machine.vector_bytes <= self.machine.l1.size // 2
        order = [outer.get(n, n) for n in around]
        if wide == "overlap" or not whole:
            return [*order, v_o]
        at = min((around.index(n) for n in tiles), default=len(around))
        return [*order[:at], v_o, *order[at:]]

    def _inner_order(self, inner: dict[str, str]) -> list[str]:
        """Taps and results of a tile, row by row: all that one row serves stands together."""
        rows = [] if self.row is None else [inner[self.row.result]] if self.row.result in inner else []
        columns = [inner[self.column.result]] if self.column.result in inner else []
        own = [self.column.term] if self.row is None else [self.row.term, *rows, self.column.term]
        others = [n for n in self._terms if n not in own]
        return [*others, *own, *columns]

    def _skewed(self, inner: dict[str, str]) -> list[str]:
        """Rows of taps run over the rows that are read; gives the loops of taps to be unrolled."""
        taps = list(self._unrolled)
        if self.row is None or not self._rows_unrolled or self.row.result not in inner or self.row.factor is None:
            return taps
        name = self.trial.fresh(f"{self.row.term}_{self.row.result}")
        if self.trial.take(Skew(self.row.term, inner[self.row.result], self.row.factor, name)):
            taps[taps.index(self.row.term)] = name
        return taps

    def _spread(self, order: list[str], cuts: dict[str, Cut], outer: dict[str, str]) -> None:
        """Threads: over loops whose ends are not set apart, so that there is one parallel region."""
        apart = {outer[n] for n, cut in cuts.items() if n == self.column.result or cut.tail != "exact"}
        ahead = [n for n in order if n not in apart]
        counts = {outer[n]: cut.count for n, cut in cuts.items()}
        counts |= {n: self._extent(n) for n in self.nest.names}
        few = bool(ahead) and counts.get(ahead[0], self.machine.cores) < BALANCED * self.machine.cores
        self.trial.fused_prefix(ahead[: 2 if few else 1], Parallel)

    def _set_apart(self, loop: str, tiles: str, cut: Cut) -> None:
        """Columns at the border; and rows only where a tile reaches over the end of the results."""
        if not any(depends(c, loop) for c in self.nest.conditions) and cut.tail == "exact":
            return
        walk = self.column if loop == self.column.result else self.row
        reach = 0
        if walk is not None and (walk is self.column or not self._rows_unrolled):
            taps = self._terms[walk.term]
            reach = max(1, (taps - 1) * abs(walk.apart) // (2 * abs(walk.step))) if walk is self.column else 0
        at = cut.border(reach)
        if at:
            self.trial.take(Partition(tiles, at))

    # Sizes ------------------------------------------------------------------------------------------

    def _cuts(self) -> dict[str, Cut]:
        """The tiles that read least for what they compute; taller rather than wider, as rows at the border cost no
        code.
        """
        steps = divisibility(self.nest)
        wide, high = self.column.result, None if self.row is None else self.row.result
        across, down = self._extent(wide), 1 if high is None else self._extent(high)
        unit, unit_down = steps.get(wide, 1), 1 if high is None else steps.get(high, 1)
        most = ACCUMULATORS if unit * unit_down == 1 else ACCUMULATORS // 2
        best: tuple[float, Cut, Cut] | None = None
        for h in sizes(down, unit_down, most):
            for w in sizes(across, unit, most):
                if h // unit_down * (w // unit) > most:
                    continue
                cost = self._cost(Cut(down, h), Cut(across, w), unit_down, unit)
                if best is None or cost < best[0] or (cost == best[0] and h > best[1].size):
                    best = (cost, Cut(down, h), Cut(across, w))
        assert best is not None
        cuts = {wide: best[2]}
        return cuts if high is None else {wide: best[2], high: best[1]}

    def _cost(self, high: Cut, wide: Cut, unit_down: int, unit: int) -> float:
        """Reads for each accumulation."""
        columns = self.column.places(wide.size // unit, self._terms[self.column.term], unit)
        rows, taps = 1, prod(self._unrolled.values())
        if self._rows_unrolled and self.row is not None:
            rows = self.row.places(high.size // unit_down, self._terms[self.row.term], unit_down)
        elif self.row is not None:
            rows = high.size
        reads = taps if self._resident(high.size * wide.size, columns) else taps * max(1, high.size // unit_down)
        work = high.size * wide.size * taps / (unit * unit_down)
        return (FAR * rows * columns + reads) / work * high.waste * wide.waste

    def _resident(self, results: int, columns: int) -> bool:
        """Whether what the taps read stays in registers beside the results and a row of the map."""
        return len(self._beside) == 1 and prod(self._terms.values()) + results + columns < self.machine.registers

    # Copies -----------------------------------------------------------------------------------------

    @cached_property
    def _beside(self) -> list[Load]:
        """Reads that are the same for all results of a tile."""
        tile = [self.column.result] + ([] if self.row is None else [self.row.result])
        return [e for e in dict.fromkeys(self.nest.outside_loads) if not any(depends(e.indices, n) for n in tile)]

    def _kept(self, cuts: dict[str, Cut], v_o: str) -> list[Step]:
        """What the taps read, kept in registers for a tile; gives the steps still to be taken for the copy."""
        columns = self.column.places(cuts[self.column.result].size, self._terms[self.column.term])
        if not self._resident(prod(c.size for c in cuts.values()), columns):
            return []
        return stage_in_registers(self.trial, self._beside[0], v_o, self.vector)
