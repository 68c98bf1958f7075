"""Copies in registers of what a tile reads again and again."""

from __future__ import annotations

from opgen.loop.nodes import Load
from opgen.schedule.auto.nests import depends
from opgen.schedule.auto.trial import Trial
from opgen.schedule.steps import Stage, Step, Unroll, Vectorize


def stage_in_registers(trial: Trial, load: Load, at: str, vector: str) -> list[Step]:
    """Stage what one iteration of `at` reads of a buffer; none if that is refused.

    Gives the steps that make the copying vector code, to be taken once the lanes are.
    """
    lanes = [d for d, index in enumerate(load.indices) if depends(index, vector)]
    name = trial.fresh(f"{load.buffer}_kept")
    if len(lanes) != 1 or not trial.take(Stage(load.buffer, at, "register", False, name)):
        return []
    others = [d for d in range(len(load.indices)) if d not in lanes]
    return [*(Unroll(f"{name}_{d}") for d in others), Vectorize(f"{name}_{lanes[0]}")]
