"""Pitches of an intermediate's dimensions, chosen so that its parts do not conflict in few sets of a cache.

A transform writes many results at each place, at distances given by the intermediate's inner dimensions.  A tile reads
a few elements of each of many rows.  At powers of two all of these share a few sets, and exceed their ways.  A little
padding along a dimension spreads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from opgen.loop.nodes import Const
from opgen.loop.walk import buffers_in
from opgen.machine import Machine
from opgen.machine.model import Cache
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import CONFLICT_PLACES, CONFLICT_WAYS, CONFLICTS, PADDED_BY, PADDING
from opgen.schedule.steps import Pitch

Shape = tuple[int, ...]


def pitched(trial: Trial, machine: Machine) -> None:
    """Pad the intermediates of a scheduled kernel whose parts conflict in few sets."""
    for buffer in [o for o in buffers_in(trial.kernel.body) if o.space == "heap"]:
        shape = tuple(int(e.value) for e in buffer.shape if isinstance(e, Const))
        if len(shape) == len(buffer.shape) > 1 and buffer.dtype.bytes * prod(shape) > machine.l1.size:
            best = _Pitches(buffer.dtype.bytes, shape, (machine.l1, machine.l2)).best()
            trial.take(*(Pitch(buffer.name, d, n) for d, n in enumerate(best) if n != shape[d]))


@dataclass(frozen=True)
class _Pitches:
    element: int
    shape: Shape
    caches: tuple[Cache, ...]

    def best(self) -> Shape:
        """Return the sizes of the dimensions with fewest evicted lines, weighed against the memory they take."""
        costs = {self.shape: self._conflicts(self.shape) - CONFLICTS}
        for shape in self._candidates():
            memory = prod(shape) / prod(self.shape) - 1
            if memory < PADDING:
                costs.setdefault(shape, memory + self._conflicts(shape))
        return min(costs, key=lambda shape: costs[shape])

    def _candidates(self) -> Iterator[Shape]:
        """Yield shapes with padding along one dimension, along the last, or both."""
        lines = {max(1, c.line // self.element) for c in self.caches}
        for last in (0, *(n for n in lines if self.shape[-1] % n == 0)):
            yield (*self.shape[:-1], self.shape[-1] + last)
            for d in range(1, len(self.shape) - 1):
                for more in (0, *PADDED_BY):
                    yield (*self.shape[:d], self.shape[d] + more, *self.shape[d + 1 : -1], self.shape[-1] + last)

    def _conflicts(self, shape: Shape) -> float:
        """Return the share of evicted lines, summed over dimensions and caches, with half of a cache's ways
        available.
        """
        total = 0.0
        for d, extent in enumerate(self.shape[:-1]):
            stride, count = self.element * prod(shape[d + 1 :]), min(extent, CONFLICT_PLACES)
            for cache in self.caches:
                if stride >= cache.line:
                    total += max(0.0, 1 - CONFLICT_WAYS * cache.lines_at(stride) / count)
        return total
