"""A graph while a pass changes it node by node: the cost of a change depends on its size, not on the graph's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from opgen.graph.ir.nodes import Constant, Graph, Node, Value


class GraphView(Protocol):
    """View of a graph, or of the draft of one, for code that looks at single nodes."""

    @property
    def value(self) -> Mapping[str, Value]:
        """Return every value by its name."""

    @property
    def constant(self) -> Mapping[str, Constant]:
        """Return the constants by name."""

    @property
    def node(self) -> Mapping[str, Node]:
        """Return the nodes by name."""


class Draft:
    """A graph whose nodes may be replaced.

    Results of removed nodes stay among the values until `graph`.
    """

    def __init__(self, graph: Graph) -> None:
        self.constant: Mapping[str, Constant] = graph.constant
        self.value = dict(graph.value)
        self.node = dict(graph.node)
        self.producer = dict(graph.producer)
        self._graph = graph
        self._changed = False
        self._reads = {name: _counts(nodes) for name, nodes in graph.readers.items()}
        self._slots = [[n.name] for n in graph.nodes]
        self._slot = {n.name: slot for slot, n in enumerate(graph.nodes)}

    def only_reader(self, value: str) -> Node | None:
        """Return the node that takes a value, once, if no other node and not the caller takes it; else None."""
        reads = self._reads.get(value)
        if reads is None or len(reads) != 1 or value in self._graph.given_back:
            return None
        ((name, count),) = reads.items()
        return self.node[name] if count == 1 else None

    def replace(self, old: Node, new: Sequence[Node], gone: Iterable[Node] = (), made: Iterable[Value] = ()) -> None:
        """Replace one node by others, and remove the nodes in `gone`; `made` are results that the graph lacked."""
        self._changed = True
        self.value |= {v.name: v for v in made}
        for node in gone:
            self._leave_out(node)
        slot = self._slot[old.name]
        place = self._slots[slot].index(old.name)
        self._leave_out(old)
        self._slots[slot][place:place] = [n.name for n in new]
        for node in new:
            self.node[node.name] = node
            self._slot[node.name] = slot
            self.producer.update(dict.fromkeys(node.outputs, node))
            for value in node.inputs:
                reads = self._reads.setdefault(value, {})
                reads[node.name] = reads.get(node.name, 0) + 1

    def _leave_out(self, node: Node) -> None:
        self._slots[self._slot.pop(node.name)].remove(node.name)
        del self.node[node.name]
        for value in node.outputs:
            del self.producer[value]
        for value in set(node.inputs):
            del self._reads[value][node.name]

    def graph(self) -> Graph:
        """Return the graph as it is now; the original object if nothing was replaced."""
        if not self._changed:
            return self._graph
        nodes = tuple(self.node[name] for slot in self._slots for name in slot)
        return replace(self._graph, nodes=nodes, values=tuple(self.value[v] for n in nodes for v in n.outputs))


def _counts(nodes: Sequence[Node]) -> dict[str, int]:
    """Return the number of times that each node is among some, by its name."""
    found: dict[str, int] = {}
    for node in nodes:
        found[node.name] = found.get(node.name, 0) + 1
    return found
