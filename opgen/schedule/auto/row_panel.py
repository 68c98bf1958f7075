"""Panels of rows: what the lanes of a contraction read, copied block by block so that it lies together.

Each block of vectors reads a piece of many rows.  Where the rows lie so far apart that the pieces crowd few sets of the
caches, and each is in a page of its own, every tile fetches them anew; a copy is fetched once, and is near for all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from opgen.loop.nodes import Load
from opgen.machine import Machine
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.nests import Nest, depends, nests
from opgen.schedule.auto.panel import TURNS, Marks
from opgen.schedule.auto.traffic import Loop, Region, accesses, region
from opgen.schedule.auto.trial import Trial
from opgen.schedule.steps import Carry, Fuse, Pack, Parallel, Split, Step, Unroll, Vectorize

USES = 4
"""Tiles that must read a panel: fewer do not make up for the copy."""
FELT = 1 / 6
"""Where fetching from the second cache takes less than this part of the arithmetic's time, it is hidden."""


def panelled_rows(trial: Trial, marks: Marks, nest: Nest, vector: str, machine: Machine) -> None:
    """Copy what each block of the tile along `vector` reads of the rows, if that pays; `nest` is as it was before."""
    made = trial.steps[marks.before :]
    split = next((s for s in made if isinstance(s, Split) and s.loop == vector), None)
    rows = [e for e in dict.fromkeys(nest.outside_loads) if depends(e.indices, vector)]
    if marks.before != marks.ready or len(rows) != 1 or split is None or split.tail != "exact":
        return
    panel = RowPanel(nest, rows[0], split, machine)
    again = Trial(marks.kernel)
    serial = [s for s in made if not isinstance(s, Parallel | Fuse)]
    if panel.pays(made) and again.take(*serial) and panel.make(again):
        trial.kernel, trial.steps = again.kernel, [*trial.steps[: marks.before], *again.steps]


@dataclass(frozen=True)
class RowPanel:
    """`split`: that of the loop of lanes in blocks of the vectors of a tile."""

    nest: Nest
    rows: Load
    split: Split
    machine: Machine

    def pays(self, steps: list[Step]) -> bool:
        """Whether pieces crowd each other where they lie, fit the second cache together, and are read often enough."""
        found, pieces, m = self._uses(steps), self._pieces, self.machine
        if pieces is None or found < USES or 2 * pieces.bytes > m.l2.size or pieces.fits(m.l1):
            return False
        fetching = self._width * self.rows.dtype.bytes / m.l2.bytes_per_second
        return fetching > FELT * self._arithmetic(steps) or not pieces.fits(m.l2)

    def make(self, trial: Trial) -> bool:
        """The panel, outside of all loops but those that decide on it, made by the thread that uses it."""
        blocks = self.split.outer
        nest = next((n for n in nests(trial.kernel) if blocks in n.names), None)
        if nest is None:
            return False
        around = nest.names[: nest.names.index(blocks)]
        carried = {s.loop for s in trial.steps if isinstance(s, Carry)}
        if not all(n in carried or any(depends(e.indices, n) for e in self._reads(nest)) for n in around):
            return False  # another order is better for what else is read
        count = prod(nest.extent(n) or 1 for n in (*(n for n in around if n not in carried), blocks))
        if count < TURNS * self.machine.cores and count % self.machine.cores:
            return False
        name, last = trial.fresh(f"{self.rows.buffer}_panel"), len(self.rows.indices) - 1
        row = f"{name}_{last}"
        lanes = self.machine.vector_bytes // max(4, self.rows.dtype.bytes)
        return trial.take(
            Pack(self.rows.buffer, tuple(range(last + 1)), name, blocks),
            Split(row, lanes, "exact", f"{row}_o", f"{row}_l"),
            Unroll(f"{row}_o"),
            Vectorize(f"{row}_l"),
            Parallel(next((n for n in around if n not in carried), blocks)),
        )

    def _reads(self, nest: Nest) -> list[Load]:
        return [e for e in nest.outside_loads if e.buffer == self.rows.buffer]

    @property
    def _width(self) -> int:
        """Elements of a piece."""
        return self.split.factor

    @cached_property
    def _pieces(self) -> Region | None:
        """What one block reads; None if that is not affine, or not the end of rows."""
        found = accesses(self.nest)
        vector = self.split.loop
        if found is None or not depends(self.rows.indices[-1], vector):
            return None
        terms = [Loop(s.var, constant_extent(s) or 1) for s in self.nest.inner_loops]
        access = next(a for a in found if a.buffer == self.rows.buffer and vector in a.strides)
        return region(access, [*terms, Loop(vector, self._width)])

    def _tile(self, steps: list[Step]) -> dict[str, int]:
        """How many iterations of each loop over results but that of lanes a tile holds."""
        sizes = {s.loop: s.factor for s in steps if isinstance(s, Split)}
        unrolled = {s.loop for s in steps if isinstance(s, Unroll)}
        whole = {n: e for n in self.nest.names if n in unrolled and (e := self.nest.extent(n)) is not None}
        return {**{n: sizes[n] for n in self.nest.names if n in sizes and n != self.split.loop}, **whole}

    def _uses(self, steps: list[Step]) -> int:
        """How many tiles read each panel."""
        tile = self._tile(steps)
        free = [n for n in self.nest.names if not depends(self.rows.indices, n)]
        return prod(-(-(self.nest.extent(n) or 1) // tile.get(n, 1)) for n in free)

    def _arithmetic(self, steps: list[Step]) -> float:
        """The seconds that a tile computes with one piece."""
        vectors = self._width * self.rows.dtype.compute_type.bytes // self.machine.vector_bytes
        return prod(self._tile(steps).values()) * vectors / self.machine.fma_per_second
