"""Why a model cannot be made a graph."""

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
    """Why a call of a model cannot be made: its node and operator, and the reason; `origin` is where it stands.

    `undecided`: it can be made once what it takes is computed.  `step` is that of the whole model in which it stands.
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
    """A model that cannot be made a graph for the inputs that are given; `problems` are all that was found."""

    def __init__(self, model: str, problems: Sequence[Problem]) -> None:
        self.model = model
        self.problems = tuple(problems)
        super().__init__("\n".join(first_of([str(p) for p in problems])))

    def __reduce__(self) -> tuple[type[ModelError], tuple[str, tuple[Problem, ...]]]:
        return type(self), (self.model, self.problems)


class UndecidedError(ModelError):
    """A model that cannot be made one graph: what some of its calls are is known only while it runs."""


@contextmanager
def nested_at_most(graph: Graph) -> Iterator[None]:
    """Blame the node of most tensors if expressions turn out to be nested more deeply than Python calls functions."""
    try:
        yield
    except RecursionError:
        node = max(graph.nodes, key=lambda n: len(n.inputs) + len(n.outputs))
        reason = TOO_DEEP.format(count=len(node.inputs) + len(node.outputs))
        raise ModelError(graph.name, [Problem(node.name, node.op.spec.name, reason, node.origin)]) from None


def error_of(model: str, problems: Sequence[Problem]) -> ModelError:
    """The error of all that was found: undecided if it is nothing else."""
    return (UndecidedError if all(p.undecided for p in problems) else ModelError)(model, problems)
