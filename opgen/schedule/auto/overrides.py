"""Where the price of plans disagrees with what was measured: kinds that go before others, though these cost less."""

from __future__ import annotations

from dataclasses import dataclass

from opgen.schedule.cost.calibration import MUCH_LESS


@dataclass(frozen=True)
class Override:
    """Plans of a `kind`, where there are any, go `before` those of other kinds that are asked later (the order is the
    registry's), as was `measured`: an entry of the log.  Of one that is before itself the first plan stands.  Another
    plan still counts if its estimated cost is less than the share `unless` of this one's.
    """

    kind: str
    before: tuple[str, ...]
    measured: str
    unless: float = 0.0


CONTRACTIONS = ("transposed_maps", "products", "ragged", "pairs", "outer", "nest")
WITHOUT_MIXING = ("window_sums", "window", "columns", "packed")
WINDOWS = ("slices", *CONTRACTIONS, *WITHOUT_MIXING)

OVERRIDES: tuple[Override, ...] = (
    Override("tile_products", ("tile_products", *CONTRACTIONS), "E080"),
    Override("row_sums", ("few", *WINDOWS), "E077"),
    Override("window_rows", WINDOWS, "E045"),
    Override("transposed_maps", CONTRACTIONS[1:], "E093", MUCH_LESS),
    Override("pairs", ("pairs", "outer", "nest"), "E034"),
    *(Override(kind, WITHOUT_MIXING, "E104") for kind in CONTRACTIONS),
)


def share_to_beat(first: str, second: str) -> float | None:
    """The share of the first kind's cost below which a plan of the second counts; None if no override is about them."""
    return next((o.unless for o in OVERRIDES if o.kind == first and second in o.before), None)


def is_before(first: str, second: str) -> bool:
    """Return True if plans of one kind go before those of another, whatever these cost."""
    return share_to_beat(first, second) == 0
