"""Products of tiles of bfloat16 pairs, for CPUs with a matrix unit.

rows.o: columns.o: terms: two by two tiles of sums += pairs of rows by pairs of columns

One operand has rows, the other columns, and pairs of both are summed.  If a border crosses a tile, the operand is
padded with zeros.  The pairs of a row are adjacent; they are in the input itself if the summed dimension is its last.
Those of the columns are stored row by row.

Copies in pairs are made as a whole, or block by block for the operand whose blocks are outermost.  A block of results
is two tiles by two if that divides.  Each tile that is loaded is then multiplied twice, and four tiles of sums leave
registers for both operands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import prod

from opgen.dtypes import BFLOAT16
from opgen.loop.analysis.tiles import EDGE
from opgen.loop.nodes import Load
from opgen.loop.walk import free_vars
from opgen.machine import Machine
from opgen.schedule.auto.contraction.words import Factor, in_words, walked, with_copies
from opgen.schedule.auto.copies.blocks import row_by_row, transposed_blocks
from opgen.schedule.auto.copies.prepare import elements, split_phases
from opgen.schedule.auto.design import Design
from opgen.schedule.auto.nests import Nest, depends, nests, own_axis, with_last
from opgen.schedule.auto.plan import Cut, Handle, Plan
from opgen.schedule.auto.roles import Roles
from opgen.schedule.auto.site import Site
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import MATRIX_LEAST
from opgen.schedule.steps import Pad, Parallel, Permute


@dataclass(frozen=True)
class OnTiles:
    name: str = "tile_products"

    def plans(self, site: Site, machine: Machine) -> Iterator[Design]:
        vector = site.roles.lanes
        if not machine.tiles or vector is None or not site.roles.is_sum:
            return
        for columns in (vector, *(n for n in reversed(site.nest.names) if n != vector)):
            found = Product.of(site, columns)
            if found is not None and vector in (columns, found.rows[0]):
                trial = site.trial.fork()
                made = TileProducts(found, trial, vector, machine)
                yield Design(self.name, trial, made.run, f"columns along {columns}")


@dataclass(frozen=True)
class Product:
    """Product of two operands that a matrix unit can compute.

    The operand `left` alone follows `rows`, the loops over results, innermost first.  The operand `right` has
    `columns`.  Pairs of terms of the loop `depth` are summed.
    """

    site: Site
    left: Load
    right: Load
    rows: list[str]
    columns: str
    depth: str

    @staticmethod
    def of(site: Site, columns: str) -> Product | None:
        """Return the product that a nest computes with columns of tiles along a loop; None if it is not one."""
        nest, loads = site.nest, tuple(dict.fromkeys(site.nest.summed))
        left, right = ([e for e in loads if depends(e.indices, columns) == across] for across in (False, True))
        if len(left) != 1 or len(right) != 1 or left[0].buffer == right[0].buffer:
            return None
        if any(e.dtype != BFLOAT16 or e.buffer not in site.inputs for e in loads):
            return None
        extents = site.roles.extents
        deep = [n for n in site.roles.terms if extents[n] % 2 == 0 and _divisor(extents[n] // 2) >= MATRIX_LEAST]
        deep = [n for n in deep if all(own_axis(e, n) is not None for e in loads)]
        rows = [n for n in reversed(nest.names) if n != columns and (nest.extent(n) or 0) > 1]
        rows = [n for n in rows if depends(left[0].indices, n) and not depends(right[0].indices, n)]
        if not deep or not rows or own_axis(right[0], columns) is None:
            return None
        return Product(site, left[0], right[0], rows, columns, deep[-1])

    def plan(self, nest: Nest, along_columns: bool) -> Plan | None:
        """Return the tiling once pairs are taken, with lanes along columns or along rows; None if tiles are too small.

        The loops of the larger operand are outermost, so that it is fetched once.
        """
        extents, high = Roles.of(nest).extents, self.rows[0]
        sizes = {n: _divisor(extents[n]) for n in (high, self.columns, self.depth)}
        if min(sizes.values()) < MATRIX_LEAST:
            return None
        twice = [f"{n}.o" for n in (high, self.columns) if extents[n] % (2 * sizes[n]) == 0]
        if f"{high}.o" not in twice:
            twice = [*[n for n in self.rows[1:] if extents[n] % 2 == 0][:1], *twice]
        cuts = [
            *(Cut(n, size, f"{n}.o", f"{n}.i") for n, size in sizes.items()),
            *(Cut(n, 2, f"{n}.b", f"{n}.t") for n in twice),
        ]
        left = {c.loop: c.outer for c in cuts}
        tall, wide, *others = (
            left.get(left.get(n, n), left.get(n, n))
            for n in (high, self.columns, *(n for n in nest.names if n not in sizes))
        )
        larger = elements(nest, self.left.buffer) >= elements(nest, self.right.buffer)
        order = (*others, tall, wide) if larger else (wide, *others, tall)
        matrix = tuple(f"{n}.i" for n in sizes)
        return Plan(
            "tile_products",
            matrix[1] if along_columns else matrix[0],
            cuts=tuple(cuts),
            order=order,
            terms=tuple(left.get(s.var, s.var) for s in nest.inner_loops),
            tile=tuple(f"{n}.t" for n in twice),
            matrix=matrix,
            threads=order,
        )

    def blocks(self, nest: Nest, plan: Plan, at: Handle) -> int:
        """Return the number of blocks of tiles along a loop of rows or columns; 0 for another loop."""
        loop = at.partition(".")[0]
        sizes = [c.size for c in plan.cuts if c.loop in (loop, f"{loop}.o")]
        return Roles.of(nest).extents[loop] // prod(sizes) if loop in (self.rows[0], self.columns) else 0


def _divisor(extent: int) -> int:
    """Return the largest divisor up to a tile's edge."""
    return max((d for d in range(1, EDGE + 1) if extent % d == 0), default=1)


@dataclass(frozen=True)
class TileProducts:
    """Product whose results are contiguous along `vector`, with steps that are taken in a trial."""

    of: Product
    trial: Trial
    vector: str
    machine: Machine

    def run(self) -> bool:
        """Take the steps; return False, with some perhaps taken, if one is refused."""
        of, trial = self.of, self.trial
        axes = ((of.left, own_axis(of.left, of.depth)), (of.right, own_axis(of.right, of.columns)))
        orders = {e: with_last(len(e.indices), axis or 0) for e, axis in axes}
        if (left := self._padded(of.left, orders[of.left])) is None or self._padded(of.right) is None:
            return False
        factors = [
            Factor(e, orders[of.left if e.buffer == left else of.right], e.buffer == left)
            for e in dict.fromkeys(trial.nest(of.columns).summed)
        ]
        copies = in_words(trial, of.depth, factors)
        if copies is None:
            return False
        phases = split_phases(trial.nest(of.columns), trial).quotients
        found = replace(of, rows=[phases.get(n, n) for n in of.rows], columns=phases.get(of.columns, of.columns))
        nest = trial.nest(found.columns)
        plan = found.plan(nest, self.vector == of.columns)
        if plan is None:
            return False
        at = plan.order[0]
        read = (e.buffer for e in nest.outside_loads if e.buffer in copies and depends(e.indices, at.partition(".")[0]))
        moved = {n: at for n in read if found.blocks(nest, plan, at) >= 2 * self.machine.cores}
        ways = [partial(with_copies, plan, nest, trial, self.machine, copies, there) for there in (moved, {})]
        return any(map(trial.attempt, ways))

    def _padded(self, e: Load, order: tuple[int, ...] = ()) -> str | None:
        """Return the buffer to read instead of an operand; None if padding is refused.

        If only conditions keep reads inside, that is a copy in the given order of dimensions.  It has zeros beyond the
        ends of the dimensions that tiles extend along.
        """
        nest, moving = self.of.site.nest, {*self.of.rows[:2], self.of.columns, self.of.depth}
        beyond = tuple(d for d in walked(nest, e) if moving & free_vars(e.indices[d]))
        if not beyond:
            return e.buffer
        name, before = self.trial.fresh(f"{e.buffer}_padded"), {n.names[0] for n in nests(self.trial.kernel)}
        if not self.trial.take(Pad(e.buffer, beyond, name)):
            return None
        for made in [n for n in nests(self.trial.kernel) if n.names[0] not in before]:
            if made.names[0].startswith(f"{name}_zero_"):
                last = made.names[-1]
                row_by_row(self.trial, last, made.extent(last) or 0, self.machine.vector_bytes // e.dtype.bytes)
            elif not made.names[0].startswith(f"{name}_"):  # the other factor's check and its fallback
                self._beside(made.names[0])
        if order != tuple(range(len(order))) and not self.trial.take(Permute(name, order)):
            return None
        transposed_blocks(self.trial, name, self.machine.vector_bytes)
        return name

    def _beside(self, loop: str) -> None:
        """Schedule another nest; reject a copy of an input if the tiles would then read it."""

        def apart() -> bool:
            before = self._read()
            self.of.site.schedule(self.trial, self.trial.nest(loop))
            return self._read() == before

        if not self.trial.attempt(apart):
            self.trial.fused_prefix(self.trial.nest(loop).names[:2], Parallel)

    def _read(self) -> set[str]:
        """Return the names of the buffers that the product reads now."""
        return {e.buffer for e in self.trial.nest(self.of.columns).summed}
