"""Estimated traffic of a loop nest between the levels of memory, used to compare loop nests.

Each access is affine in the loops.  The loops inside some point of the loop nest therefore touch a region: rows of
equal size, at equal distances.  A loop that an access does not follow finds the region again in a cache if everything
that one iteration touches fits.  Rows a power of two apart fall into few sets, and fit worse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from opgen.machine.model import Cache
from opgen.schedule.cost.calibration import KEPT, LINE, PAGE


class Loop(NamedTuple):
    """A loop of `extent` iterations; each advances the original loop `base` by `steps`."""

    base: str
    extent: int
    steps: int = 1


@dataclass(frozen=True)
class Access:
    """A load or store of elements of `element` bytes; `strides` holds the bytes for each loop that it follows."""

    buffer: str
    element: int
    strides: Mapping[str, int]

    def of(self, element: int) -> Access:
        """Return the same access, of elements of another size."""
        strides = {n: s // self.element * element for n, s in self.strides.items()}
        return Access(self.buffer, element, strides)


@dataclass(frozen=True)
class Region:
    """Rows of `run` bytes, `step` bytes apart."""

    run: int
    rows: int = 1
    step: int = 0

    @property
    def bytes(self) -> int:
        """Return the bytes that are fetched for the region: whole lines."""
        return self.rows * -(-self.run // LINE) * LINE

    def fits(self, cache: Cache) -> bool:
        """Return True if the cache has enough sets for the rows' lines.

        Pages may be anywhere in a cache whose ways are larger than a page.
        """
        step = self.step if cache.sets * LINE <= PAGE else min(self.step, PAGE)
        return self.rows == 1 or self.rows <= cache.lines_at(step)


def region(access: Access, loops: Sequence[Loop]) -> Region:
    """Return the region that an access touches in all iterations of `loops`."""
    walks = sorted((access.strides[s.base] * s.steps, s.extent) for s in loops if s.base in access.strides)
    run, rows, step, reach = access.element, 1, 0, 0
    for stride, extent in walks:
        if extent == 1:
            continue
        if rows == 1 and stride <= max(run, LINE):
            run += stride * (extent - 1)
        elif rows > 1 and stride <= reach:  # rows among or next to the earlier ones
            rows += (extent - 1) * max(1, stride // step)
            reach += stride * (extent - 1)
        else:
            step, reach = step or stride, stride * (extent - 1) + max(reach, run)
            rows *= extent
    return Region(run, rows, step)


class _Nest(NamedTuple):
    """A loop nest: for each access its loops, its region, and the bytes that it fetches into each cache."""

    caches: tuple[Cache, ...]
    followed: tuple[frozenset[Loop], ...]
    regions: tuple[Region, ...]
    fetched: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Traffic:
    """Bytes that loop nests of the same accesses fetch.

    Regions, and inner loops that loop nests share, are computed once.
    """

    accesses: tuple[Access, ...]
    _regions: dict[tuple[int, frozenset[Loop]], Region] = field(default_factory=dict)
    _cores: dict[tuple[Cache, ...], _Nest] = field(default_factory=dict)
    _nests: dict[tuple[int, Loop], _Nest] = field(default_factory=dict)

    def into(self, caches: Sequence[Cache], order: Sequence[Loop]) -> list[int]:
        """Return the bytes that a loop nest, outermost loop first, fetches into each cache from beyond it."""
        return [sum(sums) for sums in self.each_into(caches, order)]

    def each_into(self, caches: Sequence[Cache], order: Sequence[Loop]) -> tuple[tuple[int, ...], ...]:
        """Return the bytes as `into` does, but for each access."""
        nest = self._core(tuple(caches))
        for loop in reversed(order):
            if loop.extent == 1:
                continue
            key = (id(nest), loop)  # the id stays valid: `_nests` keeps loop nests alive
            if key not in self._nests:
                self._nests[key] = self._inside(loop, nest)
            nest = self._nests[key]
        return nest.fetched

    def _core(self, caches: tuple[Cache, ...]) -> _Nest:
        """Return the loop nest without loops: the accesses of one iteration."""
        if caches not in self._cores:
            followed = (frozenset[Loop](),) * len(self.accesses)
            regions = tuple(self._region(i, loops) for i, loops in enumerate(followed))
            once = tuple(r.bytes for r in regions)
            self._cores[caches] = _Nest(caches, followed, regions, (once,) * len(caches))
        return self._cores[caches]

    def _inside(self, loop: Loop, nest: _Nest) -> _Nest:
        """Return a loop nest inside one more loop."""
        followed = tuple(
            [s | {loop} if loop.base in a.strides else s for a, s in zip(self.accesses, nest.followed, strict=True)]
        )
        regions = tuple([self._region(i, loops) for i, loops in enumerate(followed)])
        whole = sum([r.bytes for r in nest.regions])
        fetched = []
        for cache, sums in zip(nest.caches, nest.fetched, strict=True):
            room = whole <= KEPT * cache.size
            parts = zip(nest.regions, regions, sums, strict=True)
            fetched.append(tuple([w.bytes if room and n.fits(cache) else s * loop.extent for n, w, s in parts]))
        return _Nest(nest.caches, followed, regions, tuple(fetched))

    def _region(self, access: int, loops: frozenset[Loop]) -> Region:
        key = (access, loops)
        if key not in self._regions:
            self._regions[key] = region(self.accesses[access], tuple(loops))
        return self._regions[key]
