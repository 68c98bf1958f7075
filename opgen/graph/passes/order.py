"""The passes in the order in which a model takes them before its nodes are fused."""

from __future__ import annotations

from opgen.graph.passes.base import Pass
from opgen.graph.passes.common import COMMON
from opgen.graph.passes.dead import DEAD
from opgen.graph.passes.fold import FOLD
from opgen.graph.passes.results import RESULTS
from opgen.graph.passes.shapes import SHAPES
from opgen.graph.passes.views import VIEWS

CLEANING: tuple[Pass, ...] = (DEAD, RESULTS, SHAPES, DEAD, FOLD, VIEWS, COMMON, DEAD)
"""What makes any graph smaller; nothing is left to do for a second round."""
