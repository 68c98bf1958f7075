"""Choice of the loop order around a contraction's tile, and of the carried loops, by estimated time.

Candidates are few, and each has a cost that prints; the first of the cheapest is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from opgen.machine import Machine
from opgen.schedule.auto.price import Price
from opgen.schedule.cost.calibration import (
    AWKWARD,
    BLOCKS,
    NEST,
    PLAN_SHARED,
    RESUMED,
    STORED,
    VISIT,
)
from opgen.schedule.cost.traffic import Loop, Traffic


@dataclass(frozen=True)
class Block:
    """`loop` in blocks of `size`."""

    loop: str
    size: int


UNPRICED = Price()


@dataclass(frozen=True)
class Order:
    """An order of the loops around a tile.

    `loops` are outermost first, including those of vectors and tiles, by their loops' names.  `carried` are reductions
    outside of all of them; if there is a `block`, the last one is carried in blocks.  `awkward` counts its
    disadvantages.
    """

    loops: tuple[str, ...]
    carried: tuple[str, ...] = ()
    block: Block | None = None
    price: Price = UNPRICED
    awkward: int = 0

    @property
    def seconds(self) -> float:
        return self.price.seconds * (1 + AWKWARD * self.awkward)


@dataclass(frozen=True)
class Shape:
    """Extents of the loops over results and of the reductions, outermost first, and the tile.

    `tile` holds the iterations of each loop in the tile, the loop of lanes last.
    """

    results: Mapping[str, int]
    reductions: Mapping[str, int]
    tile: Mapping[str, int]
    lanes: int
    fixed: tuple[str, ...] = ()
    """Loops that must be innermost of those around the tile: their tiles overlap, or some are peeled."""
    carries: bool = True
    """True if partial sums can be kept in the results."""
    conditional: tuple[str, ...] = ()
    """Loops that conditions depend on."""

    @property
    def tiled(self) -> tuple[str, ...]:
        """Return the loops that have several tiles."""
        return tuple(n for n, size in self.tile.items() if size < self.results[n])

    @property
    def vector(self) -> str:
        """Return the loop of lanes."""
        return list(self.tile)[-1]

    @property
    def vectors(self) -> int:
        return prod(self.tile.values()) // self.lanes


@dataclass(frozen=True)
class Orders:
    shape: Shape
    traffic: Traffic
    machine: Machine

    def ranked(self) -> list[Order]:
        """Return all candidates, the cheapest first."""
        priced = (replace(o, price=self._price(o), awkward=self._awkward(o)) for o in self._candidates())
        return sorted(priced, key=lambda o: o.seconds)

    def _candidates(self) -> Iterator[Order]:
        carried = list(self._carried())
        for order in self._orders():
            yield from (Order(order, names, block) for names, block in carried)

    def _count(self, name: str) -> int:
        """Return the number of tiles, or single iterations, of a loop over results."""
        return -(-self.shape.results[name] // self.shape.tile.get(name, 1))

    def _carried(self) -> Iterator[tuple[tuple[str, ...], Block | None]]:
        """Yield the choices of carried loops: none, the first reductions, or these and blocks of the next."""
        yield (), None
        if not self.shape.carries:
            return
        names = list(self.shape.reductions)
        for i, name in enumerate(names):
            extent = self.shape.reductions[name]
            if extent == 1:
                continue
            for size in blocks_of(extent):
                yield tuple(names[: i + 1]), Block(name, size)
            if i + 1 < len(names):
                yield tuple(names[: i + 1]), None

    def _orders(self) -> Iterator[tuple[str, ...]]:
        """Yield the orders, with the loop of vectors placed among the others, which keep their order.

        Tiles of positions stay within them, so that a loop nest accesses memory in order.
        """
        tiles = [n for n in self.shape.tiled if n not in self.shape.fixed]
        others = [n for n in self.shape.results if n not in self.shape.tile]
        others += [n for n in tiles if n != self.shape.vector]
        for order in _placements(others, self.shape.vector if self.shape.vector in tiles else None):
            yield (*order, *self.shape.fixed)

    def loops(self, order: Order) -> list[Loop]:
        """Return all loops of an order, outermost first."""
        shape, block = self.shape, order.block
        sizes = {block.loop: block.size} if block is not None else {}
        carried = [self._carried_loop(n, sizes) for n in order.carried]
        around = [Loop(n, self._count(n), shape.tile.get(n, 1)) for n in order.loops]
        inner = [Loop(n, sizes.get(n, e)) for n, e in shape.reductions.items() if n in sizes or n not in order.carried]
        tile = [Loop(name, size) for name, size in shape.tile.items()]
        return [*carried, *around, *inner, *tile]

    def _carried_loop(self, name: str, sizes: Mapping[str, int]) -> Loop:
        size = sizes.get(name, 1)
        return Loop(name, -(-self.shape.reductions[name] // size), size)

    def _price(self, order: Order) -> Price:
        machine, shape = self.machine, self.shape
        loops = self.loops(order)
        inner = len(shape.reductions) - len(order.carried) + len(shape.tile)
        inner += 1 if order.block is not None else 0
        visits = prod(s.extent for s in loops[: len(loops) - inner])
        vectors = prod(s.extent for s in loops) / shape.lanes
        through = (RESUMED if order.carried else STORED) * shape.vectors
        forks = prod(s.extent for s in loops[: len(order.carried)])
        first, second, third = self.traffic.into((machine.l1, machine.l2, machine.l3), loops)
        return Price(
            vectors / machine.fma_per_second,
            visits * (VISIT + through) / machine.fma_per_second + forks * NEST,
            first / machine.l2.bytes_per_second,
            second / machine.l3.bytes_per_second,
            third / machine.memory_bytes_per_second,
        )

    def _awkward(self, order: Order) -> int:
        """Return the number of disadvantages: too few iterations for threads, and conditions on the loops they
        share.
        """
        shape, shared, found = self.shape, 1, 0
        for name in order.loops:
            if shared >= PLAN_SHARED or name in shape.fixed:
                break
            shared *= self._count(name)
            found += name in shape.conditional
        return found + (shared < PLAN_SHARED)


def blocks_of(extent: int) -> list[int]:
    """Return sizes of blocks that divide a loop; if there are none, those whose last block is shorter."""
    smaller = [n for n in BLOCKS if n < extent]
    return [n for n in smaller if extent % n == 0] or smaller


def _placements(others: Sequence[str], loop: str | None) -> list[tuple[str, ...]]:
    """Return every placement of a loop, if there is one, among others, the outermost first."""
    if loop is None:
        return [tuple(others)]
    return [(*others[:i], loop, *others[i:]) for i in range(len(others) + 1)]
