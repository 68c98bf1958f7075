"""The automatic schedule of one nest for a CPU with vector registers: the cheapest of what kinds propose (`kinds/`)."""

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
        """Whether a kind was found; without one, threads share the nest."""
        if not self.nest.results:
            return False
        if self.nest.names[0] in conditional_loops(focus_on_loops(self.trial.kernel, self.nest.names[:1])):
            # not worth the time that a better schedule takes to build
            self._chosen(registry.QUICK)
            return False
        found = self._chosen(registry.KINDS)
        if not found:
            plain(nest_of(self.trial.kernel, *self.nest.names), self.trial)
        return found

    def run_steps(self) -> bool:
        """Whether a kind was found for a nest of loops over the steps of recurrences, or around such."""
        return self._chosen(registry.STEPS)

    def _chosen(self, kinds: Sequence[Kind], along: str | None = None) -> bool:
        nest = nest_of(self.trial.kernel, *self.nest.names)  # as it is now: what it reads may have been packed since
        return Chooser(nest, self.trial, self.machine, self._schedule, kinds, along).run()

    def _schedule(self, trial: Trial, nest: Nest, among: Among = "all") -> bool:
        part = CpuNest(nest, trial, self.machine)
        return part.run() if among == "all" else part._chosen(registry.TILES, nest.names[0])
