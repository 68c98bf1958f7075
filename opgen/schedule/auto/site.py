"""A nest and what a kind may know of the kernel around it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from opgen.loop.nodes import Stmt
from opgen.loop.walk import loads, stores
from opgen.machine import Machine
from opgen.schedule.auto.nests import Nest, nest_around, width_in_bytes
from opgen.schedule.auto.roles import Roles
from opgen.schedule.auto.trial import Trial
from opgen.schedule.steps import Widen


@dataclass(frozen=True)
class Site:
    """`inputs`: the kernel's; `unread`: its outputs that it does not read; `own`: the arguments that nothing else
    accesses; `around`: the loops of a block that the nest is done in; `widened`: results that wait in a wider type.
    """

    nest: Nest
    inputs: frozenset[str] = frozenset()
    unread: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    around: tuple[str, ...] = ()
    widened: frozenset[str] = frozenset()

    @staticmethod
    def of(nest: Nest, trial: Trial) -> Site:
        kernel, around = trial.kernel, nest_around(trial.kernel, nest.names[0])
        arguments = {b.name for b in kernel.buffers}
        every, here = _accesses(kernel.body), _accesses(nest.core)
        return Site(
            nest,
            frozenset(b.name for b in kernel.inputs),
            frozenset(b.name for b in kernel.outputs) - {e.buffer for e in loads(kernel.body)},
            frozenset(n for n in here if n in arguments and here[n] == every[n]),
            () if around is None else around.names,
            frozenset(s.buffer for s in trial.steps if isinstance(s, Widen)),
        )

    @property
    def roles(self) -> Roles:
        """What operands and loops are for, where lanes go along results."""
        return Roles.of(self.nest)


def _accesses(s: Stmt) -> Counter[str]:
    """How often each buffer is accessed in a statement."""
    return Counter([*(e.buffer for e in loads(s)), *(p.buffer for p in stores(s))])


def lanes_of(nest: Nest, machine: Machine, extent: int | None, along: str | None = None) -> int:
    """As many as a register holds; for a shorter loop the greatest power of two that fits."""
    lanes = max(1, machine.vector_bytes // width_in_bytes(nest, along))
    while extent is not None and lanes > max(1, extent):
        lanes //= 2
    return lanes
