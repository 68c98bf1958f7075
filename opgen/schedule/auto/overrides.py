"""Where the price of plans disagrees with what was measured: kinds that go before others, whatever they cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Override:
    """Plans of a `kind`, where there are any, go `before` those of other kinds, as was `measured`: an entry of the
    log.  Of one that is before itself the first plan stands.
    """

    kind: str
    before: tuple[str, ...]
    measured: str


COPIES = ("columns", "packed")
WITHOUT_MIXING = ("sum_blocks", "window_sums", "window", *COPIES)
TILES = ("outer", "nest", *WITHOUT_MIXING)
SUMS = ("scalar_rows", "products", "outer_maps", "ragged", "outer_pairs", "streamed", "taps", "pairs", *TILES)
MAPS = ("transposed_maps", *SUMS)
OF_ANY_SIZE = ("transposed", "elementwise", "rows", "whole", *COPIES)
WINDOWS = ("window_rows", "row_sums", "slices", *MAPS)

OVERRIDES: tuple[Override, ...] = (
    Override("open_few", ("open_tiles", *OF_ANY_SIZE), "E047"),
    Override("open_tiles", OF_ANY_SIZE, "E029"),
    Override("tile_products", ("tile_products", "few", "flat", *WINDOWS), "E080"),
    Override("few", ("flat", *WINDOWS), "E044"),
    Override("flat", WINDOWS, "E073"),
    Override("window_rows", WINDOWS[1:], "E045"),
    Override("row_sums", WINDOWS[2:], "E077"),
    Override("slices", MAPS, "E046"),
    Override("transposed_maps", SUMS, "E093"),
    Override("scalar_rows", SUMS, "E088"),
    Override("products", SUMS[1:], "E054"),
    Override("outer_maps", SUMS[2:], "E126"),
    Override("ragged", SUMS[3:], "E101"),
    Override("outer_pairs", SUMS[4:], "E129"),
    Override("streamed", SUMS[5:], "E068"),
    Override("taps", SUMS[6:], "E085"),
    Override("pairs", SUMS[7:], "E034"),
    Override("outer", TILES, "E084"),
    Override("nest", TILES[1:], "E003"),
    Override("sum_blocks", WITHOUT_MIXING[1:], "E038"),
    Override("window_sums", WITHOUT_MIXING[2:], "E022"),
    Override("window", COPIES, "E021"),
    Override("columns", ("packed",), "E104"),
)


def place(kind: str) -> int:
    """When a kind is asked: in the order of the overrides, then all others."""
    return next((i for i, o in enumerate(OVERRIDES) if o.kind == kind), len(OVERRIDES))


def is_before(first: str, second: str) -> bool:
    """Whether plans of one kind go before those of another."""
    return any(o.kind == first and second in o.before for o in OVERRIDES)
