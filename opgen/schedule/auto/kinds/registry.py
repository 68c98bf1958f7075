"""Registry of the kinds that propose plans, one per line."""

from __future__ import annotations

from opgen.schedule.auto.contraction.outer import OuterProducts
from opgen.schedule.auto.contraction.prepared import (
    as_given,
    packed,
    sums_in_rows,
    wide_scalars,
    wide_sums,
)
from opgen.schedule.auto.contraction.products import Products
from opgen.schedule.auto.kinds.columns import Columns
from opgen.schedule.auto.kinds.contracted import Contracted
from opgen.schedule.auto.kinds.elementwise import Elementwise
from opgen.schedule.auto.kinds.few import FewResults
from opgen.schedule.auto.kinds.gathered import Gathered
from opgen.schedule.auto.kinds.in_lanes import InLanes, along_results, along_slices, along_steps, along_terms
from opgen.schedule.auto.kinds.kind import Kind
from opgen.schedule.auto.kinds.nest import Tiled
from opgen.schedule.auto.kinds.open_sizes import OpenSizes
from opgen.schedule.auto.kinds.packed import Packed
from opgen.schedule.auto.kinds.pairs import InPairs
from opgen.schedule.auto.kinds.pieces import Pieces
from opgen.schedule.auto.kinds.ragged import InParts
from opgen.schedule.auto.kinds.recurrences import Recurrences
from opgen.schedule.auto.kinds.rows import Rows
from opgen.schedule.auto.kinds.scans import Scans
from opgen.schedule.auto.kinds.sorts import Sorts
from opgen.schedule.auto.kinds.strides import Strides
from opgen.schedule.auto.kinds.tile_products import OnTiles
from opgen.schedule.auto.kinds.transposed import Transposed
from opgen.schedule.auto.kinds.transposed_maps import OnTransposedMaps
from opgen.schedule.auto.kinds.updates import Updates
from opgen.schedule.auto.window.results import ResultTile
from opgen.schedule.auto.window.row_sums import RowSums
from opgen.schedule.auto.window.rows import RowTile
from opgen.schedule.auto.window.slices import Slices
from opgen.schedule.auto.window.sums import SumTile

TILES: tuple[Kind, ...] = (
    Contracted("products", Products, (as_given, wide_scalars)),
    InPairs(),
    Contracted("outer", OuterProducts, (wide_sums, packed, sums_in_rows)),
    Tiled(),
    InParts(),
)
"""Kinds of contractions."""

PACKED = InLanes("packed", Packed, along_results)

KINDS: tuple[Kind, ...] = (
    OpenSizes(),
    Pieces(),
    Transposed(),
    Gathered(),
    Updates(),
    Elementwise(),
    Strides(),
    Rows(),
    OnTiles(),
    InLanes("window_steps", ResultTile, along_steps),
    InLanes("sum_steps", SumTile, along_steps),
    InLanes("row_sums", RowSums, along_terms, masked=True),
    FewResults(),
    InLanes("window_rows", RowTile, along_results, masked=True),
    InLanes("slices", Slices, along_slices),
    OnTransposedMaps(),
    *TILES,
    InLanes("window_sums", SumTile, along_results),
    InLanes("window", ResultTile, along_results),
    InLanes("columns", Columns, along_results, masked=True),
    PACKED,
)
"""All kinds, the more special ones first, so that a good plan is found soon."""

QUICK: tuple[Kind, ...] = (PACKED, Updates(), Elementwise(), Rows())
"""Kinds for nests that run only if a condition on data holds."""

STEPS: tuple[Kind, ...] = (Scans(), Recurrences(), Sorts())
"""Kinds for loops over the steps of recurrences, and for loops around these."""
