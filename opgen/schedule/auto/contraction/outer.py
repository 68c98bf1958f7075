"""Sums of outer products: each place of a map adds the product of two rows to a table of results, or to one of several
for each tap.

A tile of six scalars by four vectors loads least for what it computes.  All results wait in the second cache while
blocks of places go by: of each block the vectors' rows are copied into panels that stay in the first cache for all
tiles of scalars, and meanwhile, if it comes from afar, what the next block reads is asked for.  Few places are one
block: no result waits, and there may be many; where rows of scalars crowd few sets, groups of them have panels, too.
The last tile of scalars is shorter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from opgen.loop.nodes import For, Load
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.contraction.outer_panels import panel_of_scalars, panel_of_vectors
from opgen.schedule.auto.contraction.products import apart, balanced
from opgen.schedule.auto.copies.panel import TURNS
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.nests import depends, divisibility, is_contiguous
from opgen.schedule.auto.traffic import LINE, USED, Loop, accesses, region
from opgen.schedule.steps import Carry, Parallel, Prefetch, Reorder, Split, Step, Unroll, Vectorize

SCALARS, VECTORS = 6, 4
"""The tile: 24 sums, and 10 loads for as many multiply-adds."""
TILES = 8
"""Tiles of scalars that a panel must serve to be worth its copy."""
AGAIN = 16
"""As `TILES`, where the vectors lie together before."""
SHARED = 1 / 4
"""The part of the last cache that a nest can count on: others use it too."""
FELT = 1 / 10
"""The part of the arithmetic's time from which fetching operands is felt."""
PLACES = 64
"""Places of a block that results from beyond the second cache must serve: with fewer, fetching them is felt."""
NEAR = 1 / 4
"""The share of the second cache for a panel of all places, of vectors or of a group of scalars."""


@dataclass(frozen=True)
class OuterProducts(LaneNest):
    def run(self) -> bool:
        """All steps, or none."""
        return self._fits and self._block > 0 and self.trial.attempt(self._take)

    @cached_property
    def _loop(self) -> str:
        """The loop over scalars that lie together; empty if there is none."""
        scalars = [e for e in self.nest.summed if not depends(e.indices, self.vector)]
        along = [n for n in self.nest.names if all(is_contiguous(e, n, self.nest.shapes) for e in scalars)]
        return along[0] if scalars and len(along) == 1 and along[0] != self.vector else ""

    @cached_property
    def _others(self) -> list[str]:
        """The loops over tables: what lanes read serves all of them."""
        return [n for n in self.nest.names if n not in (self.vector, self._loop)]

    @cached_property
    def _places(self) -> tuple[For, ...]:
        return self.nest.inner_loops

    @cached_property
    def _reads(self) -> tuple[Load, ...]:
        """What lanes read, and the scalars; empty if there is anything else."""
        loads = tuple(dict.fromkeys(self.nest.summed))
        if len(loads) != 2 or not self._loop or any(e.dtype != e.dtype.compute_type for e in loads):
            return ()
        rows = tuple(sorted(loads, key=lambda e: not depends(e.indices, self.vector)))
        apart_from = ((self._loop, *self._others), (self.vector,))
        if any(depends(e.indices, n) for e, names in zip(rows, apart_from, strict=True) for n in names):
            return ()
        return rows if is_contiguous(rows[0], self.vector, self.nest.shapes) else ()

    @property
    def _fits(self) -> bool:
        """Whether the nest is such a sum, its results wait near enough if at all, and tiles pay for panels."""
        nest, m = self.nest, self.machine
        if not self._reads or any(constant_extent(s) is None for s in self._places) or divisibility(nest):
            return False
        if any(depends(c, n) for c in nest.conditions for n in (self.vector, self._loop)):
            return False
        kept = nest.sums_wait and all(is_contiguous(s, self.vector, nest.shapes) for s in nest.results)
        enough = m.registers > SCALARS * VECTORS + VECTORS + 1 and self._scalars >= TILES * SCALARS
        return kept and enough and self._width % (VECTORS * self.lanes) == 0 and self._near

    @property
    def _near(self) -> bool:
        """Whether entering a tile, and fetching its results, is not felt.  Of several tables operands are as they were
        given, and threads share all tables.
        """
        if self._whole or not (self._others or self._many):
            return True
        places = self._block * (constant_extent(self._places[-1]) or 1)
        return places >= PLACES and (not self._others or (self._given and (self._even or self._groups > 1)))

    @property
    def _given(self) -> bool:
        """Whether the operands are as they were given: nothing was packed."""
        return {e.buffer for e in self._reads} <= {b.name for b in self.trial.kernel.inputs}

    @property
    def _many(self) -> bool:
        """Whether results are too many to wait in the second cache."""
        return 2 * self._products * self._reads[0].dtype.bytes > self.machine.l2.size

    @property
    def _products(self) -> int:
        """How many results there are."""
        return prod(self.nest.extent(n) or 0 for n in self.nest.names)

    @property
    def _scalars(self) -> int:
        return self.nest.extent(self._loop) or 0

    @property
    def _width(self) -> int:
        return self.nest.extent(self.vector) or 0

    @cached_property
    def _block(self) -> int:
        """How many iterations of the last loop but one of the places a block has, so that a panel and the lines of the
        scalars stay in the first cache; none if a row is too long.
        """
        if len(self._places) < 2:
            return 0
        row, rows = (constant_extent(s) or 1 for s in (self._places[-1], self._places[-2]))
        place = VECTORS * self.lanes * self._reads[0].dtype.bytes + LINE
        most = int(USED * self.machine.l1.size) // (row * place)
        return max((d for d in range(1, rows + 1) if rows % d == 0 and d <= most), default=0)

    @cached_property
    def _whole(self) -> bool:
        """Whether all places are one block, so that sums never wait: they stay in the first cache, or results are too
        many to wait in the second and a panel of all places is not.
        """
        if self._others or self._block in (0, prod(self._rows)):
            return self._block > 0 and not self._others
        panel = self._bytes(self._reads[0]) // (self._width // (VECTORS * self.lanes))
        return self._many and panel <= NEAR * self.machine.l2.size

    @property
    def _rows(self) -> list[int]:
        """Extents of the loops over places but the last."""
        return [constant_extent(s) or 1 for s in self._places[:-1]]

    def _take(self) -> bool:
        loop, trial, others = self._loop, self.trial, self._others
        outer, inner = trial.fresh(f"{loop}_o"), trial.fresh(f"{loop}_i")
        blocks, part = trial.fresh(f"{self.vector}_o"), trial.fresh(f"{self.vector}_i")
        across, lane = trial.fresh(f"{self.vector}_v"), trial.fresh(f"{self.vector}_l")
        *images, last, _ = (s.var for s in self._places)
        around, within = trial.fresh(f"{last}_o"), trial.fresh(f"{last}_i")
        shared, scalars = blocks, self._scalars
        steps: list[Step] = [Split(self.vector, VECTORS * self.lanes, "exact", blocks, part)]
        if self._groups > 1:
            shared, rest, scalars = trial.fresh(f"{loop}_g"), trial.fresh(f"{loop}_r"), scalars // self._groups
            steps += [Split(loop, scalars, "exact", shared, rest), Reorder((shared, blocks, *others, rest, part))]
            loop = rest
        else:
            steps += [Reorder((blocks, *others, loop, part))]
        if not self._whole:
            steps += [Split(last, self._block, "exact", around, within), *(Carry(n, shared) for n in images)]
            steps += [Carry(around, blocks)]
        inside = (*images, last) if self._whole else (within,)
        steps += [
            *apart(loop, scalars, balanced(scalars, SCALARS), outer, inner),
            Split(part, self.lanes, "exact", across, lane),
            Reorder((outer, inner, across, lane)),
            Reorder((outer, *inside, self._places[-1].var, inner, across, lane)),
            *(Unroll(n) for n in (inner, across)),
            Vectorize(lane),
        ]
        if not trial.take(*steps):
            return False
        if self._late and not self._whole:
            for e in self._reads:
                trial.take(Prefetch(e.buffer, around, self._places[-1].var))
        alone = self._groups == 1 and not self._even
        filled = None if alone or others else (outer, self._places[-1].var)
        if self._copied and not panel_of_vectors(trial, self._reads[0], blocks, self.lanes, filled):
            return False
        if self._near_groups > 1 and not panel_of_scalars(trial, self._reads[1], shared, self.lanes, scalars):
            return False
        return trial.take(Parallel(outer if alone else shared))

    @property
    def _even(self) -> bool:
        """Whether there are blocks of vectors enough for threads to share."""
        count, cores = self._width // (VECTORS * self.lanes), self.machine.cores
        return count >= TURNS * cores or count % cores == 0

    @cached_property
    def _groups(self) -> int:
        """In how many groups scalars come: as many as have panels, or else one for each core where there are too few
        blocks of vectors to share, unless reading all vectors for each group would be felt in a single thread.
        """
        cores = self.machine.cores
        if self._near_groups > 1:
            return self._near_groups
        large = self._scalars % cores == 0 and self._scalars // cores >= TILES * SCALARS // 2
        felt = self._afar or self._fetching(self._bytes(self._reads[0])) > FELT
        return cores if large and not self._even and not felt else 1

    @cached_property
    def _near_groups(self) -> int:
        """In how many groups of scalars a panel of each is near for all vectors, and threads share them; 1 if none need
        be: only rows that would find room in the first cache elsewhere, or come from beyond the second, gain by it.
        """
        found, m = accesses(self.nest), self.machine
        scalars = next((a for a in found or () if self._loop in a.strides and self.vector not in a.strides), None)
        if not self._whole or scalars is None or self._width // (VECTORS * self.lanes) < TILES:
            return 1
        places = [Loop(s.var, constant_extent(s) or 1) for s in self._places]
        size = prod(p.extent for p in places) * (VECTORS * self.lanes * self._reads[0].dtype.bytes + LINE)
        afar = 2 * self._bytes(self._reads[1]) > m.l2.size
        if region(scalars, [*places, Loop(self._loop, SCALARS)]).fits(m.l1) or (size > USED * m.l1.size and not afar):
            return 1
        most = self._scalars // (TILES * SCALARS)
        counts = [n for n in range(m.cores, most + 1, m.cores) if self._scalars % (n * self.lanes) == 0]
        return next((n for n in counts if self._bytes(self._reads[1]) // n <= NEAR * m.l2.size), 1)

    @cached_property
    def _late(self) -> bool:
        """Whether fetching both operands from where they lie takes long beside the arithmetic."""
        size = sum(map(self._bytes, self._reads))
        return size > USED / 2 * self.machine.l2.size and self._fetching(size) > FELT

    @cached_property
    def _afar(self) -> bool:
        """Whether the operands come from beyond the caches."""
        return sum(map(self._bytes, self._reads)) > SHARED * self.machine.l3.size

    def _fetching(self, size: int) -> float:
        """The time of fetching so many bytes from where the operands lie, as a part of the arithmetic's."""
        m = self.machine
        rate = m.memory_bytes_per_second if self._afar else m.l3.bytes_per_second
        places = prod(constant_extent(s) or 1 for s in self._places)
        return size / rate / (places * self._products / self.lanes / m.fma_per_second)

    def _bytes(self, e: Load) -> int:
        width = self._width if e is self._reads[0] else self._scalars
        return width * e.dtype.bytes * prod(constant_extent(s) or 1 for s in self._places)

    @property
    def _copied(self) -> bool:
        """Whether what a block reads of the vectors does not lie together as it is, or is read often enough for a copy
        that begins at a line: arrays as given may not, and then each of their vectors lies across two.
        """
        tiles = -(-self._scalars // self._groups // SCALARS) * prod(self.nest.extent(n) or 1 for n in self._others)
        return self._width > VECTORS * self.lanes or tiles >= AGAIN
