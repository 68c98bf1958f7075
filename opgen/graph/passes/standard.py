"""Standard passes of every model, in their order."""

from __future__ import annotations

from opgen.graph.passes.common import COMMON
from opgen.graph.passes.dead import DEAD
from opgen.graph.passes.fold import FOLD
from opgen.graph.passes.fold_post_scale import AFFINE
from opgen.graph.passes.fold_pre_scale import AHEAD
from opgen.graph.passes.fuse import FUSE
from opgen.graph.passes.kept import kept
from opgen.graph.passes.order import ordered
from opgen.graph.passes.results import RESULTS
from opgen.graph.passes.shapes import SHAPES
from opgen.graph.passes.views import VIEWS

PASSES = (AFFINE, AHEAD, COMMON, DEAD, FOLD, FUSE, RESULTS, SHAPES, VIEWS)
"""All passes, each as its file declares it."""

STANDARD = tuple(kept(p) if p.slow else p for p in ordered(PASSES))

CLEANING = ordered(p for p in PASSES if not p.slow)
"""The quick passes: they make any graph smaller, and a second round changes nothing."""
