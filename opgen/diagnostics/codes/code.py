"""One code of diagnostics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Language: TypeAlias = Literal["spec", "loop", "schedule", "graph"]
"""The texts that diagnostics are about."""


@dataclass(frozen=True, slots=True)
class Code:
    """A kind of mistake.  `example` is a text in `language` that draws it; `remedy` is what to do."""

    name: str
    title: str
    explanation: str
    example: str
    remedy: str
    language: Language = "spec"
