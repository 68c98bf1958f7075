"""Nests without a reduction whose results do not lie along what they read: lanes follow what is read, and a block of
results is kept with lanes side by side and turned as it is copied out.
"""

from __future__ import annotations

from opgen.machine import Machine
from opgen.schedule.auto.copies.blocks import transposed_blocks
from opgen.schedule.auto.nests import Nest, contiguous_loop, depends, is_contiguous, nest_around, own_axis, with_last
from opgen.schedule.auto.trial import Trial
from opgen.schedule.steps import Pack, Parallel, Reorder


def loop_of_reads(nest: Nest) -> str | None:
    """The loop along which all that is read lies side by side, where there is none along which results do."""
    if contiguous_loop(nest) is not None or not nest.results:
        return None
    for loop in nest.names:
        reads = [e for e in nest.outside_loads if depends(e.indices, loop)]
        side_by_side = bool(reads) and all(is_contiguous(e, loop, nest.shapes) for e in reads)
        if side_by_side and all(own_axis(s, loop) is not None for s in nest.results):
            return loop
    return None


def move_inside(nest: Nest, loop: str, trial: Trial) -> bool:
    """Make a loop of a nest the innermost; whether that was legal."""
    return trial.take(Reorder((*(n for n in nest.names if n != loop), loop)))


def turned_rows(nest: Nest, loop: str, trial: Trial, machine: Machine) -> None:
    """Make a loop the innermost, for lanes.  What a block, or else a row, writes is kept with that dimension last and
    turned as it is copied out, where that is legal.
    """
    if nest.names[-1] != loop and not move_inside(nest, loop, trial):
        return
    result, rows, around = nest.results[0], trial.nest(loop).names[:-2], nest_around(trial.kernel, loop)
    axis = own_axis(result, loop)
    if axis is None or (around is None and (not rows or not trial.take(Parallel(rows[0])))):
        return
    order = with_last(len(result.indices), axis)
    name = trial.fresh(f"{result.buffer}_rows")
    if trial.take(Pack(result.buffer, order, name, rows[-1] if around is None else around.names[-1])):
        transposed_blocks(trial, name, machine.vector_bytes, ())
