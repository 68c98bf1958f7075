"""Windows without mixing: each lane reduces over its own neighbourhood, and neighbours share what they read.

Taps are unrolled, so that what is read once serves all that need it; columns at the border are loops of their own, rows
at the border are branches.  What is few makes the difference: the terms of a sum (`results.py`: a tile of results in
registers) or the results (`sums.py`: all sums in registers, a tile of terms).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from opgen.locks import cached_property
from opgen.loop.nodes import Load, Store
from opgen.schedule.auto.accesses import strides_of
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.nests import Nest, worth_lanes
from opgen.schedule.auto.non_temporal import store_non_temporally
from opgen.schedule.auto.plan import Cut, Plan
from opgen.schedule.auto.walks import Walk
from opgen.schedule.cost.calibration import TAPS, WINDOW_GATHERED, WINDOW_STEP
from opgen.schedule.cost.sizes import element_of
from opgen.schedule.split import Tail


def stepped_loop(nest: Nest) -> str | None:
    """The loop that all that is read and stored follows in steps of a few elements, none of them side by side."""
    touched: tuple[Load | Store, ...] = (*nest.summed, *nest.results)
    steps = {n: [step(e, n, nest) for e in touched] for n in nest.names}
    found = [n for n, s in steps.items() if min(s) >= 1 and max(s) <= WINDOW_STEP and s[-1] > 1]
    return found[-1] if found and touched else None


def step(access: Load | Store, loop: str, nest: Nest) -> int:
    """How many elements further an access goes with each iteration of a loop; 0 if it stays or that is not known."""
    strides = strides_of(access, [loop], nest.shapes) or {}
    return strides.get(loop, 0) // element_of(access)


def near(nest: Nest, loop: str) -> bool:
    """Whether all that lanes along a loop read lies but a few elements apart."""
    return all(1 <= step(e, loop, nest) <= WINDOW_GATHERED for e in nest.summed)


@dataclass(frozen=True)
class Planned(LaneNest):
    """A nest for which there is one plan."""

    @abstractmethod
    def plan(self) -> Plan:
        """What is decided."""

    def take(self) -> bool:
        """The steps of the plan; results that no cache would hold, and lanes store side by side, go past them."""
        taken = self.realised(self.plan())
        if taken and self.vector not in self.nest.phases:
            store_non_temporally(self.nest, self.vector, self.trial, self.machine)
        return taken


@dataclass(frozen=True)
class WindowNest(Planned):
    @property
    def legal(self) -> bool:
        """Whether no operand is broadcast to all lanes, which read what lies side by side or nearly, all walks that
        there are have sizes that are known, and their results do not lie between those of neighbouring lanes.
        """
        known = self.roles.is_sum and all(self.roles.counts.values())
        if not (self.lanes > 1 and known and self.roles.is_window and self._walks):
            return False
        between = any(w.result in self.beside for w in self._walks)
        return not between and (worth_lanes(self.nest, self.vector) or near(self.nest, self.vector))

    @property
    def in_lanes(self) -> Cut:
        """The loop of lanes in vectors, ones that overlap where they are not whole."""
        tail: Tail = "exact" if self.width % self.lanes == 0 else "overlap"
        return Cut(self.vector, self.lanes, f"{self.vector}.o", f"{self.vector}.l", tail)

    @cached_property
    def beside(self) -> tuple[str, ...]:
        """The loops over results that lie between those of neighbouring lanes."""
        (result, *_) = self.nest.results
        apart = step(result, self.vector, self.nest)
        return tuple(n for n in self.nest.names if 0 < step(result, n, self.nest) < apart)

    @cached_property
    def _walks(self) -> list[Walk]:
        return [w for w in self.roles.walks if w.result != self.vector]

    @property
    def column(self) -> Walk:
        """The innermost walk but for that of the lanes."""
        return self._walks[-1]

    @cached_property
    def row(self) -> Walk | None:
        """The innermost walk by other loops than those of the columns, if there is one."""
        of_columns = {self.column.result, self.column.term}
        return next((w for w in reversed(self._walks) if not {w.result, w.term} & of_columns), None)

    @property
    def few_results(self) -> bool:
        """Whether a row has fewer results than terms, as a gradient by the taps has."""
        terms = self._extent(self.column.term)
        return self._extent(self.column.result) < min(terms, TAPS + 1)
