"""How the lanes of a window lie."""

from __future__ import annotations

from dataclasses import dataclass

from opgen.schedule.steps import Split


@dataclass(frozen=True)
class Lanes:
    """How the loop of lanes is split, the order of the loops around a tile, and their names: the lane itself, the
    vectors, blocks of vectors if there are any.
    """

    splits: tuple[Split, ...]
    order: tuple[str, ...]
    lane: str
    vectors: str
    block: str | None = None
