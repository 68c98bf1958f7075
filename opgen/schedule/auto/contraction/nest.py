"""Contractions: a register tile of positions by vectors, the reduction inside.

Each scalar that is read serves all vectors of the tile, and each vector all positions.  With 14 accumulators the
arithmetic units are busy and the loads are not.  The order of the loops around the tile is chosen by the estimated cost
of their fetches (`orders.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod

from opgen.locks import cached_property
from opgen.loop.walk import free_vars
from opgen.machine import Machine
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.contraction.orders import Block, Order, Orders, Shape
from opgen.schedule.auto.contraction.tile import TileRule
from opgen.schedule.auto.copies.prepare import Phases, split_phases
from opgen.schedule.auto.ends import needed
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.nests import depends, loops_of_reuse, own_axis, read_bytes
from opgen.schedule.auto.plan import Ahead, Carried, Cut, Ends, Plan
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import (
    ALL,
    BLOCKS,
    FAR_READS,
    FUSED_SHARED,
    LOOPS_OF_TERMS,
    PANELS_ALIKE,
    PLANS_TRIED,
    UNROLLED,
    USES_ANEW,
)
from opgen.schedule.cost.traffic import Traffic
from opgen.schedule.split import Tail


@dataclass(frozen=True)
class Contraction(LaneNest):
    phases: Phases
    joined: bool = True
    """True if a short loop of positions may be joined by the next."""

    @cached_property
    def loop(self) -> str | None:
        """Return the loop of positions: the innermost on which the lanes' operand does not depend."""
        found = [n for n in loops_of_reuse(self.nest, self.vector) if n not in self.phases.remainders]
        return found[0] if found else None

    def take(self) -> bool:
        if self.loop is None:
            return False
        plans = (self._plan(order) for order in self._orders(self.loop))
        if any(self.trial.attempt(partial(self.realised, plan)) for plan in plans):
            return True
        return len(self.tile) > 2 and replace(self, joined=False).take()

    @cached_property
    def _rule(self) -> TileRule:
        assert self.loop is not None
        return TileRule(self.nest, self.loop, self.vector, self.lanes, self.phases, self.machine, self.joined)

    @cached_property
    def tile(self) -> dict[str, int]:
        """Return the iterations of each loop in a tile, the vector loop last."""
        return self.trial.decisions.choose([self._rule.best, *self._rule.others])

    def _orders(self, loop: str) -> list[Order]:
        """Return the loop orders to try, the best first; the last is one that needs no estimate."""
        results = {n: self._extent(n) for n in self.nest.names}
        extents = [(s.var, constant_extent(s)) for s in self.nest.inner_loops]
        known = {n: e for n, e in extents if e is not None}
        whole = {n for n, size in self.tile.items() if n != self.vector and size == results[n]}
        plain = Order(tuple(n for n in self._outer_order(loop) if n not in whole))
        found = self._rule.accesses
        if self.phases.remainders or found is None or len(known) < len(extents):
            return [*self._waiting(plain, extents), plain]
        about = {n for c in self.nest.conditions for n in free_vars(c)}
        shape = Shape(
            results,
            known,
            self.tile,
            self.lanes,
            tuple(n for n in self.tile if n in self._overlapping or (n in about and self.tile[n] < results[n])),
            self._carries,
            tuple(n for n in results if n in about),
        )
        ranked = Orders(shape, Traffic(found), self.machine).ranked()
        if not self._rule.in_rows and self.vector in ranked[0].loops and not self._again(ranked[0]):
            best = ranked[0]
            ranked = sorted(ranked, key=lambda p: not self._panels(p, best))
        return [*ranked[:PLANS_TRIED], plain]

    def _waiting(self, plain: Order, extents: Sequence[tuple[str, int | None]]) -> list[Order]:
        """Return orders with blocks of terms outermost and accumulators spilled to the results between blocks.

        They are for sums whose terms exceed the near caches: the second cache holds the operands of one block beside
        those of the next.  Only the first two loops over terms need known bounds.
        """
        room, size = self.memory.usable(2), read_bytes(self.nest)
        if (
            self.phases.remainders
            or not self._carries
            or self.memory.holds(size, 2, FAR_READS)
            or len(extents) < LOOPS_OF_TERMS
        ):
            return []
        (first, count), (second, length) = extents[:2]
        if count is None or length is None or count == 1:
            return []
        held = [n for n in BLOCKS if n < length and length % n == 0 and size * n <= room * count * length]
        if not held or size <= room * count:
            return [Order(plain.loops, (first,))]
        return [Order(plain.loops, (first, second), Block(second, max(held)))]

    def _again(self, order: Order) -> bool:
        """Return True if tiles reuse the vectors' operand enough for a panel in each iteration of the loops around."""
        around = prod(self._extent(n) // self.tile.get(n, 1) for n in order.loops[: order.loops.index(self.vector)])
        tiles = prod(self._extent(n) // self.tile.get(n, 1) for n in {*order.loops} - {self.vector})
        return tiles >= USES_ANEW * around

    def _panels(self, order: Order, best: Order) -> bool:
        """Return True if an order is nearly the best, and has vectors outermost.

        The vectors' operand can then be a panel, which the estimate does not account for.
        """
        return order.loops[0] == self.vector and order.seconds <= PANELS_ALIKE * best.seconds

    @property
    def _carries(self) -> bool:
        """Return True if partial sums can be kept in the results: of the same type, and contiguous along the lanes."""
        whole = {self.vector, *(n for c in self.nest.conditions for n in free_vars(c))}
        return self.nest.sums_wait and self._rule.in_rows and whole.isdisjoint(self._overlapping)

    @cached_property
    def _overlapping(self) -> list[str]:
        """Return the loops whose last tile overlaps the one before: their tiles are not independent."""
        return [n for n in self.nest.names if n in self.tile and self._extent(n) % self.tile[n]]

    def _plan(self, order: Order) -> Plan:
        """Return a plan of the tile in an order of the loops around it."""
        k, size, cuts = self.vector, self.tile[self.vector], list[Cut]()
        if order.block is not None:
            n, block = order.block.loop, order.block.size
            cuts.append(Cut(n, block, f"{n}.o", f"{n}.i", "exact" if self.roles.is_whole(n, block) else "min"))
        for n, count in self.tile.items():
            if n != k and count < self._extent(n):
                shorter = bool(order.carried) and n in self._overlapping  # a spilled sum must not be added twice
                cuts.append(Cut.even(n, self._extent(n), count) if shorter else self._cut(n, count))
        if size == self.lanes:
            cuts.append(replace(self._cut(k, size), inner=f"{k}.l"))
        else:
            cuts += [self._cut(k, size), Cut(f"{k}.i", self.lanes, f"{k}.v", f"{k}.l")]
        pieces = {c.loop: [c.inner, c.outer] for c in cuts}
        around = tuple(pieces[n][1] if n in pieces else n for n in order.loops)
        tile = (
            *(pieces[n][0] if n in pieces else n for n in self.tile if n != k),
            *([f"{k}.v"] if size > self.lanes else []),
        )
        blocked = None if order.block is None else order.block.loop
        at = (*around, *tile, f"{k}.l")[0]
        ends = self._ends()
        return Plan(
            "nest",
            f"{k}.l",
            cuts=tuple(cuts),
            order=around,
            carried=tuple(Carried(f"{n}.o" if n == blocked else n, at) for n in order.carried),
            terms=tuple(
                f"{n}.i" if n == blocked else n for n in self.roles.terms if n == blocked or n not in order.carried
            ),
            tile=tile,
            ahead=() if order.carried or not around else self._early(around[-1]),
            threads=self._shared(around, cuts, ends),
            ends=ends,
        )

    def _cut(self, loop: str, size: int) -> Cut:
        exact = self.roles.is_whole(loop, size)
        tail: Tail = "exact" if exact else "overlap" if size < self._extent(loop) else "guard"
        return Cut(loop, size, f"{loop}.o", f"{loop}.i", tail)

    def _early(self, at: str) -> tuple[Ahead, ...]:
        """Return prefetches of narrow scalars in lines from beyond the second cache.

        A line serves many multiply-adds, so that the hardware does not fetch the next in time.
        """
        if not self.execution.hides_loads or self.phases.remainders:
            return ()
        given, term = {i.name for i in self.trial.kernel.inputs}, self.roles.terms[-1]
        return tuple(
            Ahead(e.buffer, at, term)
            for e in {e.buffer: e for e in self.nest.summed if e.buffer in given}.values()
            if e.dtype != e.dtype.compute_type
            and not depends(e.indices, self.vector)
            and not self.memory.holds(self.roles.bytes(e), 2, ALL)
            and own_axis(e, term) == len(e.indices) - 1
        )

    def _shared(self, around: Sequence[str], cuts: Sequence[Cut], ends: Sequence[Ends]) -> tuple[str, ...]:
        """Return the outermost loops that threads share: as many as make enough iterations.

        Overlapping tiles are not independent; a loop whose ends are peeled must stay a loop.
        """
        stay = {*(e.loop for e in ends if e.at), *(c.outer for c in cuts if c.tail == "overlap" or c.apart)}
        counts = {c.outer: -(-self._extent(c.loop) // c.size) for c in cuts if c.loop in self.nest.names}
        counts |= {n: self._extent(n) for n in around if n in self.nest.names}
        chosen: list[str] = []
        for name in around:
            if name in stay:
                break
            if name in self.phases.remainders:
                continue
            chosen.append(name)
            if prod(counts.get(n, 1) for n in chosen) >= FUSED_SHARED:
                break
        return tuple(chosen)

    def _outer_order(self, tile: str) -> list[str]:
        """Return the order of outer loops: those that are not in the tile, then phases, vectors and tiles.

        Vectors that overlap are not independent, so they go inside of all loops that are.
        """
        inside = (*(n for n in self.tile if n != tile), *self.phases.remainders)
        return [*(n for n in self.nest.names if n not in (*inside, tile)), *self.phases.remainders, self.vector, tile]

    def _ends(self) -> tuple[Ends, ...]:
        """Return the ends for conditions on positions: tap loops are unrolled, first and last tiles peeled.

        The taps of a phase are tested once a tile.  Unrolling them would be no faster, and for large strides produce
        much code.
        """
        positions = [n for n in self.tile if n != self.vector]
        speaking = [*positions, *self.phases.quotients, *self.phases.quotients.values(), *self.phases.remainders]
        conditions = [c for c in self.nest.conditions if any(depends(c, n) for n in speaking)]
        if not conditions:
            return ()
        names = {n for c in conditions for n in free_vars(c)}
        taps = [(s.var, constant_extent(s)) for s in self.nest.inner_loops if s.var in names]
        known = [(n, e) for n, e in taps if e is not None and not self.phases.remainders]
        accumulators = prod(self.tile.values()) // self.lanes
        ends: list[Ends] = []
        if prod(e for _, e in known) * accumulators <= UNROLLED:
            ends += [Ends(n) for n, _ in known]
        for n in positions:
            tiles = -(-self._extent(n) // self.tile[n])
            cuts: tuple[int, ...] = (1, -1) if tiles > 2 else (1,) if tiles > 1 else ()
            if n not in self._overlapping:
                cuts = needed(self.nest, n, cuts, self.tile[n])
            if cuts:
                ends.append(Ends(f"{n}.o", cuts))
        return tuple(ends)


def tiled(trial: Trial, loop: str, lanes: int, machine: Machine) -> bool:
    """Schedule lanes along a loop, with a tile of positions by vectors."""
    nest = trial.nest(loop)
    if not loops_of_reuse(nest, loop):
        return False
    phases = split_phases(nest, trial)
    if loop in phases.quotients:  # it has phases: lanes could not go along it
        return False
    return Contraction(trial.nest(loop), trial, loop, lanes, machine, phases).take()
