"""Borders of a loop nest: the conditions that keep taps inside, by the sizes that decide them.

Along a dimension, positions and taps meet in `position * stride + tap * dilation - offset` (forward), or in its inverse
`(position + offset - tap * dilation) / stride` (backward).  This place must be inside the input.  The larger of the two
sizes is about `stride` times the smaller one.  If their exact relation and the offset are known, the first and the last
tile know which taps to leave out, for all sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from opgen.loop import build as b
from opgen.loop.analysis.polynomial import linear
from opgen.loop.nodes import Binary, Compare, Const, Expr, For, Var
from opgen.loop.walk import free_vars
from opgen.passes.tighten import conjuncts
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.nests import Nest, coefficient


@dataclass(frozen=True)
class Border:
    """A dimension with a border.

    `size` is the parameter that ends the loop of positions, `bound` that of the buffer that is read.  `reach` is the
    distance of the last tap from the first.
    """

    position: str
    offset: str
    size: str
    bound: str
    stride: int
    reach: int
    backward: bool

    @property
    def large(self) -> str:
        return self.size if self.backward else self.bound

    @property
    def small(self) -> str:
        return self.bound if self.backward else self.size


@dataclass(frozen=True)
class Padding:
    """Offset and sizes of a border: `large == stride * small - short`, or more than enough if `short` is None."""

    border: Border
    offset: int
    short: int | None

    def condition(self, small: int | None = None) -> Expr:
        """Return the condition on parameters; if `small` is given, that size has this value."""
        border = self.border
        size: Expr = b.var(border.small) if small is None else Const(small)
        needed = b.add(b.mul(border.stride, b.sub(size, 1)), border.reach + 1)
        if self.short is None and not border.backward:
            fits = b.compare("ge", b.var(border.large), needed)
        else:
            exact = needed if self.short is None else b.sub(b.mul(border.stride, size), self.short)
            fits = b.compare("eq", b.var(border.large), exact)
        known = b.both(b.compare("eq", b.var(border.offset), self.offset), fits)
        return known if small is None else b.both(known, b.compare("eq", b.var(border.small), small))

    @property
    def beyond(self) -> int:
        """Return the largest number of positions at either end that read beyond the border."""
        reach = 0 if self.short is None else max(self.offset, self.border.reach - self.offset)
        return -(-reach // self.border.stride)

    def least(self, tile: int) -> int:
        """Return the smallest size, of the smaller dimension, from which no tile touches both ends of the border."""
        return tile + self.beyond


def paddings(border: Border) -> Iterator[Padding]:
    """Yield the usual paddings: equal on both sides, with one position for each `stride` places; and none."""
    for short in range(1 if border.backward else border.stride):
        total = border.reach + 1 - border.stride + short
        yield Padding(border, max(0, total) // 2, short)
    if border.reach and (border.stride == 1 or not border.backward):
        yield Padding(border, 0, None)


def borders(nest: Nest) -> dict[str, Border]:
    """Return the borders of a loop nest with constant strides and taps, by their loop of positions."""
    loops = {s.var: s for s in (*nest.loops, *nest.inner_loops)}
    found: dict[str, Border] = {}
    for condition in nest.conditions:
        for leaf in conjuncts(condition):
            border = _border(leaf, loops)
            if border is not None:
                found[border.position] = border
    return found


def _border(leaf: Expr, loops: dict[str, For]) -> Border | None:
    """Return the border that a condition `e < bound` describes."""
    match leaf:
        case Compare("lt", Binary("floordiv", inner, Const(int(divisor))), Var(bound)):
            stride = divisor
        case Compare("lt", inner, Var(bound)):
            stride = 1
        case _:
            return None
    names = free_vars(inner)
    taps = [n for n in names if n in loops and constant_extent(loops[n]) is not None]
    positions = [n for n in names if n in loops and n not in taps]
    offsets = sorted(names - loops.keys())
    if len(positions) != 1 or len(offsets) != 1 or len(taps) > 1:
        return None
    end = loops[positions[0]]
    factor, step, sign = (_factor(inner, n) for n in (positions[0], taps[0] if taps else "", offsets[0]))
    if not isinstance(end.stop, Var) or end.start != Const(0) or not _plain(inner, names) or factor < 1:
        return None
    backward = sign == 1
    if abs(sign) != 1 or (step < 0) != (backward and bool(taps)) or (factor if backward else stride) != 1:
        return None
    extent = (constant_extent(loops[taps[0]]) or 1) if taps else 1
    return Border(
        position=positions[0],
        offset=offsets[0],
        size=end.stop.name,
        bound=bound,
        stride=stride if backward else factor,
        reach=abs(step) * (extent - 1),
        backward=backward,
    )


def _factor(e: Expr, name: str) -> int:
    """Return the constant factor of a variable in an expression; 0 if there is none."""
    return (coefficient(e, name) if name else None) or 0


def _plain(e: Expr, names: frozenset[str]) -> bool:
    """Return True if an expression is only a sum of multiples of variables."""
    for name in names:
        form = linear(e, name)
        if form is None:
            return False
        e = form[1]
    return e == Const(0)
