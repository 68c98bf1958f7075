"""Contractions with few uses of what they read: rows from beyond the second cache pass through the first, once, in the
order in which they lie, while the sums of all positions wait in the second.

Blocks of terms are outermost, so that each block of vectors reads on where the one before stopped; what it reads is
copied to where the tiles of all positions find it near.  The first of these tiles makes the copies while it computes:
the arithmetic hides what they take.  Where rows come more slowly than that tile uses them, all tiles of a block ask for
lines of the next one.  Where one unit multiplies and adds, blocks are of all terms, so that no sums wait, and narrow.
Where positions are too many for that, blocks of vectors are outermost, and the sums of one of them wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

from opgen.loop.walk import free_vars
from opgen.schedule.auto.accesses import accesses
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.nests import depends, is_contiguous
from opgen.schedule.auto.plan import Carried, Cut, Operand, Plan
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
from opgen.schedule.steps import Flatten, Fuse, Prefetch, Reorder, Split, Step, Unroll


@dataclass(frozen=True)
class Streamed(LaneNest):
    @property
    def legal(self) -> bool:
        """Whether the nest is of this kind."""
        if not self._suits() or self._terms is None or self._vectors is None:
            return False
        return self._few_bodies() and (self._whole or self._waiting)

    @property
    def proven(self) -> bool:
        """Whether rows come from beyond the second cache, more slowly than they are used or for many positions."""
        rows = self.roles.vectors[0].dtype
        near = self.memory.holds(self._rows // rows.bytes * rows.compute_type.bytes, 2, ALL)
        return not near and (self._in_order or self._positions_are_many())

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {n: self._extent(n) for n in self.roles.positions}

    @property
    def _reductions(self) -> Mapping[str, int]:
        return self.roles.counts

    @property
    def _waiting(self) -> bool:
        """Whether sums wait while blocks of terms go by."""
        return len(self._reductions) > 1 or self._terms != self._reductions[self.roles.terms[-1]]

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
        width = self.width
        return prod(self._reductions.values()) * width * self.roles.vectors[0].dtype.bytes

    @cached_property
    def _in_order(self) -> bool:
        """Whether reading rows is exposed, and no sums wait or the second cache holds them."""
        count, element = prod(self._positions.values()), self.roles.vectors[0].dtype.compute_type.bytes
        waiting = 0 if self._whole else 2 * count * (self.width) * element
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
        return (self.width) % (self.machine.cores * vectors * self.lanes) == 0

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
        x, k, (*images, last), rows = self._joined(), self.vector, self.roles.terms, self.roles.vectors[0]
        shared, vectors, extent = f"{k}.o", (self._vectors or 1) * self.lanes, prod(self._positions.values())
        cuts: list[Cut] = []
        if self._in_order:
            shared = f"{k}.p"
            cuts.append(Cut(k, self.width // self.machine.cores, shared, f"{k}.q"))
        cuts.append(Cut(f"{k}.q" if self._in_order else k, vectors, f"{k}.o", f"{k}.i"))
        order = (*dict.fromkeys((shared, f"{k}.o")), *(self.roles.positions[:-1] if self._conditional else ()))
        if self._terms != self._reductions[last]:
            cuts.append(Cut(last, self._terms or 1, f"{last}.o", f"{last}.i"))
            images, last = [*images, f"{last}.o"], f"{last}.i"
        tiles, tile = x, x
        if not self._conditional and extent > self._size:  # the last tile may be smaller
            tiles, tile, even = f"{x}.o", f"{x}.i", extent % self._size == 0
            ends = (1,) if even else (1, -1)
            cuts.append(Cut(x, self._size, tiles, tile, "exact" if even else "guard", ends))
            order = (*order, tiles)
        at, around = f"{k}.o" if self._in_order else tiles, images[-1] if images else f"{k}.o"
        filled, where = None if self._conditional else last, f"{k}.o" if self._in_order else around
        panel = Operand.in_rows(rows.buffer, len(rows.indices), where, self.lanes, filled)
        names = [self.trial.fresh(n.replace(".", "_")) if "." in n else n for n in (around, last)]
        taken = self.realised(
            Plan(
                "streamed",
                f"{k}.l",
                cuts=(*cuts, Cut(f"{k}.i", self.lanes, f"{k}.v", f"{k}.l")),
                order=order,
                carried=tuple(Carried(n, at) for n in images),
                terms=(last,),
                unrolled=tuple(self._taps),
                tile=(tile, f"{k}.v"),
                operands=() if self._in_place else (panel,),
                threads=(shared,),
            )
        )
        if taken and (self._whole or (images and self._waits)):
            self._prefetched(*names)
        return taken

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
        if inner not in self.trial.nest(self.vector).names:  # what is fused stands apart from the lanes' loop
            self.trial.take(Reorder((self.vector, inner)))
        return inner

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
