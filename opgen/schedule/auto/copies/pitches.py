"""How far apart the parts of an intermediate lie, so that they do not conflict in few sets of a cache.

A transform writes many results at each place, as far apart as the intermediate's inner dimensions are large, and a
tile reads a few elements of each of many rows: at powers of two all of these share a few sets, whose ways they are too
many for.  A little room along a dimension spreads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from math import inf, prod
from typing import NamedTuple

import numpy as np

from opgen.loop.analysis.places import at_places
from opgen.loop.nodes import Const, Expr, For, Let, Ramp, Stmt, Store
from opgen.loop.walk import buffers_in, free_vars, loads, parts, substitute_expr
from opgen.machine import Machine
from opgen.machine.model import Cache
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import CONFLICT_PLACES, CONFLICT_WAYS, CONFLICTS, KEPT, PADDED_BY, PADDING
from opgen.schedule.steps import Pitch

Shape = tuple[int, ...]
Region = np.ndarray
"""The places that some accesses go through: a row of indices for each dimension."""


def pitched(trial: Trial, machine: Machine) -> None:
    """Make room in the intermediates of a scheduled kernel whose parts conflict in few sets."""
    large: dict[str, tuple[int, Shape]] = {}
    for buffer in (o for o in buffers_in(trial.kernel.body) if o.space == "heap"):
        shape = tuple(int(e.value) for e in buffer.shape if isinstance(e, Const))
        if len(shape) == len(buffer.shape) > 1 and buffer.dtype.bytes * prod(shape) > machine.l1.size:
            large[buffer.name] = buffer.dtype.bytes, shape
    accesses: dict[str, list[_Access]] = {}
    for access in _accesses(trial.kernel.body, large.keys(), (), (), {}):
        accesses.setdefault(access.buffer, []).append(access)
    for name, (element, shape) in large.items():
        regions = tuple(_regions(accesses.get(name, [])))
        best = _Pitches(element, shape, regions, (machine.l1, machine.l2)).best()
        trial.take(*(Pitch(name, d, n) for d, n in enumerate(best) if n != shape[d]))


@dataclass(frozen=True)
class _Pitches:
    """A buffer, and the regions of it that loops go through."""

    element: int
    shape: Shape
    regions: tuple[Region, ...]
    caches: tuple[Cache, ...]

    def best(self) -> Shape:
        """The sizes of the dimensions for which fewest lines find no place, beside the memory they take."""
        least, best = self._conflicts(self.shape, inf) - CONFLICTS, self.shape
        for shape in sorted(dict.fromkeys(self._candidates()), key=prod):
            memory = prod(shape) / prod(self.shape) - 1
            if memory >= min(least, PADDING):
                break
            cost = memory + self._conflicts(shape, least - memory)
            if cost < least:
                least, best = cost, shape
        return best

    def _candidates(self) -> Iterator[Shape]:
        """More room along one dimension, along the last, or both."""
        lines = {max(1, c.line // self.element) for c in self.caches}
        for last in (0, *(n for n in lines if self.shape[-1] % n == 0)):
            yield (*self.shape[:-1], self.shape[-1] + last)
            for d in range(1, len(self.shape) - 1):
                for more in (0, *PADDED_BY):
                    shape = list(self.shape)
                    shape[d] += more
                    shape[-1] += last
                    yield tuple(shape)

    def _conflicts(self, shape: Shape, most: float) -> float:
        """The share of lines that find no place, summed over regions and caches; or at least `most`, if it is more."""
        strides = np.array([self.element * prod(shape[d + 1 :]) for d in range(len(shape))])
        total = 0.0
        for region in self.regions:
            if total >= most:
                break
            places = np.sort(strides @ region)
            total = sum((_left_out(places, cache) for cache in self.caches), total)
        return total


def _left_out(places: np.ndarray, cache: Cache) -> float:
    """The share of the lines at some places, in order, that is left out if half of a cache's ways are for them; 0 if
    they are too many for the cache anyway.
    """
    lines = places // cache.line
    lines = lines[np.flatnonzero(np.diff(lines, prepend=-1))]
    if not 0 < lines.size * cache.line <= KEPT * cache.size:
        return 0
    in_sets = np.bincount(lines % cache.sets)
    return float(np.maximum(in_sets - CONFLICT_WAYS * cache.ways, 0).sum() / lines.size)


# Where loops go ---------------------------------------------------------------------------------------------------


Seen = dict[tuple[Expr, tuple[tuple[str, range], ...]], "np.ndarray | None"]
"""The places of each index that was met."""


class Loop(NamedTuple):
    """A loop, and how many iterations it has if that is known."""

    name: str
    extent: int | None


@dataclass(frozen=True)
class _Access:
    """An access by its indices, and the loops around it, of which `unrolled` are copies of it in one iteration."""

    buffer: str
    indices: tuple[Expr, ...]
    loops: tuple[Loop, ...]
    unrolled: tuple[Loop, ...]

    @cached_property
    def variables(self) -> frozenset[str]:
        return frozenset().union(*map(free_vars, self.indices))


def _regions(accesses: Iterable[_Access]) -> Iterator[Region]:
    """What a buffer's accesses go through in one iteration of the loop that holds them, in all iterations of that loop,
    of two loops, and so on while places are few.
    """
    held: dict[tuple[Loop, ...], list[_Access]] = {}
    for access in dict.fromkeys(accesses):
        held.setdefault(access.loops, []).append(access)
    for loops, group in held.items():
        count = 0
        while count < len(loops) and _few(group, loops[len(loops) - count - 1 :]):
            count += 1
        seen: Seen = {}
        grids = [_grid(access, loops[len(loops) - count :], seen) for access in group] if _few(group, ()) else [None]
        known = [grid for grid in grids if grid is not None]
        if len(known) == len(grids):
            for n in range(count + 1):
                parts_of = [[index[(0,) * n].ravel() for index in grid] for grid in known]
                yield np.array([np.concatenate(column) for column in zip(*parts_of, strict=True)])


def _few(group: Sequence[_Access], loops: Sequence[Loop]) -> bool:
    """Whether the places of some accesses are known and few while some loops run."""
    moving = ([s for s in (*loops, *access.unrolled) if s.name in access.variables] for access in group)
    return sum(prod(s.extent or CONFLICT_PLACES for s in each) for each in moving) <= CONFLICT_PLACES


def _grid(access: _Access, loops: Sequence[Loop], seen: Seen) -> tuple[np.ndarray, ...] | None:
    """The places of an access, each index with an axis for each loop; None if they are not known."""
    moving = access.variables
    ranges = {s.name: range((s.extent or 1) if s.name in moving else 1) for s in (*loops, *access.unrolled)}
    ranges |= {name: range(1) for name in sorted(moving - ranges.keys())}
    key = tuple(ranges.items())
    for index in access.indices:
        if (index, key) not in seen:
            seen[index, key] = at_places(index, ranges)
    found = [seen[index, key] for index in access.indices]
    known = [index for index in found if index is not None]
    return tuple(known) if len(known) == len(found) else None


def _accesses(
    s: Stmt, buffers: Set[str], loops: tuple[Loop, ...], unrolled: tuple[Loop, ...], values: Mapping[str, Expr]
) -> Iterator[_Access]:
    """All accesses of some buffers.  Of lanes the first tells where a line is."""
    match s:
        case For():
            if s.kind == "unroll":
                unrolled = (*unrolled, Loop(s.var, constant_extent(s)))
            elif s.kind != "vector":
                loops, unrolled = (*loops, Loop(s.var, constant_extent(s))), ()
            yield from _accesses(s.body, buffers, loops, unrolled, values)
        case Let():
            known = {**values, s.var.name: substitute_expr(s.value, values)}
            yield from _accesses(s.body, buffers, loops, unrolled, known)
        case Store():
            found = [(s.buffer, s.indices), *((e.buffer, e.indices) for e in loads(s))]
            for name, indices in found:
                if name in buffers:
                    first = (i.base if isinstance(i, Ramp) else i for i in indices)
                    yield _Access(name, tuple(substitute_expr(i, values) for i in first), loops, unrolled)
        case _:
            for p in parts(s):
                yield from _accesses(p, buffers, loops, unrolled, values)
