"""The steps that turn a nest into what was planned for it: splits, what is carried, the order, what is unrolled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from opgen.schedule.auto.contraction.orders import Order
from opgen.schedule.auto.nests import Nest
from opgen.schedule.split import Tail
from opgen.schedule.steps import Carry, Reorder, Split, Step, Unroll, Vectorize


@dataclass(frozen=True)
class Arrangement:
    """`steps`, and the loops after them: those `around` the tile, outermost first, and the pieces of each loop."""

    steps: tuple[Step, ...]
    around: tuple[str, ...]
    outer: Mapping[str, str]

    def extents(self, nest: Nest, tile: Mapping[str, int], order: Order) -> dict[str, int]:
        """How often each loop around the tile runs."""
        found: dict[str, int] = {}
        for name in dict.fromkeys(order.loops):
            extent = nest.extent(name) or 1
            size = order.block.size if order.block and order.block.loop == name else tile.get(name, 1)
            found[self.outer.get(name, name)] = -(-extent // size)
        return found


@dataclass(frozen=True)
class Arranger:
    """`tile`: iterations of each loop in a tile, the vector loop last; `unrolled`: further loops to unroll inside."""

    nest: Nest
    tile: Mapping[str, int]
    lanes: int
    unrolled: tuple[str, ...]
    fresh: Callable[[str], str]

    def run(self, order: Order) -> Arrangement:
        vector = list(self.tile)[-1]
        outer: dict[str, str] = {}
        inner: dict[str, str] = {}
        splits: list[Step] = []
        for name, size in self.tile.items():
            extent = self.nest.extent(name) or 1
            if name != vector and size < extent:
                outer[name], inner[name] = self.fresh(f"{name}_o"), self.fresh(f"{name}_i")
                splits.append(Split(name, size, _tail(extent, size), outer[name], inner[name]))
        lane, across = self._vector(vector, splits, outer)
        if order.block is not None:
            name, size = order.block.loop, order.block.size
            outer[name], inner[name] = self.fresh(f"{name}_o"), self.fresh(f"{name}_i")
            splits.append(Split(name, size, "exact", outer[name], inner[name]))
        around = _named(order.loops, outer, inner)
        tiled = [inner.get(n, n) for n in self.tile if n != vector]
        first = self._first(order)
        return Arrangement(
            (
                *([] if first == self.nest.names else [Reorder(first)]),
                *splits,
                *self._carried(order, outer, around, (*tiled, *across, lane)),
                Reorder((*around, *self._reductions(order, inner), *tiled, *across, lane)),
                *(Unroll(n) for n in (*self.unrolled, *tiled, *across)),
                Vectorize(lane),
            ),
            around,
            outer,
        )

    def _vector(self, vector: str, splits: list[Step], outer: dict[str, str]) -> tuple[str, tuple[str, ...]]:
        """The loop of lanes, and those of vectors in a tile."""
        size, extent, lanes = self.tile[vector], self.nest.extent(vector) or 1, self.lanes
        if size == lanes:
            outer[vector], lane = self.fresh(f"{vector}_o"), self.fresh(f"{vector}_l")
            splits.append(Split(vector, lanes, _tail(extent, lanes), outer[vector], lane))
            return lane, ()
        outer[vector], part = self.fresh(f"{vector}_o"), self.fresh(f"{vector}_i")
        across, lane = self.fresh(f"{vector}_v"), self.fresh(f"{vector}_l")
        splits.append(Split(vector, size, _tail(extent, size), outer[vector], part))
        splits.append(Split(part, lanes, "exact", across, lane))
        return lane, (across,)

    def _first(self, order: Order) -> tuple[str, ...]:
        """The loops as they were, in the new order, those of the tile innermost."""
        around = dict.fromkeys(order.loops)
        return (*around, *(n for n in self.nest.names if n not in around))

    def _carried(
        self, order: Order, outer: Mapping[str, str], around: tuple[str, ...], tiled: tuple[str, ...]
    ) -> list[Step]:
        if not order.carried:
            return []
        at = (*around, *tiled)[order.inside]
        blocked = order.block.loop if order.block is not None else None
        names = [outer[n] if n == blocked else n for n in order.carried]
        return [Reorder((*around, *tiled)), *(Carry(n, at) for n in names)]

    def _reductions(self, order: Order, inner: Mapping[str, str]) -> list[str]:
        names = [s.var for s in self.nest.inner_loops]
        blocked = order.block.loop if order.block is not None else None
        return [inner[n] if n == blocked else n for n in names if n == blocked or n not in order.carried]


def _tail(extent: int, size: int) -> Tail:
    return "exact" if extent % size == 0 else "overlap"


def _named(order: tuple[str, ...], outer: Mapping[str, str], inner: Mapping[str, str]) -> tuple[str, ...]:
    """The loops by their new names: a blocked one's blocks where it stands first, itself where it is next."""
    seen: set[str] = set()
    names: list[str] = []
    for name in order:
        names.append(inner[name] if name in seen else outer.get(name, name))
        seen.add(name)
    return tuple(names)
