"""Joins of loops that advance row by row: a plan may join two of them if the step that does so is legal."""

from __future__ import annotations

from dataclasses import dataclass, field

from opgen.schedule.auto.plan import Handle
from opgen.schedule.auto.site import Site
from opgen.schedule.auto.trial import Trial
from opgen.schedule.steps import Flatten, Reorder


@dataclass
class Joins:
    """Loops of a loop nest over results, as handles; `joined` lists the joined ones, in that order."""

    site: Site
    loops: list[Handle] = field(init=False)
    extents: dict[Handle, int] = field(init=False)
    joined: list[Handle] = field(default_factory=list)
    _trial: Trial = field(init=False)
    _names: dict[Handle, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        nest = self.site.nest
        self.loops = list(nest.names)
        self.extents = {n: nest.extent(n) or 0 for n in nest.names}
        self._trial = self.site.trial.fork()

    def absorb(self, loop: Handle) -> Handle:
        """Join to a loop every other one that it continues row by row, as far as there are any."""
        for outer in self.loops:
            if outer != loop and self._join(outer, loop):
                return self.absorb(f"{outer}*{loop}")
        return loop

    def _join(self, outer: Handle, inner: Handle) -> bool:
        """Join two loops into one, which becomes innermost; return False if that is illegal."""
        both, others = f"{outer}*{inner}", [n for n in self.loops if n not in (outer, inner)]
        order = tuple(self._names.get(n, n) for n in (*others, outer, inner))
        name = self._trial.fresh(f"{order[-2]}_{order[-1]}")
        if not self._trial.take(Reorder(order), Flatten(order[-2], order[-1], name)):
            return False
        self._names[both] = name
        self.joined.append(both)
        self.extents[both] = self.extents[outer] * self.extents[inner]
        self.loops = [*others, both]
        return True
