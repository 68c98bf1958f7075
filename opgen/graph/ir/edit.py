"""Graphs made from graphs: other nodes, other names of their inputs."""

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
    """Return the graph with these nodes; values in `instead` are replaced by others (for the caller, too).

    `constants` replace the graph's; `made` are results of nodes that the graph did not have.  The caller's names of the
    outputs stay.
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
    """Return the nodes on which outputs depend, in order, and the names of the values that they and the caller take."""
    taken = set(graph.outputs)
    nodes: list[Node] = []
    for node in reversed(graph.nodes):
        if not taken.isdisjoint(node.outputs):
            nodes.append(node)
            taken.update(node.inputs)
    return nodes[::-1], taken
