"""Why a model cannot be made a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opgen.diagnostics import UserError


@dataclass(frozen=True)
class Problem:
    """Why a call of a model cannot be made: its node and operator, and the reason; `origin` is where it stands."""

    node: str
    operator: str
    reason: str
    origin: str = ""

    def __str__(self) -> str:
        where = self.origin or f"node '{self.node}' ({self.operator})"
        return f"{where}: {self.reason}"


class ModelError(UserError):
    """A model that cannot be made a graph for the inputs that are given; `problems` are all that was found."""

    def __init__(self, model: str, problems: Sequence[Problem]) -> None:
        self.model = model
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, problems)))

    def __reduce__(self) -> tuple[type[ModelError], tuple[str, tuple[Problem, ...]]]:
        return type(self), (self.model, self.problems)
