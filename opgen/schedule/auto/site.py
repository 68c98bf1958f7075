"""A loop nest, and the facts about the surrounding kernel that a kind may use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias, TypeVar, cast

from opgen.dtypes import INT8, UINT8
from opgen.locks import cached_property
from opgen.machine import Machine
from opgen.schedule.auto.nests import Nest, nest_around, width_in_bytes
from opgen.schedule.auto.roles import Roles
from opgen.schedule.auto.trial import Trial

T = TypeVar("T")

Among: TypeAlias = Literal["all", "tiles"]
"""The kinds that are tried: all of them, or those of contractions."""


class Schedule(Protocol):
    """Scheduler of another loop nest in a trial: that of a copy, or a part of a loop nest."""

    def __call__(self, trial: Trial, nest: Nest, among: Among = "all") -> bool:
        """Return True if a kind was found for the loop nest.

        With `among="tiles"`, only contractions with lanes along the outermost loop count; otherwise nothing is done.
        """
        ...


def _always(late: bool) -> bool:
    return True


def _left(trial: Trial, nest: Nest, among: Among = "all") -> bool:
    """Leave a loop nest as it is."""
    return False


@dataclass(frozen=True, eq=False)
class Site:
    """Scheduling context of a loop nest.

    `trial` holds the kernel so far; a design takes its steps in a fork of it.  `schedule` schedules the loop nests that
    a design leaves to others.  `along` is the only loop that lanes may go along, if there is such a loop.  `wanted` is
    called before expensive work: it returns True if plans, or late ones (`otherwise`), are still wanted.
    """

    nest: Nest
    trial: Trial
    schedule: Schedule = _left
    along: str | None = None
    wanted: Callable[[bool], bool] = _always
    _known: dict[object, object] = field(default_factory=dict)

    def once(self, key: object, find: Callable[[], T]) -> T:
        """Return a result that several kinds need, computing it once."""
        if key not in self._known:
            self._known[key] = find()
        return cast(T, self._known[key])

    @property
    def roles(self) -> Roles:
        """Return the operand roles and loop roles, with lanes along the results."""
        return Roles.of(self.nest)

    @property
    def inputs(self) -> frozenset[str]:
        """Return the names of the kernel's inputs."""
        return frozenset(b.name for b in self.trial.kernel.inputs)

    @cached_property
    def around(self) -> tuple[str, ...]:
        """Return the loops of the block in which the loop nest runs."""
        found = nest_around(self.trial.kernel, self.nest.names[0])
        return () if found is None else found.names


def terms_at_once(nest: Nest, machine: Machine) -> int:
    """Return the number of terms that one operation adds up: four if a dot product of bytes is available, else one."""
    of_bytes = all(e.dtype in (UINT8, INT8) for e in nest.summed)
    return 4 if machine.quads and of_bytes and nest.inner_loops else 1


def lanes_of(nest: Nest, machine: Machine, extent: int | None, along: str | None = None) -> int:
    """Return the number of lanes of a register; for a shorter loop the greatest power of two that fits."""
    lanes = max(1, machine.vector_bytes // width_in_bytes(nest, along))
    while extent is not None and lanes > max(1, extent):
        lanes //= 2
    return lanes
