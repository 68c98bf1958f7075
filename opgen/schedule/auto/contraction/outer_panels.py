"""The panels of a sum of outer products: of a block's vectors, and of a group's scalars."""

from __future__ import annotations

from opgen.loop.nodes import Load
from opgen.schedule.auto.copies.panel import rows_in_lanes
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import LINE
from opgen.schedule.steps import Fill, Partition, Pitch

REST = "rest"
"""What the names of loops end in that come after the one that fills a panel."""


def panel_of_vectors(trial: Trial, rows: Load, blocks: str, lanes: int, filled: tuple[str, str] | None) -> bool:
    """What a block reads, copied at its beginning, or `filled`: by the first iteration of a loop over tiles, row by row
    in a loop over places, which hides the copy; the other iterations have names of their own.
    """
    name, copied = rows_in_lanes(trial, rows, blocks, lanes)
    if filled is not None:
        tiles, place = filled
        copied += [Partition(tiles, (1,), REST), Fill(name, place)]
    return trial.take(*copied)


def panel_of_scalars(trial: Trial, rows: Load, groups: str, lanes: int, width: int) -> bool:
    """What a group reads, `width` elements of each row; with a line between rows, so that they conflict in no sets."""
    name, copied = rows_in_lanes(trial, rows, groups, lanes, unrolled=False)
    return trial.take(*copied, Pitch(name, len(rows.indices) - 1, width + LINE // rows.dtype.bytes))
