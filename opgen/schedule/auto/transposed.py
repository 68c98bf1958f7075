"""Nests without a reduction that read along one loop and write along another: transpositions, also with arithmetic.

Square blocks are turned in registers.  They go by in larger blocks, of which each reads and writes few lines many times
while these are in the first caches and their pages are known, however far apart rows are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from opgen.loop.nodes import Load, Store
from opgen.machine import Machine
from opgen.schedule.auto.copies.blocks import transposed_blocks
from opgen.schedule.auto.elementwise import lanes_of
from opgen.schedule.auto.nests import Nest, contiguous_loop, depends, is_contiguous, own_axis, reduces
from opgen.schedule.auto.past import past_caches
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import PARALLEL, SMALLEST_SQUARE, TRANSPOSED_EDGE, TRANSPOSED_TWICE, TURNS
from opgen.schedule.steps import Flatten, Pack, Parallel, Reorder, Split, Step, Transpose, Vectorize


@dataclass(frozen=True)
class Transposed:
    nest: Nest
    trial: Trial
    machine: Machine

    def run(self) -> bool:
        """Take the steps; whether the nest is such a one."""
        row = contiguous_loop(self.nest)
        column = None if row is None else self._column(row)
        if row is None or column is None:
            return False
        row, column = self._joined(row), self._joined(column)
        return Blocks(self.trial.nest(row), self.trial, self.machine, row, column).run()

    def _column(self, row: str) -> str | None:
        """The loop along which all lies side by side that is read across the results' rows."""
        nest = self.nest
        if reduces(nest) or nest.conditions or nest.allocations or len(nest.results) != 1:
            return None
        if any(nest.extent(n) is None for n in nest.names):
            return None
        read = across(nest, row)
        if not read or own_axis(nest.results[0], row) is None:
            return None
        accesses: list[Load | Store] = [*read, nest.results[0]]
        return next((n for n in nest.names if all(_turns(e, row, n, nest) for e in accesses)), None)

    def _joined(self, loop: str) -> str:
        """A loop with those before it through which results and reads walk on row after row."""
        while True:
            names = self.trial.nest(loop).names
            for outer in (n for n in names if n != loop):
                both = self.trial.fresh(f"{outer}_{loop}")
                order = (*(n for n in names if n not in (outer, loop)), outer, loop)
                steps = ([] if names[-2:] == (outer, loop) else [Reorder(order)], [Flatten(outer, loop, both)])
                if self.trial.take(*steps[0], *steps[1]):
                    loop = both
                    break
            else:
                return loop


def across(nest: Nest, row: str) -> list[Load]:
    """What lanes along a loop would read apart from each other."""
    read = dict.fromkeys(nest.outside_loads)
    return [e for e in read if depends(e.indices, row) and not is_contiguous(e, row, nest.shapes)]


def _turns(access: Load | Store, row: str, column: str, nest: Nest) -> bool:
    """Whether an access walks along one dimension with each of two loops, a read consecutively along the second."""
    axes = {own_axis(access, row), own_axis(access, column)}
    side_by_side = isinstance(access, Store) or is_contiguous(access, column, nest.shapes)
    return None not in axes and len(axes) == 2 and side_by_side


@dataclass(frozen=True)
class Blocks:
    """Results that lie consecutively along `row`, of what is read consecutively along `column`."""

    nest: Nest
    trial: Trial
    machine: Machine
    row: str
    column: str

    def run(self) -> bool:
        """Take the steps; whether they were legal."""
        loads = across(self.nest, self.row)
        buffers = {e.buffer for e in loads}
        single = len(buffers) == len(loads) == len([e for e in self.nest.outside_loads if e.buffer in buffers])
        if (
            not loads
            or not single
            or self._edge < SMALLEST_SQUARE
            or not buffers <= {i.name for i in self.trial.kernel.inputs}
        ):
            return False
        inner = self._blocked()
        if inner is None or not (self._turned() if self._plain else self._computed(inner, loads)):
            return False
        past_caches(self.nest, self.row, self.trial, self.machine)
        return True

    @cached_property
    def _plain(self) -> bool:
        core = self.nest.core
        return isinstance(core, Store) and isinstance(core.value, Load) and core.mask is None

    @cached_property
    def _edge(self) -> int:
        """Of a square block: no more than the shorter loop has iterations."""
        narrowest = min(e.dtype.bytes for e in across(self.nest, self.row))
        edge = self.machine.vector_bytes // narrowest
        while edge > min(self._extent(self.row), self._extent(self.column)):
            edge //= 2
        return edge

    def _extent(self, loop: str) -> int:
        return self.nest.extent(loop) or 0

    def _size(self, extent: int) -> int:
        """Of a larger block: the largest multiple of a square one's edge that does little twice."""
        edge = self._edge
        sizes = range(edge, min(max(TRANSPOSED_EDGE, edge), extent) + 1, edge)
        done = {n: -(-extent // n) * n for n in sizes}
        return max(n for n in sizes if done[n] <= TRANSPOSED_TWICE * min(done.values()))

    def _part(self, loop: str) -> int:
        """How many equal parts of a loop keep cores busy best, if larger blocks overlap in it."""
        extent, cores = self._extent(loop), self.machine.cores
        counts = [n for n in range(1, min(extent // TRANSPOSED_EDGE, TURNS * cores) + 1) if extent % n == 0]
        return max(counts, key=lambda n: n / (-(-n // cores) * cores), default=1)

    def _blocked(self) -> str | None:
        """Make larger blocks, those outermost that threads share; the innermost loop over them."""
        loops, fresh = (self.row, self.column), self.trial.fresh
        others = [n for n in self.nest.names if n not in loops]
        sizes = {n: self._size(self._extent(n)) for n in loops}
        whole = {n: self._extent(n) % size == 0 for n, size in sizes.items()}
        parts = {n: 1 if others or any(whole.values()) else self._part(n) for n in loops}
        first, second = sorted(loops, key=lambda n: (not whole[n], -parts[n]))
        steps: list[Step] = [Reorder((*others, first, second))]
        shared, within, extent = others, first, self._extent(first)
        if parts[first] > 1:
            extent //= parts[first]
            within = fresh(f"{first}_r")
            shared = [fresh(f"{first}_p")]
            steps.append(Split(first, extent, "exact", shared[0], within))
        block, around = fresh(f"{second}_b"), fresh(f"{first}_b")
        size = self._size(extent)
        if extent % size == 0:
            shared = [*shared, around]
        steps += [
            Split(within, size, "exact" if extent % size == 0 else "overlap", around, self._inside(first)),
            Reorder((around, second, self._inside(first))),
            Split(second, sizes[second], "exact" if whole[second] else "overlap", block, self._inside(second)),
        ]
        if not self.trial.take(*steps):
            return None
        self.trial.fused_prefix(shared[:PARALLEL], Parallel)
        return block

    def _inside(self, loop: str) -> str:
        """The name of the loop along another in a larger block."""
        return f"{loop}_s"

    def _turned(self) -> bool:
        """Square blocks of a copy, turned."""
        row, column = self._inside(self.row), self._inside(self.column)
        names = {n: (self.trial.fresh(f"{n}_o"), self.trial.fresh(f"{n}_i")) for n in (row, column)}
        return self.trial.take(
            *(Split(n, self._edge, "exact", *names[n]) for n in (row, column)),
            Reorder((names[row][0], names[column][0], names[row][1], names[column][1])),
            Transpose(names[row][1], names[column][1]),
        )

    def _computed(self, block: str, loads: Sequence[Load]) -> bool:
        """What is read across is turned, in a panel for each larger block; then lanes go along rows."""
        row, column = self._inside(self.row), self._inside(self.column)
        if not self.trial.take(Reorder((column, row))):
            return False
        for load in loads:
            axis = own_axis(load, self.row)
            order = (*(d for d in range(len(load.indices)) if d != axis), *([] if axis is None else [axis]))
            name = self.trial.fresh(f"{load.buffer}_turned")
            if not self.trial.take(Pack(load.buffer, order, name, block)):
                return False
            transposed_blocks(self.trial, name, self.machine.vector_bytes, ())
        lanes = min(self._edge, lanes_of(self.nest, self.machine, None))
        lane = self.trial.fresh(f"{row}_l")
        return self.trial.take(Split(row, lanes, "exact", self.trial.fresh(f"{row}_o"), lane), Vectorize(lane))
