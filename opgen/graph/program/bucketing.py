"""Bucketing policy: the sizes for which a model's kernels are made, from the variation between its programs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

from opgen.runtime.call.specialize import policy

if TYPE_CHECKING:
    from opgen.compiler.symbolic import History, Opening
    from opgen.graph.ir.bound import Types
    from opgen.graph.ir.nodes import Graph, Node
    from opgen.graph.program.program import Openings

SPECIAL = 4
"""Number of combinations of a model's sizes that get kernels of their own."""

COMPARED = 2
"""Number of earlier programs with which the first open one is compared; later ones are compared with all since."""

Way: TypeAlias = Literal["special", "open", "general"]
"""Sizes that the kernels of a program serve: its own, those open for the model, or all."""

_Key: TypeAlias = "tuple[str, str, Types]"


class Variety:
    """Bucketing state: the programs of one model so far.  Not thread-safe."""

    def __init__(self) -> None:
        self._combinations = 0
        self._waiting: deque[Callable[[], Graph]] = deque(maxlen=COMPARED)
        self._seen: dict[_Key, History] = {}

    @property
    def way(self) -> Way:
        """Return the way of the next program."""
        match policy():
            case "always":
                return "special"
            case "never":
                return "general"
            case "auto":
                return "special" if self._combinations < SPECIAL else "open"

    def made(self, graph: Callable[[], Graph]) -> None:
        """Record a program that was made."""
        self._combinations += policy() == "auto"
        self._waiting.append(graph)

    def openings(self, graph: Graph, way: Way) -> Openings | None:
        """Return the opening of each node's kernel; None: nothing is open."""
        if way != "open":
            return None if way == "special" else [None] * len(graph.nodes)
        for each in [*(made() for made in self._waiting), graph]:
            for node in each.nodes:
                self._note(each, node)
        self._waiting.clear()
        return [self._opening(node) for node in graph.nodes]

    def _note(self, graph: Graph, node: Node) -> None:
        from opgen.compiler.symbolic import History
        from opgen.graph.ir.bound import bound
        from opgen.graph.kernels.kernels import integers_of
        from opgen.graph.plan.views import view_of

        call = bound(graph, node)
        if view_of(call) is None:
            self._seen.setdefault(_key(node), History()).add(integers_of(call))

    def _opening(self, node: Node) -> Opening:
        from opgen.compiler.symbolic import CLOSED

        seen = self._seen.get(_key(node))
        return CLOSED if seen is None else seen.opening()


def _key(node: Node) -> _Key:
    """Return the identity of a node across graphs."""
    return node.name, node.op.identity, node.types
