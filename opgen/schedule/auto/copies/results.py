"""Results that lanes would store apart: a row of them is kept side by side and transposed as it is copied out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from opgen.machine import Machine
from opgen.schedule.auto.copies.blocks import transposed_blocks
from opgen.schedule.auto.copies.panel import Marks
from opgen.schedule.auto.nests import is_contiguous, nests, own_axis, with_last
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import SHORTEST_ROW
from opgen.schedule.steps import Fuse, Pack, Parallel, Partition, Reorder, Split, Step


def transposed_results(trial: Trial, marks: Marks, vector: str, machine: Machine) -> None:
    """Let the tile along `vector` store to a local row of results, in which lanes are neighbours, if results lie
    consecutively along another loop of the tile.
    """
    nest = Trial(marks.kernel).nest(vector)
    if len(nest.results) != 1 or is_contiguous(nest.results[0], vector, nest.shapes):
        return
    (result,), steps = nest.results, trial.steps
    along = [n for n in nest.names if is_contiguous(result, n, nest.shapes)]
    splits = [s for s in steps[marks.ready :] if isinstance(s, Split) and s.loop in along]
    axis = own_axis(result, vector)
    if len(splits) != 1 or axis is None or (nest.extent(splits[0].loop) or 0) < SHORTEST_ROW:
        return
    again = Trial(marks.kernel)
    # First and last tiles become loops of their own later: now there is one store.
    tile = [s for s in steps[marks.ready :] if not isinstance(s, Parallel | Fuse | Partition)]
    if not again.take(*steps[marks.before : marks.ready], *tile):
        return
    names = next((n.names for n in nests(again.kernel) if splits[0].outer in n.names), ())
    around = names[: names.index(splits[0].outer)] if names else ()
    order = with_last(len(result.indices), axis)
    name = again.fresh(f"{result.buffer}_row")
    if not around:
        return
    row = Pack(result.buffer, order, name, around[-1])
    if not again.take(row):
        again = Trial(marks.kernel)
        if not again.take(*steps[marks.before : marks.ready], *_after(row, tile, around)):
            return
    ends = [s for s in steps[marks.ready :] if isinstance(s, Partition)]
    if transposed_blocks(again, name, machine.vector_bytes, around) and again.take(*ends):
        trial.adopt(again, marks.before)


def _after(row: Pack, tile: Sequence[Step], around: Sequence[str]) -> list[Step]:
    """The steps of a tile that come after the row of results is made, within the loops around it: of a tile whose last
    vector overlaps the one before it is not known that it stores all of the row.
    """
    at = next((i + 1 for i, s in enumerate(tile) if isinstance(s, Reorder)), 0)
    inside = (
        replace(s, loops=tuple(n for n in s.loops if n not in around)) if isinstance(s, Reorder) else s
        for s in tile[at:]
    )
    return [*tile[:at], row, *inside]
