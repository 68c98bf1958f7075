"""A nest and what a kind may know of the kernel around it."""

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
"""Which kinds are asked: all, or those of contractions."""


class Schedule(Protocol):
    """What schedules another nest in a trial: that of a copy, or a part of a nest."""

    def __call__(self, trial: Trial, nest: Nest, among: Among = "all") -> bool:
        """Whether a kind was found for the nest; among those of contractions one with lanes along its outermost loop,
        or nothing is done.
        """
        ...


def _always(late: bool) -> bool:
    return True


def _left(trial: Trial, nest: Nest, among: Among = "all") -> bool:
    """A nest that is left as it is."""
    return False


@dataclass(frozen=True, eq=False)
class Site:
    """`trial`: the kernel so far, in a fork of which a design takes its steps; `schedule`: for nests that it leaves to
    others; `along`: the only loop that lanes may go along, if there is such a one; `wanted`: asked before what takes
    long, whether plans are still looked for, or those for want of others.
    """

    nest: Nest
    trial: Trial
    schedule: Schedule = _left
    along: str | None = None
    wanted: Callable[[bool], bool] = _always
    _known: dict[object, object] = field(default_factory=dict)

    def once(self, key: object, find: Callable[[], T]) -> T:
        """What several kinds ask for, found once."""
        if key not in self._known:
            self._known[key] = find()
        return cast(T, self._known[key])

    @property
    def roles(self) -> Roles:
        """What operands and loops are for, where lanes go along results."""
        return Roles.of(self.nest)

    @property
    def inputs(self) -> frozenset[str]:
        """The kernel's."""
        return frozenset(b.name for b in self.trial.kernel.inputs)

    @cached_property
    def around(self) -> tuple[str, ...]:
        """The loops of a block that the nest is done in."""
        found = nest_around(self.trial.kernel, self.nest.names[0])
        return () if found is None else found.names


def terms_at_once(nest: Nest, machine: Machine) -> int:
    """How many terms of a sum one operation takes: four of bytes, where there is a dot product of them."""
    of_bytes = all(e.dtype in (UINT8, INT8) for e in nest.summed)
    return 4 if machine.quads and of_bytes and nest.inner_loops else 1


def lanes_of(nest: Nest, machine: Machine, extent: int | None, along: str | None = None) -> int:
    """As many as a register holds; for a shorter loop the greatest power of two that fits."""
    lanes = max(1, machine.vector_bytes // width_in_bytes(nest, along))
    while extent is not None and lanes > max(1, extent):
        lanes //= 2
    return lanes
