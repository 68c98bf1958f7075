"""Graphs made of graphs: other nodes, other names for what they take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from opgen.graph.ir.nodes import Constant, Graph, Node, Value


def edited(
    graph: Graph,
    nodes: Sequence[Node],
    instead: Mapping[str, str] | None = None,
    constants: Iterable[Constant] | None = None,
    made: Iterable[Value] = (),
) -> Graph:
    """The graph with these nodes, in which `instead` of some values others are taken (also by the caller).

    `constants` take the place of the graph's; `made` are results of nodes that the graph did not have.  What the
    caller calls the outputs stays.
    """
    renamed = instead or {}
    known = graph.value | {v.name: v for v in made}
    kept = tuple(_taking(node, renamed) for node in nodes)
    outputs = tuple(renamed.get(name, name) for name in graph.outputs)
    names = graph.output_names if outputs == graph.outputs else graph.result_names
    return Graph(
        graph.name,
        graph.inputs,
        graph.constants if constants is None else tuple(constants),
        tuple(known[name] for node in kept for name in node.outputs),
        kept,
        outputs,
        names,
    )


def _taking(node: Node, instead: Mapping[str, str]) -> Node:
    inputs = tuple(instead.get(name, name) for name in node.inputs)
    return node if inputs == node.inputs else replace(node, inputs=inputs)


def needed(graph: Graph) -> tuple[list[Node], set[str]]:
    """The nodes on which outputs depend, in order, and the names of the values that they and the caller take."""
    taken = set(graph.outputs)
    nodes: list[Node] = []
    for node in reversed(graph.nodes):
        if not taken.isdisjoint(node.outputs):
            nodes.append(node)
            taken.update(node.inputs)
    return nodes[::-1], taken
