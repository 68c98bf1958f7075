"""Products of tiles of bfloat16 pairs, where there is a matrix unit for them.

One operand has rows, the other columns, and pairs of both are summed.  Where a border lies in a tile, the operand is
padded with zeros.  The pairs of a row lie next to each other (in the input itself, where the summed dimension is its
last), those of the columns row by row; copies in pairs are made as a whole, or block by block for the operand whose
blocks come outermost.  A block of results is two tiles by two where that divides: each tile that is loaded is
multiplied twice, and four tiles of sums leave registers for both operands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod

from opgen.dtypes import BFLOAT16
from opgen.loop.analysis.bounds import Context
from opgen.loop.analysis.tiles import EDGE
from opgen.loop.nodes import Const, Load
from opgen.machine import Machine
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.copies.blocks import transposed_blocks
from opgen.schedule.auto.copies.prepare import elements, split_phases
from opgen.schedule.auto.design import Design
from opgen.schedule.auto.nests import Nest, depends, inner_nests, nests, own_axis, with_last
from opgen.schedule.auto.site import Site
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import MATRIX_LEAST, PLAN_SHARED
from opgen.schedule.steps import (
    ComputeAt,
    Pad,
    Pair,
    Parallel,
    Permute,
    Reorder,
    Split,
    Tensorize,
    Unroll,
    Vectorize,
)


@dataclass(frozen=True)
class Tile:
    """A block of results is `unrolled` tiles of `row` by `column`, and sums are taken `pair` by pair: `splits` makes
    these loops, inside `tall`, `wide` and `deep`.  `outer` names what is left of each loop that was split.
    """

    splits: tuple[Split, ...]
    outer: Mapping[str, str]
    tall: str
    wide: str
    deep: str
    unrolled: tuple[str, ...]
    row: str
    column: str
    pair: str

    @staticmethod
    def of(nest: Nest, rows: Sequence[str], columns: str, depth: str, fresh: Callable[[str], str]) -> Tile | None:
        """The tile for a nest in pairs; `rows` are the loops that rows may lie along, innermost first."""
        extents = {n: nest.extent(n) or 1 for n in nest.names}
        extents |= {s.var: constant_extent(s) or 1 for s in nest.inner_loops}
        height, width, pairs = (_divisor(extents[n]) for n in (rows[0], columns, depth))
        if min(height, width, pairs) < MATRIX_LEAST:
            return None
        splits: list[Split] = []
        outer: dict[str, str] = {}
        unrolled: list[str] = []

        def split(loop: str, size: int, times: int) -> tuple[str, str]:
            left, inner = fresh(f"{loop}_o"), fresh(f"{loop}_i")
            splits.append(Split(loop, size, "exact", left, inner))
            if times > 1:
                blocks, part = fresh(f"{loop}_b"), fresh(f"{loop}_t")
                splits.append(Split(left, times, "exact", blocks, part))
                unrolled.append(part)
                left = blocks
            outer[loop] = left
            return left, inner

        twice = _times(extents[rows[0]], height)
        tall, row = split(rows[0], height, twice)
        second = next((n for n in rows[1:] if extents[n] % 2 == 0), None) if twice == 1 else None
        if second is not None:
            outer[second], part = fresh(f"{second}_b"), fresh(f"{second}_t")
            splits.append(Split(second, 2, "exact", outer[second], part))
            unrolled.append(part)
        wide, column = split(columns, width, _times(extents[columns], width))
        deep, pair = split(depth, pairs, 1)
        return Tile(tuple(splits), outer, tall, wide, deep, tuple(unrolled), row, column, pair)


def deepest(nest: Nest, operands: Sequence[Load]) -> str | None:
    """The loop of a sum with the deepest tiles of pairs, of those along one dimension of each operand."""
    best: tuple[int, str] | None = None
    for s in nest.inner_loops:
        extent = constant_extent(s) or 0
        along = all(own_axis(e, s.var) is not None for e in operands)
        pairs = 0 if extent % 2 or not along else _divisor(extent // 2)
        if pairs >= MATRIX_LEAST and (best is None or pairs >= best[0]):
            best = pairs, s.var
    return None if best is None else best[1]


def _divisor(extent: int) -> int:
    """The largest divisor that is no more than a tile's edge."""
    return max((d for d in range(1, EDGE + 1) if extent % d == 0), default=1)


def _times(extent: int, size: int) -> int:
    """How many tiles of a size are side by side: two if they divide what there is."""
    return 2 if extent % (2 * size) == 0 else 1


@dataclass(frozen=True)
class OnTiles:
    name: str = "tile_products"

    def plans(self, site: Site, machine: Machine) -> Iterator[Design]:
        vector = site.roles.lanes
        if not machine.tiles or vector is None or not site.roles.is_sum:
            return
        for columns in (vector, *(n for n in reversed(site.nest.names) if n != vector)):
            trial = site.trial.fork()
            made = TileProducts(site.nest, trial, vector, columns, machine, partial(site.schedule, trial))
            yield Design(self.name, trial, made.run, f"columns along {columns}")


@dataclass
class _Operand:
    """An operand as it is read: `axis` is the dimension to lie last; `copy` the copy in pairs, if there is one."""

    load: Load
    axis: int
    buffer: str
    copy: str | None = None
    transposed: bool = False

    @property
    def last(self) -> int:
        return len(self.load.indices) - 1

    @property
    def order(self) -> tuple[int, ...]:
        return with_last(self.last + 1, self.axis)


@dataclass
class TileProducts:
    """A nest whose results lie consecutively along `vector`, with tiles whose columns lie along `columns`; `alone`
    schedules another nest.
    """

    nest: Nest
    trial: Trial
    vector: str
    columns: str
    machine: Machine
    alone: Callable[[Nest], object]

    def run(self) -> bool:
        """Take the steps; False, with some perhaps taken, if the nest is not such a product."""
        if self._operands is None or self.vector not in (self.columns, *self._row_loops[:1]) or not self._row_loops:
            return False
        left, right = self._operands
        if not self._padded(left) or not self._padded(right) or not self._paired(left, right):
            return False
        phases = split_phases(self.trial.nest(self.columns), self.trial).quotients
        nest = self.trial.nest(phases.get(self.columns, self.columns))
        rows = [phases.get(n, n) for n in self._row_loops]
        tile = Tile.of(nest, rows, phases.get(self.columns, self.columns), self._depth or "", self.trial.fresh)
        return tile is not None and self._tiled(nest, tile, left, right)

    @cached_property
    def _operands(self) -> tuple[_Operand, _Operand] | None:
        """The operand that has rows, and the one that has columns."""
        loads = tuple(dict.fromkeys(self.nest.summed))
        given = {i.name for i in self.trial.kernel.inputs}
        across = [e for e in loads if depends(e.indices, self.columns)]
        if len(loads) != 2 or len(across) != 1 or loads[0].buffer == loads[1].buffer:
            return None
        if any(e.dtype != BFLOAT16 or e.buffer not in given for e in loads):
            return None
        right, left = across[0], next(e for e in loads if e is not across[0])
        depth = deepest(self.nest, loads)
        axes = None if depth is None else (own_axis(left, depth), own_axis(right, self.columns))
        if axes is None or axes[0] is None or axes[1] is None:
            return None
        return _Operand(left, axes[0], left.buffer), _Operand(right, axes[1], right.buffer)

    @property
    def _depth(self) -> str | None:
        """The loop of the sum that is taken in pairs."""
        return deepest(self.nest, tuple(dict.fromkeys(self.nest.summed)))

    @cached_property
    def _row_loops(self) -> list[str]:
        """The loops over results that only the operand with rows follows, innermost first."""
        assert self._operands is not None
        left, right = (o.load for o in self._operands)
        others = [n for n in reversed(self.nest.names) if n != self.columns and (self.nest.extent(n) or 0) > 1]
        return [n for n in others if depends(left.indices, n) and not depends(right.indices, n)]

    # Operands ---------------------------------------------------------------------------------------

    def _padded(self, operand: _Operand) -> bool:
        """Zeros beyond the ends of the dimensions along which a tile lies; whether none are needed any more."""
        moving = (*self._row_loops[:2], self.columns, self._depth or "")
        beyond = [d for d, i in enumerate(operand.load.indices) if any(depends(i, n) for n in moving)]
        beyond = [d for d in beyond if self._is_beyond(operand.load, d)]
        if not beyond:
            return True
        name = self.trial.fresh(f"{operand.buffer}_padded")
        before = {n.names[0] for n in nests(self.trial.kernel)}
        if not self.trial.take(Pad(operand.buffer, tuple(beyond), name)):
            return False
        for loop in [n.names[0] for n in nests(self.trial.kernel) if n.names[0] not in before]:
            if loop.startswith(f"{name}_zero_"):
                self._lanes(self.trial.nest(loop))
            elif not loop.startswith(f"{name}_"):  # the check of the other factor, and what runs if it fails
                self._beside(loop)
        operand.buffer = name
        return True

    def _beside(self, loop: str) -> None:
        """Schedule another nest, by a copy of an input only if the tiles do not read it then."""

        def apart() -> bool:
            before = self._factors()
            self.alone(self.trial.nest(loop))
            return self._factors() == before

        if not self.trial.attempt(apart):
            self.trial.fused_prefix(self.trial.nest(loop).names[:2], Parallel)

    def _factors(self) -> list[str]:
        """What the product reads by now."""
        return list(dict.fromkeys(e.buffer for e in self.trial.nest(self.columns).summed))

    def _is_beyond(self, e: Load, d: int) -> bool:
        """Whether only a condition keeps an index in bounds."""
        context = Context.of(self.trial.kernel)
        for s in (*self.nest.loops, *self.nest.inner_loops):
            context = context.with_loop(s.var, s.start, s.stop)
        low, high = context.interval(e.indices[d])
        size = self.nest.shapes[e.buffer][d]
        return low is None or high is None or not isinstance(size, Const) or low < 0 or high >= int(size.value)

    def _paired(self, left: _Operand, right: _Operand) -> bool:
        """Both operands read in pairs: rows in place if they lie so, or in a padded copy, else both in copies."""
        assert self._depth is not None
        padded = left.buffer != left.load.buffer
        in_place = padded or left.axis == left.last
        if padded and left.axis != left.last and not self.trial.take(Permute(left.buffer, left.order)):
            return False
        if padded:
            self._filled(left, left.buffer, transposed=left.axis != left.last)
        if right.buffer != right.load.buffer:
            self._filled(right, right.buffer)
        right.copy = self.trial.fresh(f"{right.load.buffer}_pairs")
        left.copy = None if in_place else self.trial.fresh(f"{left.load.buffer}_pairs")
        names = {left.buffer: left.copy or left.buffer, right.buffer: right.copy}
        first, second = (names[n] for n in self._factors())
        if not self.trial.take(Pair(self._depth, first, second)):
            return False
        for operand in (left, right):
            if operand.copy is not None and operand.axis != operand.last:
                operand.transposed = True
                if not self.trial.take(Permute(operand.copy, operand.order)):
                    return False
        return True

    def _filled(self, operand: _Operand, copy: str, transposed: bool = False, alone: bool = True) -> None:
        """Schedule the nest that makes a copy, by threads if it stands `alone` and not in loops that they share."""
        if transposed:
            transposed_blocks(self.trial, copy, self.machine.vector_bytes, None if alone else ())
            return
        found = (*inner_nests(self.trial.kernel), *nests(self.trial.kernel))
        counters = {f"{copy}_{d}" for d in range(operand.last + 1)}
        nest = next(n for n in found if counters.intersection(n.names))
        self._lanes(nest)
        if alone:
            self.trial.fused_prefix(nest.names[:-1][:2], Parallel)

    def _lanes(self, nest: Nest) -> None:
        """Lanes along the last dimension of a nest that fills a copy."""
        last = nest.names[-1]
        extent, lanes = nest.extent(last) or 0, self.machine.vector_bytes // 2
        while lanes > 1 and extent % lanes:
            lanes //= 2
        if lanes > 1:
            self.trial.take(Split(last, lanes, "exact", f"{last}_o", f"{last}_l"), Vectorize(f"{last}_l"))

    # Tiles ------------------------------------------------------------------------------------------

    def _tiled(self, nest: Nest, tile: Tile, left: _Operand, right: _Operand) -> bool:
        sizes = [elements(self.nest, o.load.buffer) for o in (left, right)]
        around = self._around(nest, tile, sizes[0] >= sizes[1])
        sums = [tile.deep if s.var == self._depth else s.var for s in nest.inner_loops]
        order = Reorder((*around, *sums, *tile.unrolled, tile.row, tile.column, tile.pair))
        if not self.trial.take(*tile.splits, order):
            return False
        for operand in (left, right):
            if operand.copy is not None:
                inside = self._blocks(around[0], tile) and self.trial.take(ComputeAt(operand.copy, around[0]))
                self._filled(operand, operand.copy, operand.transposed, not inside)
        done = self.trial.take(
            Tensorize(tile.row, tile.column, tile.pair, self.trial.fresh("tiles")),
            *(Unroll(n) for n in tile.unrolled),
            Vectorize(tile.column if self.columns == self.vector else tile.row),
        )
        if done:
            self._share(around)
        return done

    def _blocks(self, loop: str, tile: Tile) -> bool:
        """Whether a loop is one of blocks, and of enough of them for threads to share it alone."""
        return loop in (tile.tall, tile.wide) and self._extents().get(loop, 1) >= 2 * self.machine.cores

    def _extents(self) -> dict[str, int]:
        """How often the loops of all nests run by now."""
        return {n: nest.extent(n) or 1 for nest in nests(self.trial.kernel) for n in nest.names}

    def _around(self, nest: Nest, tile: Tile, left_first: bool) -> list[str]:
        """The loops around a block, those of the larger operand outermost: it is fetched once."""
        others = [tile.outer.get(n, n) for n in nest.names if tile.outer.get(n) not in (tile.tall, tile.wide)]
        return [*others, tile.tall, tile.wide] if left_first else [tile.wide, *others, tile.tall]

    def _share(self, around: list[str]) -> None:
        """Threads share the outermost loops: as many as make enough iterations."""
        extents = self._extents()
        count = next(
            (i for i in range(1, len(around)) if prod(extents.get(n, 1) for n in around[:i]) >= PLAN_SHARED), 0
        )
        self.trial.fused_prefix(around[: count or len(around)], Parallel)
