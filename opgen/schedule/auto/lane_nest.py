"""What all ways to schedule a nest in lanes are given."""

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
    """A nest that gets `lanes` along its loop `vector`, by steps that are taken in a trial."""

    nest: Nest
    trial: Trial
    vector: str
    lanes: int
    machine: Machine

    @cached_property
    def roles(self) -> Roles:
        """What operands and loops are for."""
        return Roles.of(self.nest, self.vector)

    @property
    def width(self) -> int:
        """The iterations of the loop of lanes; 0 where they are not known."""
        return self.roles.width

    @cached_property
    def memory(self) -> Memory:
        """What bytes cost on the machine."""
        return Memory(self.machine)

    @cached_property
    def execution(self) -> Execution:
        """What arithmetic costs on the machine."""
        return Execution(self.machine)

    def _extent(self, loop: str) -> int:
        """The iterations of a loop; 0 where they are not known."""
        return self.roles.extents[loop]

    @property
    def legal(self) -> bool:
        """Whether the nest is of this kind, as far as can be told before steps are taken."""
        return True

    @property
    def proven(self) -> bool:
        """Whether its sizes are such that this was measured to be faster than what else is legal."""
        return True

    @abstractmethod
    def take(self) -> bool:
        """Take the steps; whether they were legal."""

    def realised(self, plan: Plan, loop: str = "") -> bool:
        """Take the steps of a plan, of the nest of a loop (that of the lanes) as it is by now; whether they were
        legal.
        """
        return realise(plan, self.trial.nest(loop or self.vector), self.trial, self.machine)

    def run(self) -> bool:
        """Take the steps, or none, if they are legal and proven; whether they were."""
        return self.legal and self.proven and self.trial.attempt(self.take)
