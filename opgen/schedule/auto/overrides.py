"""Kinds that measurements put before others, although the others have a lower estimated cost."""

from __future__ import annotations

from dataclasses import dataclass

from opgen.schedule.cost.calibration import MUCH_LESS


@dataclass(frozen=True)
class Override:
    """Precedence of plans of a `kind`, if there are any, over plans of the kinds in `before`.

    It applies to kinds that come later in the registry.  `measured` names the log's entry with the measurement.  A kind
    in its own `before` keeps its first plan.  Another plan still counts if its estimated cost is below the share
    `unless` of this one's.
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
    """Return the share of the first kind's cost that a plan of the second must beat; None without an override."""
    return next((o.unless for o in OVERRIDES if o.kind == first and second in o.before), None)


def is_before(first: str, second: str) -> bool:
    """Return True if plans of one kind go before those of another, regardless of cost."""
    return share_to_beat(first, second) == 0
