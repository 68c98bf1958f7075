"""Ring buffers for recurrences: rows that no later step reads are reused, so that results of steps stay in L2."""

from __future__ import annotations

from opgen.loop.walk import buffers_in, loops_in
from opgen.machine import Machine
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import FOUND
from opgen.schedule.cost.sizes import bytes_of
from opgen.schedule.ring import rows_needed
from opgen.schedule.steps import Ring


def ringed(trial: Trial, machine: Machine) -> None:
    """Keep only the last rows that steps make, if all of them exceed the second cache."""
    if not any(s.kind == "ordered" for s in loops_in(trial.kernel.body)):
        return
    for buffer in list(buffers_in(trial.kernel.body)):
        if buffer.space != "heap" or bytes_of(buffer, 0) <= FOUND * machine.l2.size:
            continue
        found = rows_needed(trial.kernel, buffer)
        if found is not None:
            trial.take(Ring(buffer.name, *found))
