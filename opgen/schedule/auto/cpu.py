"""Automatic schedule of one loop nest for a CPU with vector registers: the cheapest plan of the kinds (`kinds/`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opgen.machine import Machine
from opgen.schedule.auto.choose import Chooser
from opgen.schedule.auto.kinds import registry
from opgen.schedule.auto.kinds.kind import Kind
from opgen.schedule.auto.nests import Nest, conditional_loops, nest_of
from opgen.schedule.auto.plain import plain
from opgen.schedule.auto.site import Among
from opgen.schedule.auto.trial import Trial
from opgen.schedule.focus import focus_on_loops


@dataclass(frozen=True)
class CpuNest:
    nest: Nest
    trial: Trial
    machine: Machine

    def run(self) -> bool:
        """Return True if a kind was found; otherwise threads share the loop nest."""
        if not self.nest.results:
            return False
        if self.nest.names[0] in conditional_loops(focus_on_loops(self.trial.kernel, self.nest.names[:1])):
            # a better schedule would take longer to build than it saves
            self._chosen(registry.QUICK)
            return False
        found = self._chosen(registry.KINDS)
        if not found:
            plain(nest_of(self.trial.kernel, *self.nest.names), self.trial)
        return found

    def run_steps(self) -> bool:
        """Return True if a kind was found for loops over the steps of recurrences, or around such."""
        return self._chosen(registry.STEPS)

    def _chosen(self, kinds: Sequence[Kind], along: str | None = None) -> bool:
        nest = nest_of(self.trial.kernel, *self.nest.names)  # current: operands may have been packed since
        return Chooser(nest, self.trial, self.machine, self._schedule, kinds, along).run()

    def _schedule(self, trial: Trial, nest: Nest, among: Among = "all") -> bool:
        part = CpuNest(nest, trial, self.machine)
        return part.run() if among == "all" else part._chosen(registry.TILES, nest.names[0])
