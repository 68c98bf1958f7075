"""Putting one node in the place of several."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from opgen.graph.nodes import Graph, Node


def outside(graph: Graph, nodes: Collection[Node]) -> set[str]:
    """The values that some nodes make and that others, or the caller, take."""
    made = {name for n in nodes for name in n.outputs}
    names = {n.name for n in nodes}
    taken = {name for n in graph.nodes if n.name not in names for name in n.inputs} | set(graph.outputs)
    return made & taken


def with_node(graph: Graph, nodes: Collection[Node], whole: Node) -> Graph:
    """The graph with one node for several, which makes those of their results that are needed beyond them.

    No path may lead out of them and back in.
    """
    gone = {n.name for n in nodes}
    last = max(i for i, n in enumerate(graph.nodes) if n.name in gone)
    kept = [n for i, n in enumerate(graph.nodes) if n.name not in gone or i == last]
    ordered = tuple(_ordered(whole if n.name in gone else n for n in kept))
    return replace(graph, nodes=ordered, values=tuple(graph.value[name] for n in ordered for name in n.outputs))


def _ordered(nodes: Iterable[Node]) -> Iterable[Node]:
    """Nodes in an order in which each comes after those that it takes from, as near as can be to the given one."""
    given = list(nodes)
    producer = {name: n for n in given for name in n.outputs}
    done: set[str] = set()
    for node in given:
        waiting = [node]
        while waiting:
            top = waiting[-1]
            missing = [producer[v] for v in top.inputs if v in producer and producer[v].name not in done]
            waiting += missing
            if not missing:
                waiting.pop()
                if top.name not in done:
                    done.add(top.name)
                    yield top
