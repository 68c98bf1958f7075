"""Reasons why a model cannot become a graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opgen.diagnostics import UserError, brief, first_of

if TYPE_CHECKING:
    from opgen.graph.ir.nodes import Graph

TOO_DEEP = "it takes and makes {count} tensors, and its expression is nested too deeply; split it into several calls"


@dataclass(frozen=True)
class Problem:
    """Reason why a call of a model cannot be made, with its node and operator; `origin` is its place in the source.

    `undecided`: it can be made once its inputs are computed.  `step` is the step of the whole model that contains it.
    """

    node: str
    operator: str
    reason: str
    origin: str = ""
    undecided: bool = False
    step: str = ""

    def __str__(self) -> str:
        where = self.origin or f"node '{brief(self.node)}' ({brief(self.operator)})"
        return f"{brief(where, 300)}: {brief(self.reason, 1000)}"


class ModelError(UserError):
    """A model that cannot become a graph for the given inputs; `problems` are all problems found."""

    def __init__(self, model: str, problems: Sequence[Problem]) -> None:
        self.model = model
        self.problems = tuple(problems)
        super().__init__("\n".join(first_of([str(p) for p in problems])))

    def __reduce__(self) -> tuple[type[ModelError], tuple[str, tuple[Problem, ...]]]:
        return type(self), (self.model, self.problems)


class UndecidedError(ModelError):
    """A model that cannot become one graph: some of its calls can only be resolved while it runs."""


@contextmanager
def nested_at_most(graph: Graph) -> Iterator[None]:
    """Blame the node with the most tensors if expressions are nested too deeply for Python's recursion."""
    try:
        yield
    except RecursionError:
        node = max(graph.nodes, key=lambda n: len(n.inputs) + len(n.outputs))
        reason = TOO_DEEP.format(count=len(node.inputs) + len(node.outputs))
        raise ModelError(graph.name, [Problem(node.name, node.op.spec.name, reason, node.origin)]) from None


def error_of(model: str, problems: Sequence[Problem]) -> ModelError:
    """Return the error of all problems: undecided if all of them are."""
    return (UndecidedError if all(p.undecided for p in problems) else ModelError)(model, problems)
