"""The sizes of tiles for a matrix unit, and the loops that a nest is split into for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from opgen.loop.analysis.tiles import EDGE
from opgen.loop.nodes import Load
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.nests import Nest, own_axis
from opgen.schedule.cost.calibration import MATRIX_LEAST
from opgen.schedule.steps import Split


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
