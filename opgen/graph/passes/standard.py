"""The passes that every model goes through, in their order."""

from __future__ import annotations

from opgen.graph.passes.base import Pass
from opgen.graph.passes.bounded import bounded
from opgen.graph.passes.dead import DEAD
from opgen.graph.passes.fold import FOLD
from opgen.graph.passes.fold_post_scale import affine
from opgen.graph.passes.fold_pre_scale import ahead
from opgen.graph.passes.fuse import FUSE
from opgen.graph.passes.kept import kept
from opgen.graph.passes.order import CLEANING

STANDARD: tuple[Pass, ...] = (
    *CLEANING,
    bounded(lambda without: kept(affine(without))),
    bounded(lambda without: kept(ahead(without))),
    FOLD,
    DEAD,
    kept(FUSE),
)
