"""Non-temporal stores of results that exceed the last cache: whole lines go to memory without being read first."""

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
    """Return the results that are stored non-temporally, if they and the reads exceed the last cache.

    Rows of `row` results must be whole lines.  Of a narrow type, a tile must store whole lines at once.
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
    """Stream the results of a loop nest with lanes along a loop.

    They must be whole lines and, with the reads, exceed a share of the last cache.
    """
    row = {(nest.extent(vector) or 1) * s.value.type.dtype.bytes % machine.l1.line for s in nest.results}
    whole = machine.vector_bytes == machine.l1.line and row == {0}
    if whole and _is_beyond(nest, machine, share) and all(_together(s, vector, trial, machine) for s in nest.results):
        outputs = {o.name for o in trial.kernel.outputs}
        trial.take(*(Stream(s.buffer) for s in nest.results if s.buffer in outputs))


def _is_beyond(nest: Nest, machine: Machine, share: float) -> bool:
    """Return True if a loop nest touches more than a share of the last cache, much of it results."""
    read, touched = read_bytes(nest), touched_bytes(nest)
    return touched > share * machine.l3.size and touched - read >= read / NON_TEMPORAL


def _together(result: Store, vector: str, trial: Trial, machine: Machine) -> bool:
    """Return True if whole lines are stored at once: by one vector, or by a tile without wide accumulators."""
    dtype = result.value.type.dtype
    if _waits([result], trial):
        return False
    tiles = [s.factor for s in trial.steps if isinstance(s, Split) and s.loop == vector]
    return dtype == dtype.compute_type or any(size * dtype.bytes % machine.l1.line == 0 for size in tiles)


def _waits(results: Sequence[Store], trial: Trial) -> bool:
    """Return True if some of the results are accumulated in a wider type."""
    return any(isinstance(s, Widen) and s.buffer in {r.buffer for r in results} for s in trial.steps)
