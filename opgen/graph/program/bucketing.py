"""For which sizes the kernels of a model's programs are made, by what has varied from program to program."""

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
"""How many combinations of a model's sizes get kernels made for them alone."""

COMPARED = 2
"""With how many programs before it the first one whose kernels are open is compared; then with all after these."""

Way: TypeAlias = Literal["special", "open", "general"]
"""For which sizes the kernels of a program are: its own, those that are open for the model, or all."""

_Key: TypeAlias = "tuple[str, str, Types]"


class Variety:
    """The programs of one model so far.  Not for several threads at once."""

    def __init__(self) -> None:
        self._combinations = 0
        self._waiting: deque[Callable[[], Graph]] = deque(maxlen=COMPARED)
        self._seen: dict[_Key, History] = {}

    @property
    def way(self) -> Way:
        """That of the next program."""
        match policy():
            case "always":
                return "special"
            case "never":
                return "general"
            case "auto":
                return "special" if self._combinations < SPECIAL else "open"

    def made(self, graph: Callable[[], Graph]) -> None:
        """Note a program that was made."""
        self._combinations += policy() == "auto"
        self._waiting.append(graph)

    def openings(self, graph: Graph, way: Way) -> Openings | None:
        """What the kernels of a program leave open; None: nothing."""
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
    """What makes a node one of another graph again."""
    return node.name, node.op.identity, node.types
