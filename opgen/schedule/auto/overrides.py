"""Where the price of plans disagrees with what was measured: kinds that go before others, whatever they cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Override:
    """Plans of a `kind`, where there are any, go `before` those of other kinds that are asked later (the order is the
    registry's), as was `measured`: an entry of the log.  Of one that is before itself the first plan stands.
    """

    kind: str
    before: tuple[str, ...]
    measured: str


COPIES = ("columns", "packed")
WITHOUT_MIXING = ("window_sums", "window", *COPIES)
TILES = ("products", "ragged", "streamed", "pairs", "outer", "nest")
CONTRACTIONS = ("transposed_maps", *TILES)
WINDOWS = ("row_sums", "window_rows", "slices", *CONTRACTIONS, *WITHOUT_MIXING)
OF_ANY_SIZE = ("pieces", "transposed", "elementwise", "rows", "whole", *COPIES)

OVERRIDES: tuple[Override, ...] = (
    Override("open_tiles", OF_ANY_SIZE, "E029"),
    Override("pieces", OF_ANY_SIZE[1:], "E151"),
    Override("tile_products", ("tile_products", "few", *WINDOWS), "E080"),
    Override("window_steps", ("few", *WINDOWS), "E136"),
    Override("sum_steps", ("few", *WINDOWS), "E136"),
    Override("few", ("window_rows", *CONTRACTIONS, *WITHOUT_MIXING), "E044"),
    Override("window_rows", WINDOWS[2:], "E045"),
    Override("row_sums", ("few", *WINDOWS[2:]), "E077"),
    Override("transposed_maps", TILES, "E093"),
    Override("products", ("nest",), "E054"),
    Override("streamed", ("outer", "nest"), "E068"),
    Override("outer", ("nest",), "E084"),
    Override("pairs", ("pairs", "outer", "nest"), "E034"),
    Override("nest", ("nest",), "E052"),
    *(Override(kind, WITHOUT_MIXING, "E104") for kind in CONTRACTIONS),
)


def is_before(first: str, second: str) -> bool:
    """Whether plans of one kind go before those of another."""
    return any(o.kind == first and second in o.before for o in OVERRIDES)
