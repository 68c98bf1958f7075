"""Non-temporal stores of results that the last cache would not hold: whole lines go to memory, and need not be read
before.
"""

from __future__ import annotations

from collections.abc import Sequence

from opgen.loop.nodes import Store
from opgen.loop.walk import loads
from opgen.machine import Machine
from opgen.schedule.auto.nests import Nest, read_bytes, touched_bytes
from opgen.schedule.auto.plan import Result
from opgen.schedule.auto.site import Site
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import FOUND, NON_TEMPORAL
from opgen.schedule.steps import Split, Stream, Widen


def non_temporal_results(site: Site, row: int | None, tile: int, machine: Machine) -> tuple[Result, ...]:
    """Non-temporal stores of the results of a nest, if rows of so many of them are whole lines, of which a tile stores
    some at once, and with what is read they are too much to be kept.
    """
    nest, line, kernel = site.nest, machine.l1.line, site.trial.kernel
    types = {s.value.type.dtype for s in nest.results}
    if machine.vector_bytes != line or not _is_beyond(nest, machine, FOUND):
        return ()
    if any((row or 1) * t.bytes % line for t in types):
        return ()
    if any(t != t.compute_type and tile * t.bytes % line for t in types) or _waits(nest.results, site.trial):
        return ()
    unread = {b.name for b in kernel.outputs} - {e.buffer for e in loads(kernel.body)}
    return tuple(Result(b, non_temporal=True) for b in dict.fromkeys(s.buffer for s in nest.results) if b in unread)


def store_non_temporally(nest: Nest, vector: str, trial: Trial, machine: Machine, share: float = FOUND) -> None:
    """Stream the results of a nest that has lanes along a loop, if that is whole lines and too much to be kept: more
    than a share of the last cache with what is read.
    """
    row = {(nest.extent(vector) or 1) * s.value.type.dtype.bytes % machine.l1.line for s in nest.results}
    whole = machine.vector_bytes == machine.l1.line and row == {0}
    if whole and _is_beyond(nest, machine, share) and all(_together(s, vector, trial, machine) for s in nest.results):
        outputs = {o.name for o in trial.kernel.outputs}
        trial.take(*(Stream(s.buffer) for s in nest.results if s.buffer in outputs))


def _is_beyond(nest: Nest, machine: Machine, share: float) -> bool:
    """Whether what a nest touches is more than a share of the last cache, and results are a part of it that counts."""
    read, touched = read_bytes(nest), touched_bytes(nest)
    return touched > share * machine.l3.size and touched - read >= read / NON_TEMPORAL


def _together(result: Store, vector: str, trial: Trial, machine: Machine) -> bool:
    """Whether whole lines are stored at once: by one vector, or those of a tile whose sums are not in wide results."""
    dtype = result.value.type.dtype
    if _waits([result], trial):
        return False
    tiles = [s.factor for s in trial.steps if isinstance(s, Split) and s.loop == vector]
    return dtype == dtype.compute_type or any(size * dtype.bytes % machine.l1.line == 0 for size in tiles)


def _waits(results: Sequence[Store], trial: Trial) -> bool:
    """Whether some of the results wait in a wider type."""
    return any(isinstance(s, Widen) and s.buffer in {r.buffer for r in results} for s in trial.steps)
