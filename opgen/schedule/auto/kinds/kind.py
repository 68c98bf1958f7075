"""Protocol of a kind of plan, which proposes legal plans for a nest and does nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from opgen.machine import Machine
from opgen.schedule.auto.design import Design
from opgen.schedule.auto.plan import Plan
from opgen.schedule.auto.site import Site


class Kind(Protocol):
    @property
    def name(self) -> str: ...

    def plans(self, site: Site, machine: Machine) -> Iterator[Plan | Design]:
        """Yield plans that may be taken for a nest, each by itself; none if the nest is of another kind."""
        ...
