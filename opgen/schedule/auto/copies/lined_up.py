"""Copies that begin at a line: arrays as given may begin anywhere, and then every vector of theirs lies across two
lines, which is two accesses of the first cache.

What the lanes of a contraction read again and again is copied once, if that is little beside the arithmetic; where the
rows that a tile reads crowd few sets of the first cache, with room between them.
"""

from __future__ import annotations

from math import prod

from opgen.loop.nodes import Const, Load
from opgen.machine import Machine
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.copies.prepare import elements
from opgen.schedule.auto.nests import Nest, depends, is_contiguous
from opgen.schedule.auto.traffic import LINE, Loop, accesses, region
from opgen.schedule.auto.trial import Trial
from opgen.schedule.steps import Pack, Parallel, Pitch, Split, Step, Vectorize

SHARE = 1 / 2
"""Of the second cache, for a copy."""
LITTLE = 1 / 50
"""The part of the arithmetic's time that a copy may take."""


def lined_up(trial: Trial, before: int, nest: Nest, vector: str, lanes: int, machine: Machine) -> None:
    """Copy what lanes read, if that pays: after `before` steps nothing of it was copied, and the nest was `nest`."""
    rows = _rows(trial, before, nest, vector)
    if rows is None or rows.dtype.bytes * lanes < LINE or elements(nest, rows.buffer) == 0:
        return
    size = elements(nest, rows.buffer) * rows.dtype.bytes
    copying = 2 * size / machine.l3.bytes_per_second
    if size > SHARE * machine.l2.size or copying > LITTLE * _arithmetic(nest, lanes, machine):
        return
    name, last = trial.fresh(f"{rows.buffer}_copy"), len(rows.indices) - 1
    row = f"{name}_{last}"
    width = next(s.factor for s in trial.steps[before:] if isinstance(s, Split) and s.loop == vector)

    def copied() -> bool:
        taken = trial.take(
            Pack(rows.buffer, tuple(range(last + 1)), name),
            Split(row, lanes, "exact", f"{row}_o", f"{row}_l"),
            Vectorize(f"{row}_l"),
        )
        return taken and trial.fused_prefix([f"{name}_{d}" for d in range(last)], Parallel)

    if trial.attempt(copied):
        trial.take(*_room(rows, nest, vector, width, name, machine))


def _rows(trial: Trial, before: int, nest: Nest, vector: str) -> Load | None:
    """What lanes read, if it is an input as it was given, and vectors of its rows."""
    found = list(dict.fromkeys(e for e in nest.outside_loads if depends(e.indices, vector)))
    packed = {s.buffer for s in trial.steps[before:] if isinstance(s, Pack)}
    tiled = any(isinstance(s, Split) and s.loop == vector for s in trial.steps[before:])
    if len(found) != 1 or found[0].buffer in packed or not tiled or len(found[0].indices) < 2:
        return None
    given = found[0].buffer in {b.name for b in trial.kernel.inputs}
    return found[0] if given and is_contiguous(found[0], vector, nest.shapes) else None


def _arithmetic(nest: Nest, lanes: int, machine: Machine) -> float:
    """The seconds that a nest computes."""
    terms = prod(constant_extent(s) or 0 for s in nest.inner_loops)
    return prod(nest.extent(n) or 0 for n in nest.names) * terms / lanes / machine.fma_per_second


def _room(rows: Load, nest: Nest, vector: str, width: int, name: str, machine: Machine) -> list[Step]:
    """A line between rows of which a tile would find too many in few sets, though not in all of them."""
    found = accesses(nest)
    access = next((a for a in found or () if a.buffer == rows.buffer and vector in a.strides), None)
    if access is None:
        return []
    loops = [Loop(s.var, constant_extent(s) or 1) for s in nest.inner_loops]
    pieces = region(access, [*loops, Loop(vector, width)])
    if pieces.fits(machine.l1) or pieces.bytes > machine.l1.size:
        return []
    row = nest.shapes[rows.buffer][-1]
    room = LINE // rows.dtype.bytes
    return [Pitch(name, len(rows.indices) - 1, int(row.value) + room)] if isinstance(row, Const) else []
