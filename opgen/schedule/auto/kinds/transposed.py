"""Nests without a reduction that read along one loop and write along another: transpositions, also with arithmetic.

    parallel for blocks of columns: for blocks of rows: for squares in a block: registers transposed

Square blocks are transposed in registers, and grouped into larger blocks.  A larger block reads and writes few cache
lines many times.  These stay in L1 and L2, and their pages in the TLB, however far apart rows are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from opgen.locks import cached_property
from opgen.loop.nodes import Load, Store
from opgen.machine import Machine
from opgen.schedule.auto.joins import Joins
from opgen.schedule.auto.nests import Nest, depends, is_contiguous, own_axis, reduces, with_last
from opgen.schedule.auto.non_temporal import non_temporal_results
from opgen.schedule.auto.plan import Cut, Handle, Operand, Plan
from opgen.schedule.auto.site import Site, lanes_of
from opgen.schedule.cost.calibration import PARALLEL, SMALLEST_SQUARE, TRANSPOSED_EDGE, TRANSPOSED_TWICE, TURNS


@dataclass(frozen=True)
class Transposed:
    name: str = "transposed"

    def plans(self, site: Site, machine: Machine) -> Iterator[Plan]:
        row = site.roles.lanes
        column = None if row is None else _column(site, row)
        if row is None or column is None:
            return
        loads = across(site.nest, row)
        buffers = {e.buffer for e in loads}
        several = len(loads) > len(buffers) or len([e for e in site.nest.outside_loads if e.buffer in buffers]) > len(
            loads
        )
        if not several and buffers <= site.inputs:
            blocks = _Blocks(self.name, site, machine, row, column)
            if blocks.edge >= SMALLEST_SQUARE:
                yield blocks.plan()


def _column(site: Site, row: str) -> str | None:
    """Return the loop along which all reads across the results' rows are contiguous; None if there is none."""
    nest = site.nest
    if reduces(nest) or nest.conditions or nest.allocations or len(nest.results) != 1 or not site.roles.known:
        return None
    read = across(nest, row)
    if not read or own_axis(nest.results[0], row) is None:
        return None
    accesses: list[Load | Store] = [*read, nest.results[0]]
    return next((n for n in nest.names if all(_turns(e, row, n, nest) for e in accesses)), None)


def across(nest: Nest, row: str) -> list[Load]:
    """Return the loads that lanes along a loop would not read contiguously."""
    read = dict.fromkeys(nest.outside_loads)
    return [e for e in read if depends(e.indices, row) and not is_contiguous(e, row, nest.shapes)]


def _turns(access: Load | Store, row: str, column: str, nest: Nest) -> bool:
    """Return True if each of two loops alone indexes another dimension of an access.

    A load must be contiguous along the second loop, too.
    """
    axes = {own_axis(access, row), own_axis(access, column)}
    side_by_side = isinstance(access, Store) or is_contiguous(access, column, nest.shapes)
    return None not in axes and len(axes) == 2 and side_by_side


@dataclass(frozen=True)
class _Larger:
    """Larger blocks: the cuts that make them, the loops around one, and those that threads share."""

    cuts: tuple[Cut, ...]
    order: tuple[Handle, ...]
    shared: tuple[Handle, ...]


@dataclass(frozen=True)
class _Blocks:
    """Results that are contiguous along `row`, from reads that are contiguous along `column`."""

    kind: str
    site: Site
    machine: Machine
    row: str
    column: str

    def plan(self) -> Plan:
        larger, (row, column) = self._larger, (f"{n}.s" for n in self._loops)
        tile = next(c.size for c in larger.cuts if c.loop == self._loops[0])
        squares, cuts, operands, lane, order = self._inside(row, column, larger.order[-1])
        return Plan(
            self.kind,
            lane,
            joins=tuple(self._joins.joined),
            cuts=(*larger.cuts, *cuts),
            order=(*larger.order, *order),
            squares=squares,
            operands=operands,
            results=non_temporal_results(self.site, self._extent(self._loops[0]), tile, self.machine),
            threads=larger.shared[:PARALLEL],
        )

    @cached_property
    def _joins(self) -> Joins:
        return Joins(self.site)

    @cached_property
    def _loops(self) -> tuple[Handle, Handle]:
        """Loops along rows and columns, each joined with the loops that it continues into."""
        return self._joins.absorb(self.row), self._joins.absorb(self.column)

    def _extent(self, loop: Handle) -> int:
        return self._joins.extents[loop]

    @cached_property
    def _plain(self) -> bool:
        core = self.site.nest.core
        return isinstance(core, Store) and isinstance(core.value, Load) and core.mask is None

    @cached_property
    def edge(self) -> int:
        """Edge of a square block, at most the iterations of the shorter loop."""
        narrowest = min(e.dtype.bytes for e in across(self.site.nest, self.row))
        edge = self.machine.vector_bytes // narrowest
        while edge > min(map(self._extent, self._loops)):
            edge //= 2
        return edge

    @property
    def lanes(self) -> int:
        """Number of lanes of one vector that is stored."""
        return self.edge if self._plain else min(self.edge, lanes_of(self.site.nest, self.machine, None))

    def _size(self, extent: int) -> int:
        """Return the largest edge of a larger block, in whole square blocks, that computes little twice."""
        sizes = range(self.edge, min(max(TRANSPOSED_EDGE, self.edge), extent) + 1, self.edge)
        done = {n: -(-extent // n) * n for n in sizes}
        return max(n for n in sizes if done[n] <= TRANSPOSED_TWICE * min(done.values()))

    def _part(self, loop: Handle) -> int:
        """Return the number of equal parts of a loop that keep cores busy best, if larger blocks overlap in it."""
        extent, cores = self._extent(loop), self.machine.cores
        counts = [n for n in range(1, min(extent // TRANSPOSED_EDGE, TURNS * cores) + 1) if extent % n == 0]
        return max(counts, key=lambda n: n / (-(-n // cores) * cores), default=1)

    @cached_property
    def _larger(self) -> _Larger:
        """Larger blocks, with the loops that threads share outermost."""
        loops = self._loops
        others = tuple(n for n in self._joins.loops if n not in loops)
        sizes = {n: self._size(self._extent(n)) for n in loops}
        whole = {n: self._extent(n) % size == 0 for n, size in sizes.items()}
        parts = {n: 1 if others or any(whole.values()) else self._part(n) for n in loops}
        first, second = sorted(loops, key=lambda n: (not whole[n], -parts[n]))
        shared, within, extent, cuts = others, first, self._extent(first), list[Cut]()
        if parts[first] > 1:
            extent //= parts[first]
            within, shared = f"{first}.r", (f"{first}.p",)
            cuts.append(Cut(first, extent, shared[0], within))
        block, size = f"{first}.b", self._size(extent)
        around = (*shared, block)
        if extent % size == 0:
            shared = around
        cuts += [
            Cut(within, size, block, f"{first}.s", "exact" if extent % size == 0 else "overlap"),
            Cut(second, sizes[second], f"{second}.b", f"{second}.s", "exact" if whole[second] else "overlap"),
        ]
        return _Larger(tuple(cuts), (*around, f"{second}.b"), shared)

    def _inside(
        self, row: Handle, column: Handle, block: Handle
    ) -> tuple[tuple[Handle, Handle] | None, list[Cut], tuple[Operand, ...], Handle | None, tuple[Handle, ...]]:
        """Return the squares, cuts, operands, lanes and order within a larger block.

        Plain copies transpose square blocks in registers.  With arithmetic, lanes go along rows of panels.
        """
        if self._plain:
            cuts = [Cut(n, self.edge, f"{n}.o", f"{n}.i") for n in (row, column)]
            return (f"{row}.i", f"{column}.i"), cuts, (), None, (f"{row}.o", f"{column}.o")
        cuts = [Cut(row, self.lanes, f"{row}.o", f"{row}.l")]
        panels = tuple(self._panel(e, block) for e in across(self.site.nest, self.row))
        return None, cuts, panels, f"{row}.l", (column, f"{row}.o")

    def _panel(self, load: Load, at: Handle) -> Operand:
        """Return the operand that holds a larger block's reads, transposed."""
        axis, rank = own_axis(load, self.row), len(load.indices)
        return Operand(
            load.buffer, "panel", tuple(range(rank)) if axis is None else with_last(rank, axis), at, "transposed"
        )
