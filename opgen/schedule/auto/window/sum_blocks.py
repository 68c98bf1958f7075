"""Windows of few results, each a sum of many terms that come from afar: memory is read in order, the sums wait in it.

    for part: for y in blocks: for x in tiles: for vectors: for the rows that are read: for x, s: sum[part, r, s]

A tile holds some rows and some columns, so that the sums, which are loaded and stored for each, have enough to do.  The
rows are shared among threads in parts with sums of their own, which are added up at the end.

Where the second cache holds all that is read, but the first not one vector of each place, blocks of vectors are
outermost in place of parts: what lies together is read together, and threads share the blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from opgen.schedule.auto.cuts import Cut, largest_divisor, sizes
from opgen.schedule.auto.ends import set_apart
from opgen.schedule.auto.nests import read_bytes
from opgen.schedule.auto.walks import Walk
from opgen.schedule.auto.window.nest import WindowNest
from opgen.schedule.cost.calibration import (
    KEPT_SUMS,
    KEPT_WINDOW,
    NEIGHBOURS,
    PARTS,
    STREAMS,
    SUM_OPERANDS,
    SUM_REGISTERS,
    SUM_TERMS,
    SUM_TERMS_NEAR,
    TAPS,
    TURNS,
)
from opgen.schedule.split import Tail
from opgen.schedule.steps import (
    Parallel,
    Permute,
    Regroup,
    Reorder,
    Rfactor,
    Skew,
    Split,
    Stage,
    Step,
    Unroll,
    Vectorize,
)


@dataclass(frozen=True)
class SumBlocks(WindowNest):
    @property
    def legal(self) -> bool:
        """Whether all results are whole vectors and taps, and the terms end in rows and columns."""
        return super().legal and self.row is not None and self._suits

    @property
    def proven(self) -> bool:
        """Whether memory is read in order so, or what lies together read together, and threads have parts."""
        parts = self._parts > 1 or self.machine.cores == 1 or not self._far
        return self.few_results and parts and bool(self._far or self._block)

    def tile(self) -> bool:
        x_o, x_i = self._names(self.column.term)
        y_o, y_i = self._names(self._row.term)
        v_o, v_l = self._names(self.vector)
        high, wide = self._tile
        blocks, vectors = self._blocks()
        splits = (
            Split(self.column.term, wide.size, wide.tail, x_o, x_i),
            Split(self._row.term, high.size, high.tail, y_o, y_i),
            Split(vectors, self.lanes, "exact", v_o, v_l),
        )
        if not self.trial.take(*splits):
            return False
        around = [*blocks, *self._shared(y_o)]
        rows, factor = self._rows(y_i)
        tile = (*rows, x_i, self.column.result)
        both = self.trial.fresh("_".join(rows))
        return (
            bool(around)
            and self.trial.take(
                Regroup(y_i, x_o),
                Reorder((*around, x_o, v_o, *tile, v_l)),
                Skew(*rows, factor, both),
            )
            and self._vectors(v_o, (both, *tile), v_l, around[0])
            and set_apart(self.trial, self.nest, self.column, x_o, wide)
        )

    # What there is ----------------------------------------------------------------------------------

    @property
    def _suits(self) -> bool:
        results = {self.vector, self._row.result, self.column.result}
        ends = tuple(self.roles.counts)[-2:] == (self._row.term, self.column.term)
        whole = self._extent(self.vector) % self.lanes == 0 and self._rows("")[1] != 0
        return results == set(self.nest.names) and ends and whole and self._kept <= TAPS

    @property
    def _row(self) -> Walk:
        assert self.row is not None
        return self.row

    # Which tile -----------------------------------------------------------------------------------

    @cached_property
    def _kept(self) -> int:
        return self._extent(self._row.result) * self._extent(self.column.result)

    @cached_property
    def _far(self) -> bool:
        """Whether what is read lies beyond the second cache, or fills it and tiles are full; where registers are short
        for a tile, whether it also takes longer to come, in pieces, than the arithmetic.
        """
        size, l2 = read_bytes(self.nest), self.machine.l2.size
        high, wide = self._best(SUM_TERMS)
        terms = high.size * wide.size
        if (
            size <= (KEPT_WINDOW if terms < SUM_TERMS else KEPT_SUMS) * l2
            or self._kept * self._sum_bytes > self.machine.l1.size
        ):
            return False
        if self._kept + terms + SUM_OPERANDS <= self.machine.registers:
            return True
        return size > KEPT_WINDOW * l2 and NEIGHBOURS * self.memory.seconds(size) > self._arithmetic

    @cached_property
    def _block(self) -> int:
        """How many vectors are done together where all is near; 0 where the sums of one vector had better stay in
        registers, as the first cache holds one vector of all places, or as lines evict each other.
        """
        if self._far or not self.memory.holds(read_bytes(self.nest), 2, KEPT_WINDOW):
            return 0
        lines = self.machine.l1.lines_at(self.column.stride(self.nest))
        high, wide = self._best(SUM_TERMS_NEAR)
        terms = high.size * wide.size
        read = self._read(high, wide) + terms
        down, across = (self.roles.counts[w.term] for w in (self._row, self.column))
        if self._read(Cut(down, down), Cut(across, across)) <= lines or read > lines:
            return 0
        if self._kept + terms + SUM_OPERANDS > self.machine.registers:
            return 0
        vectors, each = self._extent(self.vector) // self.lanes, (read + self._kept) * self.machine.vector_bytes
        most = min(vectors // min(self.machine.cores, TURNS), int(self.memory.usable(1)) // each)
        found = largest_divisor(vectors, max(1, most))
        return found if found > 1 else 0

    @cached_property
    def _tile(self) -> tuple[Cut, Cut]:
        """Rows and columns of a tile."""
        return self._best(SUM_TERMS if self._far else SUM_TERMS_NEAR)

    def _best(self, most: int) -> tuple[Cut, Cut]:
        """Those that load and store least for each term; of equals the most rows, or, for tiles of many terms, columns,
        as those have fewer bodies at the border.
        """
        down, across = self.roles.counts[self._row.term], self.roles.counts[self.column.term]
        room = max(1, most * min(self.machine.registers, SUM_REGISTERS) // SUM_REGISTERS)
        tiles = [
            (Cut(down, h), Cut(across, w))
            for h in sizes(down, 1, room)
            for w in sizes(across, 1, 1 if self._streamed else room)
            if h * w <= room and (h == 1 or not self._streamed or self._rows_read(h) <= STREAMS)
        ]
        return min(tiles, key=lambda t: (self._cost(*t), -t[most > SUM_TERMS].size))

    def _cost(self, high: Cut, wide: Cut) -> float:
        terms = high.size * wide.size
        return (self._read(high, wide) + terms + 2 * self._kept) / terms * high.waste * wide.waste

    def _read(self, high: Cut, wide: Cut) -> int:
        """How many places of the map a tile reads."""
        return self._rows_read(high.size) * self.column.places(self._extent(self.column.result), wide.size)

    def _rows_read(self, high: int) -> int:
        """How many rows of the map a tile reads."""
        return self._row.places(self._extent(self._row.result), high)

    @cached_property
    def _streamed(self) -> bool:
        """Whether what is read comes from memory, and had better be read as it lies: one column after the other."""
        return self.memory.is_far(read_bytes(self.nest))

    @property
    def _arithmetic(self) -> float:
        """The seconds that the sums take."""
        vectors = self._kept * self._sum_bytes / self.machine.vector_bytes
        return prod(self.roles.counts.values()) * vectors / self.machine.fma_per_second

    @cached_property
    def _sum_bytes(self) -> int:
        """The bytes of one sum for all lanes."""
        return self._extent(self.vector) * self.nest.allocations[0].dtype.bytes

    # Steps ------------------------------------------------------------------------------------------

    def _names(self, loop: str) -> tuple[str, str]:
        inner = "l" if loop == self.vector else "i"
        return self.trial.fresh(f"{loop}_o"), self.trial.fresh(f"{loop}_{inner}")

    def _rows(self, inner: str) -> tuple[tuple[str, str], int]:
        """The rows of taps and those of a tile, the one that steps less first, and how many of its steps are one of the
        other; 0 if that is not whole.
        """
        step, apart = self._row.step, self._row.apart
        if apart % step == 0:
            return (self._row.result, inner), apart // step
        return (inner, self._row.result), step // apart if step % apart == 0 else 0

    @property
    def _sums(self) -> str:
        return self.nest.allocations[0].name

    @cached_property
    def _parts(self) -> int:
        """How many parts there are: a power of two, no more than there is to share or the machine has cores, however
        many threads will run.
        """
        parts = 1
        while self._far and 2 * parts <= min(self.machine.cores, self._counts[self._divided], PARTS):
            parts *= 2
        return parts

    @cached_property
    def _counts(self) -> dict[str, int]:
        """The iterations of the loops that may be in parts: whole images, or blocks of rows."""
        ahead = {n: e for n, e in self.roles.counts.items() if n not in (self._row.term, self.column.term)}
        return {**ahead, self._row.term: self._tile[0].count}

    @cached_property
    def _divided(self) -> str:
        """The outermost loop that has an iteration for each core, or else the one that has most."""
        enough = [n for n, count in self._counts.items() if count >= self.machine.cores]
        return enough[0] if enough else max(self._counts, key=lambda n: self._counts[n])

    @cached_property
    def _partial(self) -> str:
        return self.trial.fresh(f"{self._sums}_part")

    def _blocks(self) -> tuple[list[str], str]:
        """A loop over blocks of vectors, if there is one, and the loop of vectors to be split into lanes."""
        if not self._block:
            return [], self.vector
        v_b, v_v = self.trial.fresh(f"{self.vector}_b"), self.trial.fresh(f"{self.vector}_v")
        taken = self.trial.take(Split(self.vector, self.lanes * self._block, "exact", v_b, v_v))
        return ([v_b], v_v) if taken else ([], self.vector)

    def _shared(self, blocks: str) -> list[str]:
        """A loop over terms in parts; gives the loops around the tiles of columns, none if that is refused."""
        around = {n: [blocks if n == self._row.term else n] for n in self._counts}
        if self._parts == 1:
            return [n for (n,) in around.values()]
        (loop,) = around[self._divided]
        part, rest = self.trial.fresh(f"{loop}_p"), self.trial.fresh(f"{loop}_b")
        each = -(-self._counts[self._divided] // self._parts)
        tail: Tail = "exact" if self._counts[self._divided] % each == 0 else "min"
        if not self.trial.take(Split(loop, each, tail, part, rest), Rfactor(part, self._parts, self._partial)):
            return []
        around[self._divided] = [f"{part}_o", rest]
        return [f"{part}_l", *(n for loops in around.values() for n in loops)]

    def _vectors(self, at: str, tile: tuple[str, ...], lane: str, part: str) -> bool:
        """The sums of a tile in registers, lanes for all that is done with them, and threads."""
        steps: list[Step] = []
        axes, sums = 4, self._sums
        if self._parts > 1:
            axes, sums = 5, self._partial
            steps.append(Permute(sums, (4, 0, 1, 2, 3)))
        name = self.trial.fresh(f"{self._sums}_kept")
        steps.append(Stage(sums, at, "register", False, name))
        steps += [Unroll(n) for n in tile]
        if self._parts > 1:
            steps += [Unroll(f"{sums}_i"), *(Unroll(f"{sums}_{1 << k}") for k in range(self._parts.bit_length() - 1))]
        steps += [Vectorize(lane), *(Unroll(f"{name}_{d}") for d in range(axes - 1)), Vectorize(f"{name}_{axes - 1}")]
        if self._parts > 1 or self._block:
            steps.append(Parallel(part))
        return self.trial.take(*steps)
