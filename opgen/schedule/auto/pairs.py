"""Sums of bfloat16 products taken two by two, for the dot product of pairs that a CPU has.

What is read in scalars is read in place where the two of a pair lie next to each other.  What the lanes read is copied,
pairs side by side along the lanes; a large copy is made block by block, just before the block is used.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from opgen.dtypes import BFLOAT16
from opgen.loop.nodes import Alloc, Const, Load
from opgen.loop.walk import loads, walk
from opgen.machine import Machine
from opgen.schedule.auto.blocks import transposed_blocks
from opgen.schedule.auto.nests import Nest, depends, inner_nests, nests, own_axis
from opgen.schedule.auto.panel import TURNS
from opgen.schedule.auto.prepare import elements, reused
from opgen.schedule.auto.trial import Trial
from opgen.schedule.split import Tail
from opgen.schedule.steps import ComputeAt, Fuse, Pair, Parallel, Permute, Reorder, Split, Step, Tighten, Vectorize

PAIR = 4
"""Bytes of a pair."""


@dataclass
class Pairs:
    """The pairs of a nest with lanes along `vector`; `copies` are made for it, `turned` ones in another order."""

    nest: Nest
    vector: str
    trial: Trial
    machine: Machine
    copies: dict[str, bool] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)

    def take(self) -> bool:
        """Take the pairs, where a reduction reads both factors again and again, one of them in scalars.

        Where every read depends on the lanes, a copy with pairs of neighbours is as large as one in float32, and taps
        in pairs no longer share what they read.
        """
        factors = [e for e in self.nest.outside_loads if e.dtype == BFLOAT16]
        scalar = any(not depends(e.indices, self.vector) for e in factors)
        if len(factors) != 2 or not scalar or not all(reused(self.nest, e.buffer) for e in factors):
            return False
        kernel, before = self.trial.kernel, len(self.trial.steps)
        if not any(self._paired(factors, loop.var) for loop in self.nest.inner_loops):
            return False
        for name, turned in self.copies.items():
            load = next(e for e in factors if name.startswith(e.buffer))
            if turned and not self.trial.take(Permute(name, _order(load, self.vector))):
                self.trial.kernel, self.trial.steps = kernel, self.trial.steps[:before]
                return False
        self.steps = self.trial.steps[before:]
        return True

    def _paired(self, factors: list[Load], loop: str) -> bool:
        """Two steps of a loop at once: in place where that is possible."""
        fresh = [self.trial.fresh(f"{e.buffer}_pairs") for e in factors]
        names = [
            [e.buffer, name] if not depends(e.indices, self.vector) else [name]
            for e, name in zip(factors, fresh, strict=True)
        ]
        for first in names[0]:
            for second in names[1]:
                pair = Pair(loop, first, second)
                if self.trial.take(pair) or self.trial.take(Tighten(loop), pair):
                    chosen = zip((first, second), fresh, factors, strict=True)
                    self.copies = {n: self._across(e) for n, copy, e in chosen if n == copy}
                    return True
        return False

    def _across(self, e: Load) -> bool:
        """Whether lanes would read a copy with a stride, and it is to be turned."""
        axis = own_axis(e, self.vector)
        return depends(e.indices, self.vector) and axis is not None and axis != len(e.indices) - 1

    def fill(self) -> None:
        """Schedule the nests that make the copies."""
        for name, turned in self.copies.items():
            if turned:
                transposed_blocks(self.trial, name, self.machine.vector_bytes)
            else:
                self._lanes(self.trial, name)
                self.trial.fused_prefix(list(self.trial.nest(f"{name}_0").names[:2]), Parallel)

    def _lanes(self, trial: Trial, copy: str) -> None:
        """Lanes along the last dimension of a copy's nest."""
        found = (*inner_nests(trial.kernel), *nests(trial.kernel))
        nest = next(n for n in found if any(loop.startswith(f"{copy}_") for loop in n.names))
        last = nest.names[-1]
        extent, lanes = nest.extent(last) or 0, self.machine.vector_bytes // PAIR
        while lanes > extent:
            lanes //= 2
        if lanes > 1:
            tail: Tail = "exact" if extent % lanes == 0 else "overlap"
            trial.take(Split(last, lanes, tail, f"{last}_o", f"{last}_l"), Vectorize(f"{last}_l"))

    def in_panels(self, kernel_before: Trial, ready: int) -> bool:
        """Make the copy that the lanes read block by block, if it is large; whether that was done.

        `kernel_before` is the trial as it was before the pairs, `ready` how many steps were taken before the tile.
        """
        tile = self.trial.steps[ready:]
        split = next((s for s in tile if isinstance(s, Split) and s.loop == self.vector), None)
        copy = next((n for n in self.copies if any(n.startswith(e.buffer) for e in self._across_lanes)), None)
        if split is None or split.tail != "exact" or copy is None:
            return False
        again = kernel_before
        serial = [s for s in tile if not isinstance(s, Parallel | Fuse)]
        if not again.take(*self.steps, *serial) or not self._made(again, copy, split.outer):
            return False
        self.trial.kernel, self.trial.steps = again.kernel, again.steps
        return True

    @property
    def _across_lanes(self) -> list[Load]:
        """What the lanes read, if a whole copy leaves no room in the second cache; else the order of loops stays."""
        found = [e for e in self.nest.outside_loads if depends(e.indices, self.vector)]
        return [e for e in found if elements(self.nest, e.buffer) * e.dtype.bytes > self.machine.l2.size // 2]

    def _made(self, trial: Trial, copy: str, blocks: str) -> bool:
        """The copy for each iteration of `blocks`, which goes outside all loops that use the same of it."""
        nest = next((n for n in nests(trial.kernel) if blocks in n.names), None)
        if nest is None:
            return False
        around = nest.names[: nest.names.index(blocks)]
        uses = [e for e in loads(nest.core) if e.buffer == copy]
        changing = [n for n in around if any(depends(e.indices, n) for e in uses)]
        count = prod(nest.extent(n) or 1 for n in (*changing, blocks))
        if count < TURNS * self.machine.cores and count % self.machine.cores:
            return False
        same = [n for n in around if n not in changing]
        if same and not trial.take(Reorder((*changing, blocks, *same))):
            return False
        if not trial.take(ComputeAt(copy, blocks)) or not self._near(trial, copy):
            return False
        others = [n for n in self.copies if n != copy]
        for name in others:
            self._lanes(trial, name)
            trial.fused_prefix(list(trial.nest(f"{name}_0").names[:2]), Parallel)
        if self.copies[copy]:
            return transposed_blocks(trial, copy, self.machine.vector_bytes, [*changing, blocks])
        self._lanes(trial, copy)
        return trial.fused_prefix([*changing, blocks][:2], Parallel)

    def _near(self, trial: Trial, copy: str) -> bool:
        """Whether a block of the copy leaves room in the second cache."""
        buffer = next(s.buffer for s in walk(trial.kernel.body) if isinstance(s, Alloc) and s.buffer.name == copy)
        pairs = prod(int(e.value) if isinstance(e, Const) else 0 for e in buffer.shape)
        return 0 < pairs * PAIR <= self.machine.l2.size // 2


def _order(e: Load, vector: str) -> tuple[int, ...]:
    """The dimensions of a read, that along the lanes last."""
    axis = own_axis(e, vector)
    return (*(d for d in range(len(e.indices)) if d != axis), axis or 0)
