"""Replacement of several nodes by one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from opgen.graph.ir.nodes import Graph, Node


def outside(graph: Graph, nodes: Collection[Node]) -> set[str]:
    """Return the values that some nodes make and that others, or the caller, take."""
    names = {n.name for n in nodes}
    made = {value for n in nodes for value in n.outputs}
    read = {v for v in made if any(r.name not in names for r in graph.readers.get(v, ()))}
    return read | made & graph.given_back


def with_nodes(graph: Graph, whole: Mapping[str, Node]) -> Graph:
    """Return the graph with one node for each of several groups; it makes the values that are used outside the group.

    `whole` maps the name of each node of a group to the new node.  No path may lead out of a group and back in.
    """
    if not whole:
        return graph
    last = {whole[n.name].name: n.name for n in graph.nodes if n.name in whole}
    kept = (n for n in graph.nodes if n.name not in whole or last[whole[n.name].name] == n.name)
    ordered = tuple(_ordered(whole.get(n.name, n) for n in kept))
    return replace(graph, nodes=ordered, values=tuple(graph.value[name] for n in ordered for name in n.outputs))


def _ordered(nodes: Iterable[Node]) -> Iterable[Node]:
    """Yield nodes in an order as close as possible to the given one, each after those whose results it takes."""
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
