"""Copies of what a tile reads again and again: in registers, or on the stack."""

from __future__ import annotations

from opgen.loop.nodes import Load
from opgen.loop.walk import buffers_in
from opgen.schedule.auto.nests import depends
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.sizes import bytes_of
from opgen.schedule.steps import Split, Stage, Step, Unroll, Vectorize


def stage_in_registers(trial: Trial, load: Load, at: str, vector: str | None = None) -> list[Step]:
    """Stage what one iteration of `at` reads of a buffer, one vector of lanes wide, or single elements that are the
    same for all lanes; none if that is refused.

    Gives the steps that make the copying vector code, to be taken once the lanes are.
    """
    lanes = None if vector is None else _lane_axis(load, vector)
    name = trial.fresh(f"{load.buffer}_kept")
    if (vector is not None and lanes is None) or not trial.take(Stage(load.buffer, at, "register", False, name)):
        return []
    unrolled: list[Step] = [Unroll(f"{name}_{d}") for d in range(len(load.indices)) if d != lanes]
    return unrolled if lanes is None else [*unrolled, Vectorize(f"{name}_{lanes}")]


def stage_on_stack(trial: Trial, load: Load, at: str, vector: str, lanes: int, most: float) -> list[Step]:
    """Stage what one iteration of `at` reads of a buffer, some vectors wide, if it has at most so many bytes.

    Gives the steps that make the copying vector code, to be taken once the lanes are.
    """
    axis = _lane_axis(load, vector)
    name = trial.fresh(f"{load.buffer}_near")
    before = trial.kernel, list(trial.steps)
    if axis != len(load.indices) - 1 or not trial.take(Stage(load.buffer, at, "stack", False, name)):
        return []
    row = f"{name}_{axis}"
    if _bytes(trial, name) > most or not trial.take(Split(row, lanes, "exact", f"{row}_o", f"{row}_l")):
        trial.kernel, trial.steps = before
        return []
    return [Unroll(f"{row}_o"), Vectorize(f"{row}_l")]


def _lane_axis(load: Load, vector: str) -> int | None:
    """The one dimension that the lanes walk along."""
    found = [d for d, index in enumerate(load.indices) if depends(index, vector)]
    return found[0] if len(found) == 1 else None


def _bytes(trial: Trial, name: str) -> int:
    buffer = next(o for o in buffers_in(trial.kernel.body) if o.name == name)
    return bytes_of(buffer, 1)
