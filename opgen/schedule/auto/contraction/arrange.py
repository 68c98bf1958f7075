"""The steps that turn a nest into what was planned for it: splits, what is carried, the order, what is unrolled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from opgen.schedule.auto.contraction.plan import Plan
from opgen.schedule.auto.nests import Nest
from opgen.schedule.split import Tail
from opgen.schedule.steps import Carry, Reorder, Split, Step, Unroll, Vectorize


@dataclass(frozen=True)
class Arrangement:
    """`steps`, and the loops after them: those `around` the tile, outermost first, and the pieces of each loop."""

    steps: tuple[Step, ...]
    around: tuple[str, ...]
    outer: Mapping[str, str]

    def extents(self, nest: Nest, tile: Mapping[str, int], plan: Plan) -> dict[str, int]:
        """How often each loop around the tile runs."""
        found: dict[str, int] = {}
        for name in dict.fromkeys(plan.order):
            extent = nest.extent(name) or 1
            size = plan.block.size if plan.block and plan.block.loop == name else tile.get(name, 1)
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

    def run(self, plan: Plan) -> Arrangement:
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
        if plan.block is not None:
            name, size = plan.block.loop, plan.block.size
            outer[name], inner[name] = self.fresh(f"{name}_o"), self.fresh(f"{name}_i")
            splits.append(Split(name, size, "exact", outer[name], inner[name]))
        around = _named(plan.order, outer, inner)
        tiled = [inner.get(n, n) for n in self.tile if n != vector]
        first = self._first(plan)
        return Arrangement(
            (
                *([] if first == self.nest.names else [Reorder(first)]),
                *splits,
                *self._carried(plan, outer, around, (*tiled, *across, lane)),
                Reorder((*around, *self._reductions(plan, inner), *tiled, *across, lane)),
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

    def _first(self, plan: Plan) -> tuple[str, ...]:
        """The loops as they were, in the new order, those of the tile innermost."""
        around = dict.fromkeys(plan.order)
        return (*around, *(n for n in self.nest.names if n not in around))

    def _carried(
        self, plan: Plan, outer: Mapping[str, str], around: tuple[str, ...], tiled: tuple[str, ...]
    ) -> list[Step]:
        if not plan.carried:
            return []
        at = (*around, *tiled)[plan.inside]
        blocked = plan.block.loop if plan.block is not None else None
        names = [outer[n] if n == blocked else n for n in plan.carried]
        return [Reorder((*around, *tiled)), *(Carry(n, at) for n in names)]

    def _reductions(self, plan: Plan, inner: Mapping[str, str]) -> list[str]:
        names = [s.var for s in self.nest.inner_loops]
        blocked = plan.block.loop if plan.block is not None else None
        return [inner[n] if n == blocked else n for n in names if n == blocked or n not in plan.carried]


def _tail(extent: int, size: int) -> Tail:
    return "exact" if extent % size == 0 else "overlap"


def _named(order: tuple[str, ...], outer: Mapping[str, str], inner: Mapping[str, str]) -> tuple[str, ...]:
    """The loops of a plan by their new names: a blocked one's blocks where it stands first, itself where it is next."""
    seen: set[str] = set()
    names: list[str] = []
    for name in order:
        names.append(inner[name] if name in seen else outer.get(name, name))
        seen.add(name)
    return tuple(names)
