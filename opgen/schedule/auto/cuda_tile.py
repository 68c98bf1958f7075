"""Register tiles on a GPU: each thread computes several results, which share its loads.

block, warp: lane k: terms: x, k.v: sums[x, k.v] += x[.., x, ..] * w[.., k]      8 by 4 results: 12 loads for 32 terms
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.nests import Nest, contiguous_loop, loops_of_reuse
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import (
    GPU_LANES,
    GPU_NEARLY,
    GPU_PLACES,
    GPU_TERMS,
    GPU_THREADS,
    GPU_TILED,
    GPU_VECTORS,
    GPU_WARP,
)
from opgen.schedule.split import Tail
from opgen.schedule.steps import Bind, Reorder, Split, Step, Unroll


@dataclass(frozen=True)
class CudaTile:
    """Tile of `places` iterations of one loop by `vectors` of another for each of `lanes` threads along the latter."""

    along: str
    lanes: int
    vectors: int
    across: str
    places: int

    @property
    def results(self) -> int:
        return self.vectors * self.places

    @property
    def terms_per_load(self) -> float:
        """Return the multiplications for each load of a warp; lanes along short rows make several loads."""
        return self.results / (self.vectors + self.places) * min(1.0, self.lanes / GPU_WARP)

    def run(self, nest: Nest, trial: Trial) -> bool:
        """Take the steps."""
        k, x = self.along, self.across
        parts, lanes, vectors, both = (trial.fresh(f"{k}_{part}") for part in "otvb")
        tiles, places = trial.fresh(f"{x}_o"), trial.fresh(f"{x}_v")
        steps: list[Step] = [
            Split(k, self.lanes * self.vectors, "exact", parts, both),
            Split(both, self.lanes, "exact", vectors, lanes),
            Split(x, self.places, "exact", tiles, places),
        ]
        around = {n: nest.extent(n) or 1 for n in nest.names if n not in (k, x)}
        around[tiles] = (nest.extent(x) or 1) // self.places
        rows = max(1, GPU_THREADS // 2 // self.lanes)
        rows = 1 << (rows.bit_length() - 1)
        shared = max(around, key=lambda n: (around[n] % rows == 0, around[n]))
        rest, warp = trial.fresh(f"{shared}_b"), trial.fresh(f"{shared}_w")
        tail: Tail = "exact" if around[shared] % rows == 0 else "guard"
        steps.append(Split(shared, rows, tail, rest, warp))
        blocks = [*(rest if n == shared else n for n in around), parts]
        terms = [s.var for s in nest.inner_loops]
        steps.append(Reorder((*blocks, warp, lanes, *terms, places, vectors)))
        steps += [Unroll(n) for n in (places, vectors, *(terms if self._are_short(nest) else ()))]
        if not trial.take(*steps, Bind(lanes, "thread.x"), Bind(warp, "thread.y")):
            return False
        return trial.fused_prefix(blocks, lambda name: Bind(name, "block.x"))

    def _are_short(self, nest: Nest) -> bool:
        """Return True if there are few enough terms to unroll all of them."""
        extents = [constant_extent(s) for s in nest.inner_loops]
        return None not in extents and prod(e or 0 for e in extents) * self.results <= GPU_TERMS


def tile_of(nest: Nest) -> CudaTile | None:
    """Return the tile with most terms per load that leaves enough threads; None if only single results do.

    Lanes are a warp, or share a short row that is not a multiple of one.

    Among tiles along different loops, that of the innermost loop is taken if it is nearly as good, because its reads
    are contiguous.
    """
    along = contiguous_loop(nest)
    known = {n: e for n in nest.names if (e := nest.extent(n)) is not None}
    if along is None or not nest.inner_loops or len(known) < len(nest.names) or any(o.shape for o in nest.allocations):
        return None
    most = prod(known.values()) // GPU_TILED
    warps = [(GPU_WARP, v) for v in GPU_VECTORS if known[along] % (GPU_WARP * v) == 0]
    rows = [(known[along] // v, v) for v in GPU_VECTORS if known[along] % v == 0 and known[along] // v in GPU_LANES]
    best: CudaTile | None = None
    for x in loops_of_reuse(nest, along):
        shapes = [CudaTile(along, n, v, x, p) for n, v in warps or rows for p in GPU_PLACES if known[x] % p == 0]
        own = max((t for t in shapes if 1 < t.results <= most), key=lambda t: t.terms_per_load, default=None)
        if own is not None and (best is None or own.terms_per_load * GPU_NEARLY > best.terms_per_load):
            best = own
    return best
