"""Contractions with few uses of what they read: rows from beyond the second cache pass through the first, once, in the
order in which they lie, while the sums of all positions wait in the second.

Blocks of terms are outermost, so that each block of vectors reads on where the one before stopped; what it reads is
copied to where the tiles of all positions find it near.  The first of these tiles makes the copies while it computes:
the arithmetic hides what they take.  Where rows come more slowly than that tile uses them, all tiles of a block ask for
lines of the next one.  Where one unit multiplies and adds, blocks are of all terms, so that no sums wait, and narrow.
Where positions are too many for that, blocks of vectors are outermost, and the sums of one of them wait.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from opgen.loop.walk import free_vars
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.accesses import accesses
from opgen.schedule.auto.copies.panel import rows_in_lanes
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.nests import depends, is_contiguous
from opgen.schedule.cost.calibration import (
    ALL,
    BLOCKS_STREAMED,
    EXPOSED_BESIDE_COPIES,
    EXPOSED_ROWS,
    FEW_POSITIONS,
    IN_PIECES,
    IN_PLACE_TERMS,
    KEPT,
    KEPT_IN_ORDER,
    NARROW,
    PANEL_ALL_TERMS,
    PREFETCHED_TERMS,
    SCALAR_LINES,
    UNROLLED,
    USES_OF_PANEL,
    WIDE,
)
from opgen.schedule.cost.memory import STREAMED, Memory
from opgen.schedule.steps import (
    Carry,
    Fill,
    Flatten,
    Fuse,
    Parallel,
    Partition,
    Prefetch,
    Reorder,
    Split,
    Step,
    Unroll,
    Vectorize,
)


@dataclass(frozen=True)
class Streamed(LaneNest):
    @property
    def legal(self) -> bool:
        """Whether the nest is of this kind."""
        if not self._suits() or self._terms is None or self._vectors is None:
            return False
        return self._few_bodies() and (self._whole or bool(self._blocked()[0]))

    @property
    def proven(self) -> bool:
        """Whether rows come from beyond the second cache, more slowly than they are used or for many positions."""
        rows = self.roles.vectors[0].dtype
        near = self.memory.holds(self._rows // rows.bytes * rows.compute_type.bytes, 2, ALL)
        return not near and (self._in_order or self._positions_are_many())

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {n: self.nest.extent(n) or 1 for n in self.nest.names if n != self.vector}

    @cached_property
    def _reductions(self) -> dict[str, int]:
        return {s.var: constant_extent(s) or 0 for s in self.nest.inner_loops}

    def _suits(self) -> bool:
        """Whether one operand lies in rows along the lanes and is the same for all positions, the others are not along
        the lanes, and sums can wait in the results.
        """
        rows, scalars = self.roles.vectors, self.roles.scalars
        nest, results = self.nest, self.nest.results
        if len(rows) != 1 or not scalars or len(results) != 1 or not all(self._reductions.values()):
            return False
        if not self._positions or accesses(nest) is None or nest.phases:
            return False
        if any(depends(rows[0].indices, n) for n in self._positions) or not nest.sums_wait:
            return False
        last = (rows[0].indices[-1:], results[0].indices[-1:])
        return all(is_contiguous(e, self.vector, nest.shapes) for e in (rows[0], results[0])) and all(
            depends(e, self.vector) for e in last
        )

    @property
    def _rows(self) -> int:
        """Bytes of the rows."""
        width = self.nest.extent(self.vector) or 1
        return prod(self._reductions.values()) * width * self.roles.vectors[0].dtype.bytes

    @cached_property
    def _in_order(self) -> bool:
        """Whether reading rows is exposed, and no sums wait or the second cache holds them."""
        count, element = prod(self._positions.values()), self.roles.vectors[0].dtype.compute_type.bytes
        waiting = 0 if self._whole else 2 * count * (self.nest.extent(self.vector) or 1) * element
        return self.memory.holds(waiting, 2, ALL) and self._rows_are_exposed

    @cached_property
    def _rows_are_exposed(self) -> bool:
        """Whether reading the rows takes long beside computing."""
        m, rows, count = self.machine, self.roles.vectors[0].dtype, prod(self._positions.values())
        arithmetic = self._rows * count / rows.bytes / self.lanes / m.fma_per_second
        share = EXPOSED_BESIDE_COPIES * EXPOSED_ROWS if self._conditional and count > FEW_POSITIONS else EXPOSED_ROWS
        memory = Memory(m, STREAMED)
        return memory.exposed(memory.seconds(self._rows), arithmetic, share)

    def _positions_are_many(self) -> bool:
        """Whether positions without a border are enough for panels, and the sums of one block of vectors lie within the
        second cache.
        """
        count, each = prod(self._positions.values()), (self._vectors or 1) * self.machine.vector_bytes
        return not self._conditional and count >= USES_OF_PANEL and self.memory.holds(count * each, 2)

    @cached_property
    def _conditional(self) -> bool:
        """Whether conditions speak of positions."""
        return not self.nest.borders.isdisjoint(self._positions)

    @cached_property
    def _vectors(self) -> int | None:
        """Vectors of a tile; None if the lanes' loop cannot be shared evenly, or a row with a border is no tile."""
        if self._whole:
            return NARROW
        for vectors in (WIDE, 2, 1):
            least = list(self._positions.values())[-1] if self._conditional else WIDE
            if self._shared_in(vectors) and self._room(vectors) >= least:
                return vectors
        return None

    def _shared_in(self, vectors: int) -> bool:
        """Whether each thread has as many blocks of so many vectors."""
        return (self.nest.extent(self.vector) or 1) % (self.machine.cores * vectors * self.lanes) == 0

    def _room(self, vectors: int) -> int:
        """Positions of a tile for which there are registers, beside its operands."""
        return (self.machine.registers - vectors - 1) // vectors

    @cached_property
    def _whole(self) -> bool:
        """Whether a block is of all terms, its panel in the second cache."""
        m, terms = self.machine, prod(self._reductions.values())
        if (
            not self.execution.hides_loads
            or self._conditional
            or len(self._reductions) > 1
            or not self._rows_are_exposed
        ):
            return False
        shared = self._shared_in(NARROW) and self._room(NARROW) >= WIDE
        few = shared and self.memory.holds(terms * NARROW * m.vector_bytes, 2, PANEL_ALL_TERMS)
        return few and prod(self._positions.values()) > self._even

    @property
    def _size(self) -> int:
        """Positions of a tile where no condition speaks of them."""
        return self._even if self._whole else self._room(self._vectors or 1)

    @cached_property
    def _even(self) -> int:
        """Positions of narrow tiles that are as even as can be; the first cache holds the lines of their scalars."""
        *_, inner = self._positions
        scalars = [a.strides for a in accesses(self.nest) or () if inner in a.strides and self.vector not in a.strides]
        lines = [max(1, int(SCALAR_LINES * self.machine.l1.lines_at(steps[inner]))) for steps in scalars]
        count = prod(self._positions.values())
        return -(-count // -(-count // min((self._room(NARROW), *lines))))

    def _few_bodies(self) -> bool:
        """Whether the taps that decide on places of a row are few enough to unroll."""
        tile = list(self._positions.values())[-1]
        unrolled = prod(self._reductions[n] for n in self._taps) * tile * (self._vectors or 1)
        return not self._conditional or unrolled <= UNROLLED

    @cached_property
    def _terms(self) -> int | None:
        """Terms of the innermost reduction in a block: what they read is near."""
        extent, element = list(self._reductions.values())[-1], self.roles.vectors[0].dtype.compute_type.bytes
        most = IN_PLACE_TERMS if self._in_place else extent
        vectors, share = self._vectors or 1, KEPT if self._conditional else KEPT_IN_ORDER
        if self._whole:
            return extent
        each = (vectors * self.lanes + self._room(vectors)) * element
        return next(
            (n for n in BLOCKS_STREAMED if extent % n == 0 and n <= most and n * each <= share * self.machine.l1.size),
            None,
        )

    def take(self) -> bool:
        """In order: blocks of terms outermost; else blocks of vectors."""
        in_order = self._in_order
        tile = self._joined()
        part, rest, block, inner, across, lane = (self.trial.fresh(f"{self.vector}_{n}") for n in "pqoivl")
        width, vectors = self.nest.extent(self.vector) or 1, self._vectors or 1
        outer = [] if not self._conditional else list(self._positions)[:-1]
        carried, cut, terms = self._blocked()
        around = (part, block, *outer) if in_order else (block,)
        places, partition = self._split(tile)
        taken = self.trial.take(
            Reorder((self.vector, *outer, tile)),
            *([Split(self.vector, width // self.machine.cores, "exact", part, rest)] if in_order else []),
            Split(rest if in_order else self.vector, vectors * self.lanes, "exact", block, inner),
            Split(inner, self.lanes, "exact", across, lane),
            *cut,
            Reorder((*around, tile, across, lane)),
            *(Carry(n, block if in_order else tile) for n in carried),
            *partition,
            Reorder((*around[around.index(block) + 1 :], *places[:-1], *terms, places[-1], across, lane)),
            *(Unroll(n) for n in (places[-1], across, *self._taps)),
            Vectorize(lane),
        )
        if not taken or not self._panel(block if in_order else carried[-1], terms[0]):
            return False
        if self._whole or (carried and self._waits):
            self._prefetched(carried[-1] if carried else block, terms[0])
        return self.trial.take(Parallel(part if in_order else block))

    def _joined(self) -> str:
        """The loop of a tile's positions: loops of which no condition speaks are joined."""
        positions = list(self._positions)
        if self.nest.names[-1] != self.vector:
            self.trial.take(Reorder((*positions, self.vector)))
        if self._conditional:
            return positions[-1]
        inner = positions.pop()
        while positions:
            outer = positions.pop()
            both = self.trial.fresh(f"{outer}_{inner}")
            if not self.trial.take(Flatten(outer, inner, both)):
                self.trial.take(Fuse(outer, inner, both))
            inner = both
        return inner

    def _split(self, tile: str) -> tuple[tuple[str, ...], list[Step]]:
        """The loops of tiles and of positions in one, and the steps that make them: the last tile may be smaller."""
        if self._conditional:
            return (tile,), []
        extent, size = prod(self._positions.values()), self._size
        outer, inner = self.trial.fresh(f"{tile}_o"), self.trial.fresh(f"{tile}_i")
        if extent <= size:
            return (tile,), []
        if extent % size == 0:
            return (outer, inner), [Split(tile, size, "exact", outer, inner), Partition(outer, (1,))]
        return (outer, inner), [Split(tile, size, "guard", outer, inner), Partition(outer, (1, -1))]

    def _blocked(self) -> tuple[list[str], list[Step], list[str]]:
        """The reductions that are carried, the step that makes blocks of the last one, and what is left inside."""
        *names, last = self._reductions
        if self._terms == self._reductions[last]:
            return names, [], [last]
        outer, inner = self.trial.fresh(f"{last}_o"), self.trial.fresh(f"{last}_i")
        return [*names, outer], [Split(last, self._terms or 1, "exact", outer, inner)], [inner]

    @property
    def _in_place(self) -> bool:
        """Whether tiles read rows where they are: copies of what only a few tiles of each row of positions read would
        not pay, where one unit multiplies and adds, and so hides what comes from the second cache.
        """
        rows = self.roles.vectors[0].dtype
        few = self._conditional and prod(self._positions.values()) <= FEW_POSITIONS
        return few and self.execution.hides_loads and rows == rows.compute_type

    @cached_property
    def _taps(self) -> list[str]:
        """Reductions of which conditions speak together with positions of a tile."""
        if not self._conditional:
            return []
        tile = list(self._positions)[-1]
        about = {n for c in self.nest.conditions if depends(c, tile) for n in free_vars(c)}
        return [n for n in self._reductions if n in about]

    def _panel(self, at: str, terms: str) -> bool:
        """A copy of what a block of terms and vectors reads of the rows, just before its use or by the first tile; none
        if they are read in place.
        """
        if self._in_place:
            return True
        name, steps = rows_in_lanes(self.trial, self.roles.vectors[0], at, self.lanes)
        copied = self.trial.take(*steps)
        if copied and not self._conditional:
            self.trial.take(Fill(name, terms))
        return copied

    @property
    def _waits(self) -> bool:
        """Whether a tile computes sooner than the rows that it uses come."""
        m, last = self.machine, list(self._positions.values())[-1]
        positions = last if self._conditional else self._room(self._vectors or 1)
        return IN_PIECES * m.vector_bytes / m.l3.bytes_per_second > positions / m.fma_per_second

    def _prefetched(self, around: str, terms: str) -> None:
        """Ask early for what the next block of terms reads, evenly: a line every so many terms, whose bodies stand side
        by side unless those of taps do.
        """
        extent, tile = prod(self._positions.values()), list(self._positions.values())[-1]
        tiles = extent // tile if self._conditional else -(-extent // self._size)
        fits = (n for n in PREFETCHED_TERMS if (self._terms or 1) % n == 0 and n * (self._vectors or 1) <= tiles)
        rate, outer, inner = next(fits, 1), self.trial.fresh(f"{terms}_o"), self.trial.fresh(f"{terms}_i")
        steps: list[Step] = [] if rate == 1 else [Split(terms, rate, "exact", outer, inner)]
        if rate > 1 and not self._conditional:
            steps.append(Unroll(inner))
        self.trial.take(*steps, Prefetch(self.roles.vectors[0].buffer, around, terms if rate == 1 else outer))
