"""A register tile with the reduction inside, of operands as they lie by now."""

from __future__ import annotations

from opgen.machine import Machine
from opgen.schedule.auto.contraction.nest import Contraction
from opgen.schedule.auto.copies.panel import Marks
from opgen.schedule.auto.copies.prepare import split_phases
from opgen.schedule.auto.copies.row_panel import panelled_rows
from opgen.schedule.auto.nests import loops_of_reuse
from opgen.schedule.auto.trial import Trial
from opgen.schedule.steps import Widen


def tiled(trial: Trial, loop: str, lanes: int, machine: Machine) -> bool:
    """Lanes along a loop, a tile of positions by vectors."""
    nest = trial.nest(loop)
    if not loops_of_reuse(nest, loop):
        return False
    phases = split_phases(nest, trial)
    if loop in phases.quotients:  # its places take turns: lanes would go along none of them
        return False
    return Contraction(trial.nest(loop), trial, loop, lanes, phases, machine).run()


def tiled_in_wide_panels(trial: Trial, loop: str, lanes: int, machine: Machine) -> bool:
    """Such a tile, which reads narrow rows from panels in a wider type."""
    nest, ready = trial.nest(loop), len(trial.steps)
    marks = Marks(trial.kernel, ready, ready, ready)
    if not tiled(trial, loop, lanes, machine):
        return False
    panelled_rows(trial, marks, nest, loop, machine)
    return any(isinstance(s, Widen) for s in trial.steps[ready:])
