"""The passes that every model goes through, in their order."""

from __future__ import annotations

from opgen.graph.passes.base import Pass
from opgen.graph.passes.common import COMMON
from opgen.graph.passes.dead import DEAD
from opgen.graph.passes.fold import FOLD

STANDARD: tuple[Pass, ...] = (DEAD, COMMON, FOLD)
