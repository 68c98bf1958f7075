"""Copies that begin at a line: arrays as given may begin anywhere, and then every vector of theirs lies across two
lines, which is two accesses of the first cache.

What the lanes of a contraction read again and again is copied once, if that is little beside the arithmetic; where the
rows that a tile reads conflict in few sets of the first cache, with room between them.
"""

from __future__ import annotations

from opgen.loop.nodes import Const, Load
from opgen.machine import Machine
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.accesses import accesses
from opgen.schedule.auto.copies.panel import rows_in_lanes
from opgen.schedule.auto.copies.prepare import elements
from opgen.schedule.auto.nests import Nest, count_of_terms, is_contiguous
from opgen.schedule.auto.roles import Roles
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import ALIGNED_COPY, ALL, COPY_ALIGNED, LINE
from opgen.schedule.cost.memory import Memory
from opgen.schedule.cost.traffic import Loop, region
from opgen.schedule.steps import Pack, Parallel, Pitch, Split, Step


def lined_up(trial: Trial, before: int, nest: Nest, vector: str, lanes: int, machine: Machine) -> None:
    """Copy what lanes read, if that pays: after `before` steps nothing of it was copied, and the nest was `nest`."""
    rows = _rows(trial, before, nest, vector)
    if rows is None or rows.dtype.bytes * lanes < LINE or elements(nest, rows.buffer) == 0:
        return
    size = elements(nest, rows.buffer) * rows.dtype.bytes
    copying = 2 * size / machine.l3.bytes_per_second
    if (
        not Memory(machine).holds(size, 2, COPY_ALIGNED)
        or copying > ALIGNED_COPY * count_of_terms(nest) / lanes / machine.fma_per_second
    ):
        return
    name, steps = rows_in_lanes(trial, rows, None, lanes, unrolled=False)
    width = next(s.factor for s in trial.steps[before:] if isinstance(s, Split) and s.loop == vector)

    def copied() -> bool:
        outer = [f"{name}_{d}" for d in range(len(rows.indices) - 1)]
        return trial.take(*steps) and trial.fused_prefix(outer, Parallel)

    if trial.attempt(copied):
        trial.take(*_room(rows, nest, vector, width, name, machine))


def _rows(trial: Trial, before: int, nest: Nest, vector: str) -> Load | None:
    """What lanes read, if it is an input as it was given, and vectors of its rows."""
    found = Roles.of(nest, vector).vectors
    packed = {s.buffer for s in trial.steps[before:] if isinstance(s, Pack)}
    tiled = any(isinstance(s, Split) and s.loop == vector for s in trial.steps[before:])
    if len(found) != 1 or found[0].buffer in packed or not tiled or len(found[0].indices) < 2:
        return None
    given = found[0].buffer in {b.name for b in trial.kernel.inputs}
    return found[0] if given and is_contiguous(found[0], vector, nest.shapes) else None


def _room(rows: Load, nest: Nest, vector: str, width: int, name: str, machine: Machine) -> list[Step]:
    """A line between rows of which a tile would find too many in few sets, though not in all of them."""
    found = accesses(nest)
    access = next((a for a in found or () if a.buffer == rows.buffer and vector in a.strides), None)
    if access is None:
        return []
    loops = [Loop(s.var, constant_extent(s) or 1) for s in nest.inner_loops]
    pieces = region(access, [*loops, Loop(vector, width)])
    if Memory(machine).fits(pieces, 1) or not Memory(machine).holds(pieces.bytes, 1, ALL):
        return []
    row = nest.shapes[rows.buffer][-1]
    room = LINE // rows.dtype.bytes
    return [Pitch(name, len(rows.indices) - 1, int(row.value) + room)] if isinstance(row, Const) else []
