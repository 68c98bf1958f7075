"""The kinds that are asked for plans, one a line."""

from __future__ import annotations

from opgen.schedule.auto.kinds.elementwise import Elementwise
from opgen.schedule.auto.kinds.kind import Kind
from opgen.schedule.auto.kinds.rows import Rows
from opgen.schedule.auto.kinds.transposed import Transposed
from opgen.schedule.auto.kinds.whole import Whole

KINDS: tuple[Kind, ...] = (
    Transposed(),
    Elementwise(),
    Rows(),
    Whole(),
)
