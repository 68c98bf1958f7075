"""Results that are computed in another way from some position on: each range is a nest of its own.

    for j in 0..64: y[j] = a[j]; for j in 64..192: y[j] = b[j - 64]
    for j in 0..1: y[j] = x[n - 1] + x[j]; for j in 1..n: y[j] = x[j - 1] + x[j]

A loop is cut if its position selects one of several tensors.  It is also cut if lanes along it would read forwards and
then backwards, or wrap around (`x[(j - 1) % n]`).  A few positions at an end are peeled, so that no other position
needs a remainder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from opgen.loop.analysis.polynomial import linear
from opgen.loop.nodes import Binary, Compare, Const, Expr, If, Load, Select
from opgen.loop.walk import loads, skeleton, walk_expr, walk_exprs
from opgen.machine import Machine
from opgen.schedule.auto.design import Design
from opgen.schedule.auto.nests import Nest, depends, is_contiguous, reduces, updates
from opgen.schedule.auto.site import Site
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import ENDS, PIECE
from opgen.schedule.steps import Partition, Reorder


@dataclass(frozen=True)
class Pieces:
    name: str = "pieces"

    def plans(self, site: Site, machine: Machine) -> Iterator[Design]:
        nest = site.nest
        if not all(isinstance(e, Const) for s in nest.loops for e in (s.start, s.stop)):
            return
        if reduces(nest) or updates(nest) or site.roles.lanes is None:
            return
        found = _cut(nest, site.roles.lanes)
        if found is not None and _is_worth(nest, *found):
            trial = site.trial.fork()
            yield Design(
                self.name, trial, lambda: self._take(site, trial, *found), f"{found[0]} in parts at {found[1]}"
            )

    @staticmethod
    def _take(site: Site, trial: Trial, loop: str, at: int) -> bool:
        """Move the loop outermost and cut it, then schedule both parts.

        The other loops are joined first where one continues another row after row.
        """
        names = site.nest.names
        name = trial.fresh(f"{loop}_on")
        start = site.nest.loops[names.index(loop)].start
        assert isinstance(start, Const)
        if not trial.take(Reorder((loop, *(n for n in names if n != loop)))):
            return False
        trial.joined([n for n in names if n != loop])
        if not trial.take(Partition(loop, (at - int(start.value),), name.removeprefix(f"{loop}_"))):
            return False
        for part in (loop, name):
            inner = trial.nest(part).names
            if loop == names[-1]:
                trial.take(Reorder((*inner[1:], part)))
            site.schedule(trial, trial.nest(part))
        return True


def _is_worth(nest: Nest, loop: str, at: int) -> bool:
    """Return True if there is enough in each part, or one is a small end of the other."""
    start, stop = _range(nest, loop)
    others = prod(nest.extent(n) or 0 for n in nest.names if n != loop)
    parts = at - start, stop - at
    return min(parts) * others >= PIECE or (_is_end(*parts) and max(parts) * others >= PIECE)


def _is_end(*parts: int) -> bool:
    """Return True if one of two parts of a loop is a small end of it."""
    return min(parts) * ENDS <= max(parts)


def _range(nest: Nest, loop: str) -> tuple[int, int]:
    s = nest.loops[nest.names.index(loop)]
    assert isinstance(s.start, Const)
    assert isinstance(s.stop, Const)
    return int(s.start.value), int(s.stop.value)


def _cut(nest: Nest, lanes: str) -> tuple[str, int] | None:
    """Return a loop and the position from which on it does something else; None if there is none.

    Among positions near the same end, the one furthest inside is returned.
    """
    crooked = [e for e in nest.outside_loads if depends(e.indices, lanes) and not is_contiguous(e, lanes, nest.shapes)]
    places = (n for e in crooked for i in e.indices for n in walk_expr(i))
    turns = [at for e in places if (at := _turn(e, lanes, *_range(nest, lanes))) is not None]
    if turns:
        return lanes, _innermost(turns, *_range(nest, lanes))
    if len({e.buffer for s in skeleton(nest.core) if isinstance(s, If) for e in loads(s.then)}) > 1:
        for loop in nest.names:
            for e in walk_exprs(nest.core):
                at = _change(e, loop, *_range(nest, loop))
                if at is not None:
                    return loop, at
    return None


def _innermost(turns: Sequence[int], start: int, stop: int) -> int:
    """Return the first of some positions; if it is near an end, the one furthest inside near that end."""
    first = turns[0]
    if not _is_end(first - start, stop - first):
        return first
    near = first - start <= stop - first
    same = [at for at in turns if _is_end(at - start, stop - at) and (at - start <= stop - at) == near]
    return max(same) if near else min(same)


def _turn(e: Expr, loop: str, start: int, stop: int) -> int | None:
    """Return the position at which min, max or a choice takes its other side, or a remainder begins again."""
    if isinstance(e, Select):
        return _change(e.condition, loop, start, stop)
    if not isinstance(e, Binary) or e.op not in ("min", "max", "mod"):
        return None
    left, right = _line(e.left, loop), _line(e.right, loop)
    if left is None or right is None:
        return None
    if e.op != "mod":
        return _first(lambda v: _at(left, v) <= _at(right, v), start, stop)
    step = right[1]
    if right[0] or step < 1 or abs(_at(left, stop - 1) // step - _at(left, start) // step) > 1:
        return None
    return _first(lambda v: _at(left, v) // step == _at(left, start) // step, start, stop)


def _change(e: Expr, loop: str, start: int, stop: int) -> int | None:
    """Return the position at which a comparison of the loop with a number changes its outcome."""
    if not isinstance(e, Compare) or not e.left.type.dtype.is_int:
        return None
    left, right = _line(e.left, loop), _line(e.right, loop)
    if left is None or right is None:
        return None
    if e.op in ("eq", "ne"):  # they differ at one position, which must be at an end
        ends = {start: start + 1, stop - 1: stop - 1}
        return next((at for place, at in ends.items() if _at(left, place) == _at(right, place)), None)
    below = e.op in ("lt", "ge")
    return _first(lambda v: _at(left, v) < _at(right, v) + (not below), start, stop)


def _line(e: Expr, loop: str) -> tuple[int, int] | None:
    """Return (c, r) with e == c * loop + r, both numbers; None if there are none."""
    if e.type.lanes != 1 or not e.type.dtype.is_int or any(isinstance(p, Load) for p in walk_expr(e)):
        return None
    found = linear(e, loop)
    if found is None or not isinstance(found[0], Const) or not isinstance(found[1], Const):
        return None
    return int(found[0].value), int(found[1].value)


def _at(line: tuple[int, int], place: int) -> int:
    return line[0] * place + line[1]


def _first(holds: Callable[[int], bool], start: int, stop: int) -> int | None:
    """Return the first position at which `holds` differs from the start; it changes at most once."""
    if stop - start < 2 or holds(stop - 1) == holds(start):
        return None
    low, high = start, stop - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) == holds(start) else (low, middle)
    return high
