"""Fission of loops over several loop nests, such as those of a recurrence of one step."""

from __future__ import annotations

from opgen.loop.nodes import Block, For
from opgen.loop.walk import stores
from opgen.schedule.auto.nests import nests
from opgen.schedule.auto.trial import Trial
from opgen.schedule.steps import Fission


def nests_apart(trial: Trial) -> None:
    """Split loops that hold several loop nests, as far as that is legal, so that each has a plan of its own."""
    refused: set[str] = set()
    while (found := _holder(trial, refused)) is not None:
        loop, parts = found
        refused.add(loop)
        names = tuple(trial.fresh(f"{loop}_{n}") for n in range(1, parts))
        trial.take(Fission(loop, names))


def _holder(trial: Trial, refused: set[str]) -> tuple[str, int] | None:
    """Return the first loop whose body is several loops that write distinct buffers, and their number."""
    for nest in nests(trial.kernel):
        if nest.names[-1] in refused or not isinstance(nest.core, Block):
            continue
        parts = nest.core.statements
        written = [{s.buffer for s in stores(p)} for p in parts]
        apart = sum(map(len, written)) == len(set[str]().union(*written))
        if apart and all(isinstance(p, For) for p in parts):
            return nest.names[-1], len(parts)
    return None
