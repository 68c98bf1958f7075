"""Windows without mixing: each lane reduces over its own neighbourhood, and neighbours share what they read.

A tile of results along the two innermost loops of reuse is kept in registers; the taps are unrolled inside, so that
what several results of the tile read is loaded once.  Conditions at the border are decided by making the first and
last tiles loops of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from opgen.loop.walk import free_vars
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.nests import Nest, loops_of_reuse
from opgen.schedule.auto.prepare import Phases
from opgen.schedule.auto.trial import Trial
from opgen.schedule.split import Tail
from opgen.schedule.steps import Parallel, Partition, Reorder, Split, Step, Unroll, Vectorize

ACCUMULATORS = 9
"""Most results of a tile: enough to hide the latency of the arithmetic, few enough to leave registers for the taps."""
TAPS = 25
"""Most taps that are unrolled."""
SMALL = 256
"""A map of up to so many tiles' positions stays in the second cache for each vector of lanes."""


@dataclass(frozen=True)
class Window:
    nest: Nest
    trial: Trial
    vector: str
    lanes: int
    phases: Phases

    def run(self) -> bool:
        loops = [n for n in loops_of_reuse(self.nest, self.vector) if n not in self.phases.remainders][:2]
        sizes = self._sizes(loops)
        width = self._extent(self.vector)
        wide: Tail = "exact" if width % self.lanes == 0 else "overlap"
        fresh = self.trial.fresh
        v_o, v_l = fresh(f"{self.vector}_o"), fresh(f"{self.vector}_l")
        outer = {n: fresh(f"{n}_o") for n in loops}
        inner = {n: fresh(f"{n}_i") for n in loops}
        steps: list[Step] = [Split(n, sizes[n], "exact", outer[n], inner[n]) for n in loops]
        steps.append(Split(self.vector, self.lanes, wide, v_o, v_l))
        around = [outer.get(n, n) for n in self.nest.names if n not in (self.vector, *self.phases.remainders)]
        order = [*around, v_o] if wide == "overlap" or not self._vector_outermost(loops) else [v_o, *around]
        tile = [*(inner[n] for n in reversed(loops)), *self.phases.remainders]
        taps = [s.var for s in self.nest.inner_loops]
        steps += [Reorder((*order, *taps, *tile, v_l)), *(Unroll(n) for n in tile), Vectorize(v_l)]
        steps += self._unrolled_taps()
        if not self.trial.take(*steps):
            return False
        # Not fused: tiles must stay loops of their own, so that the first and last can be set apart.
        self.trial.fused_prefix([n for n in order if n != v_o or wide == "exact"][:1], Parallel)
        for n in self._conditional(loops, outer):
            self.trial.take(Partition(n, self._cuts(n, outer, sizes)))
        return True

    def _extent(self, loop: str) -> int:
        extent = self.nest.extent(loop)
        assert extent is not None
        return extent

    def _sizes(self, loops: list[str]) -> dict[str, int]:
        """Divisors of the loops' extents, that of the inner loop first, whose product with the phases is small."""
        room = max(1, ACCUMULATORS // prod(self._extent(n) for n in self.phases.remainders))
        sizes: dict[str, int] = {}
        for n, wanted in zip(loops, ((2, 3), (4, 2, 3)), strict=False):
            extent = self._extent(n)
            choices = (extent,) if extent <= 3 else (*wanted, *((extent,) if extent <= 7 else ()))
            sizes[n] = next((c for c in choices if extent % c == 0 and c <= room), 1)
            room //= sizes[n]
        return sizes

    def _vector_outermost(self, loops: list[str]) -> bool:
        """Where the map is small, or the results are few: all of it for one vector of lanes, then the next."""
        results = prod(self._extent(n) for n in loops)
        return results <= SMALL

    def _unrolled_taps(self) -> list[Step]:
        known = [(s.var, constant_extent(s)) for s in self.nest.inner_loops]
        taps = [(n, e) for n, e in known if e is not None and e <= TAPS]
        return [Unroll(n) for n, _ in taps] if prod(e for _, e in taps) <= TAPS else []

    def _conditional(self, loops: list[str], outer: dict[str, str]) -> list[str]:
        """The loops that conditions speak of and that are still loops."""
        names = {n for c in self.nest.conditions for n in free_vars(c)}
        walked = [s.var for s in self.nest.inner_loops if (constant_extent(s) or 0) > TAPS]
        quotients = self.phases.quotients
        return [outer[n] for n in loops if n in names or n in quotients.values()] + [n for n in walked if n in names]

    def _cuts(self, loop: str, outer: dict[str, str], sizes: dict[str, int]) -> tuple[int, ...]:
        """How many tiles at either end reach over the border: as many as half the taps are long."""
        size = next((sizes[n] for n, tiles in outer.items() if tiles == loop), 1)
        taps = [constant_extent(s) or 1 for s in self.nest.inner_loops]
        reach = max([t for t in taps if t <= TAPS], default=1)
        count = max(1, -(-(reach // 2) // size))
        return (count, -count)
