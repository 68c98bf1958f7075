"""Panels of rows: what a tile of a contraction reads, copied block by block so that it lies together.

Each block of vectors reads a piece of many rows.  Where the rows lie so far apart that the pieces conflict in few sets
of the caches, and each is in a page of its own, every tile fetches them anew; a copy is fetched once, and is near for
all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import gcd, prod
from typing import Literal, TypeAlias, get_args

from opgen.loop.nodes import Load
from opgen.machine import Machine
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.accesses import accesses
from opgen.schedule.auto.copies.panel import Marks, rows_in_lanes, widened
from opgen.schedule.auto.nests import Nest, depends, in_steps, is_contiguous, nests
from opgen.schedule.auto.roles import Roles
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import EXPOSED_SCALARS, HIDDEN_VECTORS, TURNS, USES, USES_ANEW
from opgen.schedule.cost.memory import Memory
from opgen.schedule.cost.traffic import Loop, Region, region
from opgen.schedule.steps import Carry, Fuse, Pack, Parallel, Reorder, Split, Step, Unroll

How: TypeAlias = Literal["once", "moved", "anew"]
HOW: tuple[How, ...] = get_args(How)


def panelled_rows(trial: Trial, marks: Marks, nest: Nest, vector: str, machine: Machine) -> None:
    """Copy what each block of the tile reads of the rows along `vector`, if that pays; `nest` is as it was before."""
    if marks.before != marks.ready or in_steps(marks.kernel, vector):
        return
    made = trial.steps[marks.before :]

    @cache
    def unshared() -> Trial:
        """The tile without threads: made only if a panel may pay."""
        serial = Trial(marks.kernel)
        serial.take(*(s for s in made if not isinstance(s, Parallel | Fuse)))
        return serial

    found = _panel(nest, made, vector, machine, unshared)
    for how in HOW if found is not None and found.pays(made) else ():
        again = Trial(unshared().kernel, list(unshared().steps))
        if found is not None and found.make(again, how):
            trial.adopt(again, marks.before)
            return


def _panel(
    nest: Nest, made: list[Step], vector: str, machine: Machine, unshared: Callable[[], Trial]
) -> RowPanel | None:
    """What a block of the vectors' loop reads, if it is one operand; in one iteration of what is carried outside of the
    block, where all is too much for the second cache.
    """
    rows = Roles.of(nest, vector).vectors
    splits = [s for s in made if isinstance(s, Split) and s.loop == vector and s.tail == "exact"]
    if len(rows) != 1 or not is_contiguous(rows[0], vector, nest.shapes) or len(splits) != 1:
        return None
    panel = RowPanel(nest, rows[0], splits[0], machine)
    large = panel.pieces is not None and not Memory(machine).holds(panel.pieces.bytes, 2)
    return replace(panel, outside=_around(splits[0].outer, unshared())) if large else panel


def _around(blocks: str, trial: Trial) -> frozenset[str]:
    """The loops around a loop, if it is the outermost of a nest or not."""
    nest = next((n for n in nests(trial.kernel) if blocks in n.names), None)
    return frozenset() if nest is None else frozenset(nest.names[: nest.names.index(blocks)])


@dataclass(frozen=True)
class RowPanel:
    """`split`: that of the loop along the rows, in blocks of a tile."""

    nest: Nest
    rows: Load
    split: Split
    machine: Machine
    outside: frozenset[str] = frozenset()
    """Loops around the block of which a panel is for one iteration."""

    def pays(self, steps: list[Step]) -> bool:
        """Whether pieces evict each other where they lie, fit the second cache together, and are read often enough."""
        pieces, memory = self.pieces, Memory(self.machine)
        if pieces is None or not memory.holds(pieces.bytes, 2) or memory.fits(pieces, 1):
            return False
        fetching = self._width * self._element / self.machine.l2.bytes_per_second
        exposed = memory.exposed(fetching, self._arithmetic(steps), HIDDEN_VECTORS)
        return self._uses(steps, pieces) >= USES and (exposed or not memory.fits(pieces, 2))

    def make(self, trial: Trial, how: How) -> bool:
        """The panel, made by the thread that uses it: `once`, outside of all loops but those that decide on it; others
        are `moved` inside, or it is made `anew` in each of their iterations.
        """
        blocks = self.split.outer
        nest = next((n for n in nests(trial.kernel) if blocks in n.names), None)
        if nest is None:
            return False
        around = nest.names[: nest.names.index(blocks)]
        carried = {s.loop for s in trial.steps if isinstance(s, Carry)}
        reads = self._reads(nest)
        same = [n for n in around if n not in carried and not any(depends(e.indices, n) for e in reads)]
        times = prod(nest.extent(n) or 1 for n in same)
        if how == "moved" and self._blocks_first(nest, times):
            around = tuple(n for n in around if n not in same)
            if not trial.take(Reorder((*around, blocks, *same))):
                return False
            same = []
        if same and not (how == "anew" and self._worth_again(trial.steps, times)):
            return False  # another order is better for what else is read
        count = prod(nest.extent(n) or 1 for n in (*(n for n in around if n not in carried), blocks))
        lanes = gcd(self._width, self.machine.vector_bytes // self.rows.dtype.compute_type.bytes)
        if lanes == 1 or (count < TURNS * self.machine.cores and count % self.machine.cores):
            return False
        name, last = trial.fresh(f"{self.rows.buffer}_panel"), len(self.rows.indices) - 1
        copy = Pack(self.rows.buffer, tuple(range(last + 1)), name, blocks)
        _, copied = widened(trial, self.rows, name, [copy, *rows_in_lanes(name, last, lanes)])
        shared = [n for n in (*around, blocks) if n not in carried]
        return trial.take(*copied) and trial.fused_prefix(shared[: 2 if same else 1], Parallel)

    def _worth_again(self, steps: list[Step], times: int) -> bool:
        """Whether a panel that is made so many times over is still read often enough each time."""
        return self.pieces is not None and self._uses(steps, self.pieces) >= USES_ANEW * times

    def _blocks_first(self, nest: Nest, times: int) -> bool:
        """Whether scalars that are fetched again for each block expose less than panels made so many times over; only
        where carried loops stay outside of both.
        """
        pieces, blocks = self.pieces, nest.extent(self.split.outer) or 1
        found = [a for a in accesses(self.nest) or () if a.buffer in {e.buffer for e in self.nest.summed}]
        if not self.outside or pieces is None:
            return False
        loops = [Loop(s.var, constant_extent(s) or 1) for s in self.nest.inner_loops if s.var not in self.outside]
        loops += [Loop(n, self.nest.extent(n) or 1) for n in self.nest.names]
        scalars = sum(region(a, loops).bytes for a in found if a.buffer != self.rows.buffer)
        return EXPOSED_SCALARS * (blocks - 1) * scalars < (times - 1) * blocks * pieces.bytes

    def _reads(self, nest: Nest) -> list[Load]:
        return [e for e in nest.summed if e.buffer == self.rows.buffer]

    @property
    def _element(self) -> int:
        """Bytes of an element as a panel has it, or else a copy of all."""
        return self.rows.dtype.compute_type.bytes

    @property
    def _width(self) -> int:
        """Elements of a piece."""
        return self.split.factor

    @cached_property
    def pieces(self) -> Region | None:
        """What one tile reads; None if that is not affine, or not the end of rows."""
        return self._region(())

    def _region(self, loops: Sequence[str]) -> Region | None:
        """What the tiles of some loops over results read of one block."""
        found = accesses(self.nest)
        along = self.split.loop
        if found is None or not depends(self.rows.indices[-1], along):
            return None
        terms = [Loop(s.var, constant_extent(s) or 1) for s in self.nest.inner_loops if s.var not in self.outside]
        terms += [Loop(n, self.nest.extent(n) or 1) for n in loops]
        access = next(a for a in found if a.buffer == self.rows.buffer and along in a.strides)
        return region(access.of(self._element), [*terms, Loop(along, self._width)])

    def _tile(self, steps: list[Step]) -> dict[str, int]:
        """How many iterations of each loop over results but that along the rows a tile holds."""
        sizes = {s.loop: s.factor for s in steps if isinstance(s, Split)}
        unrolled = {s.loop for s in steps if isinstance(s, Unroll)}
        whole = {n: e for n in self.nest.names if n in unrolled and (e := self.nest.extent(n)) is not None}
        return {**{n: sizes[n] for n in self.nest.names if n in sizes and n != self.split.loop}, **whole}

    def _uses(self, steps: list[Step], pieces: Region) -> int:
        """How many tiles read each element of a panel."""
        tile = self._tile(steps)
        others = [n for n in self.nest.names if n != self.split.loop]
        whole = self._region(others) or pieces
        tiles = prod(-(-(self.nest.extent(n) or 1) // tile.get(n, 1)) for n in others)
        return tiles * pieces.bytes // whole.bytes

    def _arithmetic(self, steps: list[Step]) -> float:
        """The seconds that a tile computes with one piece."""
        bytes_ = prod(self._tile(steps).values()) * self._width * self._element
        return bytes_ / self.machine.vector_bytes / self.machine.fma_per_second
