"""Common state of all schedules of a loop nest in vector lanes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from opgen.locks import cached_property
from opgen.machine import Machine
from opgen.schedule.auto.nests import Nest
from opgen.schedule.auto.plan import Plan
from opgen.schedule.auto.realise import realise
from opgen.schedule.auto.roles import Roles
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.execution import Execution
from opgen.schedule.cost.memory import Memory


@dataclass(frozen=True)
class LaneNest(ABC):
    """A loop nest that gets `lanes` along its loop `vector`, by steps that are taken in a trial."""

    nest: Nest
    trial: Trial
    vector: str
    lanes: int
    machine: Machine

    @cached_property
    def roles(self) -> Roles:
        """Return the operand roles and loop roles."""
        return Roles.of(self.nest, self.vector)

    @property
    def width(self) -> int:
        """Return the iterations of the loop of lanes; 0 if they are not known."""
        return self.roles.width

    @cached_property
    def memory(self) -> Memory:
        """Return the memory model of the machine."""
        return Memory(self.machine)

    @cached_property
    def execution(self) -> Execution:
        """Return the arithmetic model of the machine."""
        return Execution(self.machine)

    def _extent(self, loop: str) -> int:
        """Return the iterations of a loop; 0 if they are not known."""
        return self.roles.extents[loop]

    @property
    def legal(self) -> bool:
        """Return True if the loop nest is of this kind, as far as that is known before steps are taken."""
        return True

    @property
    def proven(self) -> bool:
        """Return True if this was measured, for such sizes, to be faster than any other legal kind."""
        return True

    @abstractmethod
    def take(self) -> bool:
        """Take the steps; return False if one was illegal."""

    def realised(self, plan: Plan, loop: str = "") -> bool:
        """Take the steps of a plan on the current loop nest of `loop`, by default that of the lanes.

        Return False if a step was illegal.
        """
        return realise(plan, self.trial.nest(loop or self.vector), self.trial, self.machine)

    def run(self) -> bool:
        """Take the steps if they are legal and proven, else none; return True if they were taken."""
        return self.legal and self.proven and self.trial.attempt(self.take)
