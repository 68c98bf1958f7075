"""A register tile of sums of bfloat16 products that are taken two by two, for the dot product of pairs that a CPU has.

pairs of b; parallel n, y: for k.o: for c.o: tile of x by vectors of k: y[x, k] += a[x, c, c + 1] . pairs[c, k]

What is read in scalars is read in place where the two of a pair lie next to each other.  What the lanes read is copied,
pairs side by side along the lanes; a large copy is made block by block, just before the block is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import prod

from opgen.dtypes import BFLOAT16, INT8, UINT8
from opgen.loop.nodes import Const, Load
from opgen.loop.walk import buffers_in
from opgen.machine import Machine
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.contraction.nest import tiled
from opgen.schedule.auto.contraction.prepared import Prepared, waiting
from opgen.schedule.auto.contraction.words import as_words
from opgen.schedule.auto.copies.blocks import row_by_row, transposed_blocks
from opgen.schedule.auto.copies.panel import blocks_outside
from opgen.schedule.auto.copies.prepare import elements, reused
from opgen.schedule.auto.design import Design
from opgen.schedule.auto.kinds.contracted import design, prepared_for
from opgen.schedule.auto.nests import Nest, depends, inner_nests, is_contiguous, nests, own_axis, worth_lanes
from opgen.schedule.auto.roles import Roles
from opgen.schedule.auto.site import Site, terms_at_once
from opgen.schedule.auto.trial import Trial
from opgen.schedule.auto.walks import walks
from opgen.schedule.cost.calibration import FAR_READS, PAIR_BYTES
from opgen.schedule.cost.memory import Memory
from opgen.schedule.steps import (
    Carry,
    ComputeAt,
    Fuse,
    Pair,
    Parallel,
    Permute,
    Regroup,
    Split,
    Step,
    Tighten,
)


@dataclass(frozen=True)
class InPairs:
    name: str = "pairs"

    def plans(self, site: Site, machine: Machine) -> Iterator[Design]:
        for on, late in prepared_for(site, machine, (as_words,)):
            if _sums_wait(site.nest, on.loop, machine) and (wide := waiting(on, "sums wait")) is not None:
                yield design(self.name, wide, partial(_carried, wide, machine), machine, late)
            yield design(self.name, on, partial(_tiled, on, machine), machine, late)


def _sums_wait(nest: Nest, vector: str, machine: Machine) -> bool:
    """Whether sums had better wait in wide results: of outer products, whose scalars lie along results, where the
    second cache is far from holding all scalars, or all that taps read again.
    """
    others = [n for n in nest.names if n != vector]
    scalars = Roles.of(nest, vector).scalars
    along = all(any(is_contiguous(e, n, nest.shapes) for n in others) for e in scalars)
    read = dict.fromkeys(nest.summed if walks(nest) else scalars)
    far = not Memory(machine).holds(sum(elements(nest, e.buffer) * e.dtype.bytes for e in read), 2, FAR_READS)
    return bool(scalars) and along and far and len(nest.results) == 1


def _carried(on: Prepared, machine: Machine) -> bool:
    start = len(on.trial.steps)
    return _tiled(on, machine) and any(isinstance(s, Carry) for s in on.trial.steps[start:])


def _tiled(on: Prepared, machine: Machine) -> bool:
    """A tile of pairs, and the copies that are made for them."""
    trial = on.trial
    kernel = trial.kernel
    pairs = Pairs(trial.nest(on.loop), on.loop, trial, machine)
    in_blocks, in_panels = (Trial(kernel, list(trial.steps)) for _ in range(2))
    if not pairs.take():
        return False
    pairs.fill()
    ready = len(trial.steps)
    if not worth_lanes(trial.nest(on.loop), on.loop) or not tiled(trial, on.loop, on.lanes, machine):
        return False
    if not pairs.in_blocks(in_blocks, ready):
        pairs.in_panels(in_panels, ready)
    return True


@dataclass
class Pairs:
    """The pairs of a nest with lanes along `vector`; `copies` are made for it, each of what one read takes."""

    nest: Nest
    vector: str
    trial: Trial
    machine: Machine
    copies: dict[str, Load] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    depth: str = ""
    """The loop of the sum that is taken several steps at once."""

    def take(self) -> bool:
        """Take the pairs, where a reduction reads both factors again and again, one of them in scalars.

        Where every read depends on the lanes, a copy with pairs of neighbours is as large as one in float32, and taps
        in pairs no longer share what they read.
        """
        factors = self._factors
        scalar = any(not depends(e.indices, self.vector) for e in factors)
        if len(factors) != 2 or not scalar or not all(reused(self.nest, e.buffer) for e in factors):
            return False
        before = len(self.trial.steps)
        if factors[0].dtype == BFLOAT16:
            self._joined()
        factors = self._factors
        if len(factors) != 2 or not any(self._paired(factors, loop) for loop in self._depths()):
            return False
        orders = {name: self._order(e) for name, e in self.copies.items() if depends(e.indices, self.vector)}
        turns = [Permute(name, order) for name, order in orders.items() if order != tuple(range(len(order)))]
        if not self.trial.take(*turns):
            return False
        self.steps = self.trial.steps[before:]
        return True

    @property
    def _factors(self) -> list[Load]:
        return [e for e in self.nest.summed if e.dtype in (BFLOAT16, UINT8, INT8)]

    def _depths(self) -> list[str]:
        """The loops to be taken several steps at once, the best first: of bytes, whose sums are the same in any order,
        each may go inside all others, and one that fills its words is better, a long one best.
        """
        terms = [s.var for s in self.nest.inner_loops]
        if self._factors[0].dtype == BFLOAT16:
            return terms
        extents = Roles.of(self.nest, self.vector).extents
        size = terms_at_once(self.nest, self.machine)
        return sorted(terms, key=lambda n: (-(-extents[n] // size) * size / max(1, extents[n]), -extents[n]))

    def _joined(self) -> None:
        """Where rows of terms have an odd last one: with as many of the loops over terms as make their number even."""
        names = [s.var for s in self.nest.inner_loops]
        odd = [(constant_extent(s) or 0) % 2 == 1 for s in reversed(self.nest.inner_loops)]
        needed = next((k for k, is_odd in enumerate(odd) if not is_odd), len(odd)) + 1
        if odd[0]:
            self.trial.joined(names[-needed:])
            self.nest = self.trial.nest(self.vector)

    def _paired(self, factors: list[Load], loop: str) -> bool:
        """Two steps of a loop at once: in place where that is possible."""
        fresh = [self.trial.fresh(f"{e.buffer}_pairs") for e in factors]
        terms = [s.var for s in self.nest.inner_loops]
        later = terms[terms.index(loop) + 1 :] if factors[0].dtype != BFLOAT16 else []
        inside = [Regroup(loop, other) for other in later]
        names = [
            [e.buffer, name] if not depends(e.indices, self.vector) else [name]
            for e, name in zip(factors, fresh, strict=True)
        ]
        for first in names[0]:
            for second in names[1]:
                steps: list[Step] = [*inside, Pair(loop, first, second)]
                if self.trial.take(*steps) or self.trial.take(Tighten(loop), *steps):
                    chosen = zip((first, second), fresh, factors, strict=True)
                    self.copies = {n: e for n, copy, e in chosen if n == copy}
                    self.depth = loop
                    return True
        return False

    def _across(self, e: Load) -> bool:
        """Whether lanes would read a copy with a stride, and it is to be transposed."""
        axis = own_axis(e, self.vector)
        return depends(e.indices, self.vector) and axis is not None and axis != len(e.indices) - 1

    def _order(self, e: Load) -> tuple[int, ...]:
        """The dimensions of a copy that lanes read: that along the lanes last, and of bytes before it that along which
        words follow each other.
        """
        axis, last = own_axis(e, self.vector), len(e.indices) - 1
        if axis is None:
            return tuple(range(last + 1))
        others = [d for d in range(last + 1) if d != axis]
        if e.dtype != BFLOAT16:
            others.sort(key=lambda d: depends(e.indices[d], self.depth))
        return (*others, axis)

    def fill(self) -> None:
        """Schedule the nests that make the copies."""
        for name in self.copies:
            self._filled(self.trial, name)

    def _filled(self, trial: Trial, copy: str, around: Sequence[str] | None = None) -> bool:
        """Schedule the nest that makes a copy, its own loops or those `around` it in parallel; whether it was legal."""
        if self._across(self.copies[copy]):
            return transposed_blocks(trial, copy, self.machine.vector_bytes, around)
        nest = _nest(trial, copy)
        if nest is not None:
            last = nest.names[-1]
            row_by_row(trial, last, nest.extent(last) or 0, self.machine.vector_bytes // PAIR_BYTES)
            nest = _nest(trial, copy) or nest
        loops = around if around is not None or nest is None else nest.names
        return loops is not None and trial.fused_prefix(loops[:2], Parallel)

    def in_blocks(self, before: Trial, ready: int) -> bool:
        """Make the copies block by block, where sums wait in results: in the innermost loop outside of them; whether
        that is so.  `before` and `ready` as for panels.
        """
        tile = self.trial.steps[ready:]
        shared = [s for s in tile if isinstance(s, Parallel | Fuse)]
        blocks = next((s.loop for s in reversed(tile) if isinstance(s, Carry)), None)
        if blocks is None or any(self._across(e) for e in self.copies.values()):
            return False
        copies = [ComputeAt(name, blocks) for name in self.copies]
        if not before.take(*self.steps, *(s for s in tile if s not in shared), *copies):
            return False
        if any(_nest(before, name) is None for name in self.copies):  # there are no two terms to be paired
            return False
        filled = all(self._filled(before, name) for name in self.copies)
        return filled and before.take(*shared) and self.trial.adopt(before, 0)

    def in_panels(self, before: Trial, ready: int) -> None:
        """Make the copy that the lanes read block by block, if it is large.

        `before` is the trial as it was before the pairs, `ready` how many steps were taken before the tile.
        """
        tile = self.trial.steps[ready:]
        split = next((s for s in tile if isinstance(s, Split) and s.loop == self.vector), None)
        copy = next((name for name, e in self.copies.items() if self._large(e)), None)
        if split is None or split.tail != "exact" or copy is None:
            return
        serial = [s for s in tile if not isinstance(s, Parallel | Fuse)]
        if before.take(*self.steps, *serial) and self._made(before, copy, split.outer):
            self.trial.adopt(before, 0)

    def _large(self, e: Load) -> bool:
        """Whether lanes read it, and a whole copy leaves no room in the second cache; else the order of loops stays."""
        size = elements(self.nest, e.buffer) * e.dtype.bytes
        return depends(e.indices, self.vector) and not Memory(self.machine).holds(size, 2)

    def _made(self, trial: Trial, copy: str, blocks: str) -> bool:
        """The copy for each iteration of `blocks`, which goes outside all loops that use the same of it."""
        around = blocks_outside(trial, copy, blocks, self.machine)
        if around is None:
            return False
        if not trial.take(ComputeAt(copy, blocks)) or not self._near(trial, copy):
            return False
        for name in self.copies:
            if name != copy:
                self._filled(trial, name)
        return self._filled(trial, copy, around)

    def _near(self, trial: Trial, copy: str) -> bool:
        """Whether a block of the copy leaves room in the second cache."""
        buffer = next(o for o in buffers_in(trial.kernel.body) if o.name == copy)
        pairs = prod(int(e.value) if isinstance(e, Const) else 0 for e in buffer.shape)
        return pairs > 0 and Memory(self.machine).holds(pairs * PAIR_BYTES, 2)


def _nest(trial: Trial, copy: str) -> Nest | None:
    """The nest that makes a copy, if there is one."""
    found = (*inner_nests(trial.kernel), *nests(trial.kernel))
    return next((n for n in found if any(loop.startswith(f"{copy}_") for loop in n.names)), None)
