"""Default schedule of one loop nest for a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from opgen.loop import build as b
from opgen.loop.nodes import Const, Expr, Store
from opgen.loop.walk import holds_loop, loops_in, reads_memory
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.cuda_tile import tile_of
from opgen.schedule.auto.nests import Nest, consecutive_terms, contiguous_loop, depends, is_contiguous, nest_of, updates
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import (
    GPU_ALONE,
    GPU_FULL,
    GPU_FUSED,
    GPU_LONG,
    GPU_OWNERS,
    GPU_PARTS,
    GPU_ROW_OWNERS,
    GPU_SHARED,
    GPU_THREADS,
    GPU_WARP,
)
from opgen.schedule.loops import extent
from opgen.schedule.steps import Bind, Fuse, Own, Reorder, Share, Split, Version


@dataclass(frozen=True)
class CudaNest:
    nest: Nest
    trial: Trial

    def run(self) -> bool:
        """Bind the contiguous (else the innermost) loop to threads, the others to blocks; return False if illegal."""
        names = self.nest.names
        if updates(self.nest) and self.trial.attempt(self._updates):
            return True
        tile = tile_of(self.nest)
        if tile is not None and self.trial.attempt(lambda: tile.run(self.nest, self.trial)):
            return True
        if self.trial.attempt(self._rows_of_terms):
            return True
        candidates = dict.fromkeys((contiguous_loop(self.nest) or names[-1], *reversed(names)))
        return any(self._spread(along) for along in candidates) or self.trial.attempt(self._to_one)

    def _spread(self, along: str) -> bool:
        threads = self._threads(along)
        block, thread = self.trial.fresh(f"{along}_o"), self.trial.fresh(f"{along}_t")
        others = [n for n in self.nest.names if n != along]
        order = () if along == self.nest.names[-1] else (Reorder((*others, block, thread)),)
        taken = self.trial.take(Split(along, threads, "guard", block, thread), *order, Bind(thread, "thread.x"))
        if taken:
            self._blocks([*others, block])
        return taken

    def _blocks(self, around: list[str]) -> None:
        """Bind the loops around threads to blocks, inner ones first."""
        constant = all(self.nest.extent(n) is not None for n in around[:-1])
        self.trial.fused_prefix(around[: None if constant else GPU_FUSED], lambda name: Bind(name, "block.x"))

    def _threads(self, along: str) -> int:
        extent = self.nest.extent(along)
        threads = GPU_THREADS if len(self.nest.names) == 1 else GPU_THREADS // 2
        while extent is not None and threads > GPU_WARP and threads // 2 >= extent:
            threads //= 2
        return threads

    # updates at places given by values -----------------------------------------------------------------------------

    def _updates(self) -> bool:
        """Bind threads to loops that do not depend on places given by values.

        If these have few iterations, owners of the updated elements share the work, too.

        block o, i: thread j: for n: if p[n] % 64 == o: y[p[n], i, j] += v[n, i, j]
        """
        free = [n for n in self.nest.names if self._is_free(n)]
        rest = [n for n in self.nest.names if n not in free]
        if not rest or (free and not self.trial.take(*self._outside(free, rest))):
            return False
        if not free:
            return self._owned(rest[0])
        many = self._many(free)
        if many != b.TRUE and many != b.FALSE:
            suffix = "rows"
            if self.trial.take(Version(free[0], many, suffix)):
                copy = CudaNest(nest_of(self.trial.kernel, f"{free[0]}_{suffix}"), self.trial)
                copy._rows([f"{n}_{suffix}" for n in free], ())
        return self._rows(free, () if many == b.TRUE else (rest[0],))

    def _outside(self, free: list[str], rest: list[str]) -> tuple[Reorder, ...]:
        order = (*free, *rest)
        return () if order == self.nest.names else (Reorder(order),)

    def _is_free(self, loop: str) -> bool:
        """Return True if each iteration of a loop updates elements of its own, by an index that does not read
        memory.
        """
        return all(any(depends(i, loop) and not reads_memory(i) for i in s.indices) for s in self.nest.results)

    def _many(self, free: list[str]) -> Expr:
        """Return the condition that loops have enough iterations for all threads."""
        sizes: Expr = Const(1)
        for s in self.nest.loops:
            if s.var in free:
                sizes = b.mul(sizes, extent(s))
        return b.compare("ge", sizes, GPU_FULL)

    def _owned(self, loop: str) -> bool:
        """Give each thread elements that it owns."""
        owner = self.trial.fresh(f"{loop}_owner")
        block, thread = f"{owner}_o", f"{owner}_t"
        return self.trial.take(
            Own(loop, GPU_OWNERS, owner),
            Split(owner, GPU_THREADS // 2, "exact", block, thread),
            Bind(thread, "thread.x"),
            Bind(block, "block.x"),
        )

    def _rows(self, free: list[str], told: tuple[str, ...]) -> bool:
        """Bind threads to the loop along which rows are contiguous, else to the last of the `free` loops.

        The `free` loops are outside of all others.  If `told` names a loop, owners of elements go around them.
        """
        along = contiguous_loop(self.nest)
        along = along if along in free else free[-1]
        others = [n for n in free if n != along]
        owner = self.trial.fresh(f"{free[0]}_owner")
        owned = (Own(told[0], GPU_ROW_OWNERS, owner),) if told else ()
        owners = [owner] if told else []
        block, thread = self.trial.fresh(f"{along}_o"), self.trial.fresh(f"{along}_t")
        taken = self.trial.take(
            *owned,
            Split(along, self._threads(along), "guard", block, thread),
            Reorder((*owners, *others, block, thread)),
            Bind(thread, "thread.x"),
            *(Bind(o, "block.y") for o in owners),
        )
        if taken:
            self._blocks([*others, block])
        return taken

    # sums of contiguous terms --------------------------------------------------------------------------------

    def _rows_of_terms(self) -> bool:
        """Compute each result in a block, whose threads read contiguously.

        block i: thread t: for j.o: part[t] += x[i, j.o*128 + t]; wait; y[i] = all of part
        """
        loop, along = consecutive_terms(self.nest), contiguous_loop(self.nest) or self.nest.names[-1]
        count = 0 if loop is None else self._sharing(constant_extent(loop))
        side_by_side = any(is_contiguous(e, along, self.nest.shapes) for e in self.nest.summed)
        if loop is None or not count or side_by_side:
            return False
        if not self.trial.fused_prefix(self.nest.names, lambda name: Bind(name, "block.x")):
            return False
        name = loop.var
        for threads in (count, *((GPU_PARTS,) if count > 2 * GPU_PARTS else ())):
            part = self.trial.fresh(f"{name}_part")
            shared = Share(name, threads, part, space="shared")
            if not self.trial.take(shared, Bind(f"{part}_i", "thread.x")):
                return False
            name = f"{part}_j"
        return True

    def _sharing(self, terms: int | None) -> int:
        """Return the number of threads that share a result; 0 if each thread has a result of its own."""
        results = prod(self.nest.extent(n) or 1 for n in self.nest.names)
        if terms is None or terms >= GPU_LONG:
            return GPU_THREADS // 2
        return GPU_WARP if terms >= 2 * GPU_WARP and results < GPU_FULL else 0

    # reductions to one number ---------------------------------------------------------------------------------------

    def _to_one(self) -> bool:
        """Reduce to one number by many threads, and then their partial results by fewer.

        block, thread i: for j.o: part[i] += x[j.o*n + i]; thread k: part2[k] += part[..]; y = all of part2
        """
        inside = any(holds_loop(s.body, self.nest.names[0]) for s in loops_in(self.trial.kernel.body))
        terms = [self.nest.extent(n) for n in self.nest.names]
        few = None not in terms and prod(n or 0 for n in terms) < GPU_ALONE
        if inside or few or not isinstance(self.nest.core, Store) or self.nest.core.indices:
            return False
        loop, *inner = self.nest.names
        for name in inner:
            both = self.trial.fresh(f"{loop}_{name}")
            if not self.trial.take(Fuse(loop, name, both)):
                return False
            loop = both
        for count in GPU_SHARED:
            part = self.trial.fresh(f"{loop}_part")
            block, thread = f"{part}_o", f"{part}_t"
            if not self.trial.take(
                Share(loop, count, part),
                Split(f"{part}_i", min(count, GPU_THREADS // 2), "exact", block, thread),
                Bind(thread, "thread.x"),
                Bind(block, "block.x"),
            ):
                return False
            loop = f"{part}_j"
        return True
