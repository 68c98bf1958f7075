"""What all ways to schedule a nest in lanes are given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

from opgen.machine import Machine
from opgen.schedule.auto.nests import Nest
from opgen.schedule.auto.roles import Roles
from opgen.schedule.auto.trial import Trial


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

    @abstractmethod
    def run(self) -> bool:
        """Take the steps; whether they were legal and worth it."""
