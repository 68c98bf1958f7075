"""What all ways to schedule a nest in lanes are given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from opgen.machine import Machine
from opgen.schedule.auto.nests import Nest
from opgen.schedule.auto.trial import Trial


@dataclass(frozen=True)
class LaneNest(ABC):
    """A nest that gets `lanes` along its loop `vector`, by steps that are taken in a trial."""

    nest: Nest
    trial: Trial
    vector: str
    lanes: int
    machine: Machine

    @abstractmethod
    def run(self) -> bool:
        """Take the steps; whether they were legal and worth it."""
