"""Where a step of a schedule stands in the text that it was read from."""

from __future__ import annotations

from dataclasses import dataclass, field

from opgen.diagnostics import Span


@dataclass(frozen=True)
class Placed:
    """What every step has: where it stands, if it was read from a text."""

    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)
