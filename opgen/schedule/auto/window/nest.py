"""Windows without a sum over channels: each lane reduces over its own neighbourhood, and neighbours share their reads.

Taps are unrolled, so that each read serves all results that need it.  Columns at the border are peeled; rows at the
border are branches.  The smaller number decides: with few terms, a tile of results is in registers (`results.py`); with
few results, all sums are in registers, with a tile of terms (`sums.py`).
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
    """Return the loop that all reads and stores follow in steps of a few elements, the stores never contiguously."""
    touched: tuple[Load | Store, ...] = (*nest.summed, *nest.results)
    steps = {n: [step(e, n, nest) for e in touched] for n in nest.names}
    found = [n for n, s in steps.items() if min(s) >= 1 and max(s) <= WINDOW_STEP and s[-1] > 1]
    return found[-1] if found and touched else None


def step(access: Load | Store, loop: str, nest: Nest) -> int:
    """Return the elements by which each iteration advances an access; 0 if it stays or that is not known."""
    strides = strides_of(access, [loop], nest.shapes) or {}
    return strides.get(loop, 0) // element_of(access)


def near(nest: Nest, loop: str) -> bool:
    """Return True if adjacent lanes along a loop read elements only a few elements apart."""
    return all(1 <= step(e, loop, nest) <= WINDOW_GATHERED for e in nest.summed)


@dataclass(frozen=True)
class Planned(LaneNest):
    """A loop nest for which there is one plan."""

    @abstractmethod
    def plan(self) -> Plan:
        """Return the plan."""

    def take(self) -> bool:
        """Take the steps of the plan; large results that lanes store contiguously are stored non-temporally."""
        taken = self.realised(self.plan())
        if taken and self.vector not in self.nest.phases:
            store_non_temporally(self.nest, self.vector, self.trial, self.machine)
        return taken


@dataclass(frozen=True)
class WindowNest(Planned):
    @property
    def legal(self) -> bool:
        """Return True if the loop nest is a window without broadcast operands.

        The lanes' reads are contiguous or nearly so, and all extents are known.  No window access has results between
        those of neighbouring lanes.
        """
        known = self.roles.is_sum and all(self.roles.counts.values())
        if not (self.lanes > 1 and known and self.roles.is_window and self._walks):
            return False
        between = any(w.result in self.beside for w in self._walks)
        return not between and (worth_lanes(self.nest, self.vector) or near(self.nest, self.vector))

    @property
    def in_lanes(self) -> Cut:
        """Return the cut of the lanes' loop into vectors; they overlap if they are not whole."""
        tail: Tail = "exact" if self.width % self.lanes == 0 else "overlap"
        return Cut(self.vector, self.lanes, f"{self.vector}.o", f"{self.vector}.l", tail)

    @cached_property
    def beside(self) -> tuple[str, ...]:
        """Return the loops over results that are stored between those of neighbouring lanes."""
        (result, *_) = self.nest.results
        apart = step(result, self.vector, self.nest)
        return tuple(n for n in self.nest.names if 0 < step(result, n, self.nest) < apart)

    @cached_property
    def _walks(self) -> list[Walk]:
        return [w for w in self.roles.walks if w.result != self.vector]

    @property
    def column(self) -> Walk:
        """Return the innermost window access without that of the lanes."""
        return self._walks[-1]

    @cached_property
    def row(self) -> Walk | None:
        """Return the innermost window access by other loops than those of the columns, if there is one."""
        of_columns = {self.column.result, self.column.term}
        return next((w for w in reversed(self._walks) if not {w.result, w.term} & of_columns), None)

    @property
    def few_results(self) -> bool:
        """Return True if a row has fewer results than terms, as a gradient by the taps has."""
        terms = self._extent(self.column.term)
        return self._extent(self.column.result) < min(terms, TAPS + 1)
