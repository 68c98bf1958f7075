"""Removal of dead nodes, on which no output depends, and of unused constants."""

from __future__ import annotations

from opgen.graph.ir.edit import edited, needed
from opgen.graph.ir.nodes import Graph
from opgen.graph.passes.base import Pass, Report


def _apply(graph: Graph, report: Report) -> Graph:
    nodes, taken = needed(graph)
    constants = [c for c in graph.constants if c.value.name in taken]
    if len(nodes) == len(graph.nodes) and len(constants) == len(graph.constants):
        return graph
    kept = {n.name for n in nodes}
    for node in graph.nodes:
        if node.name not in kept:
            report.note(DEAD.name, node.name, "no output depends on it")
    return edited(graph, nodes, constants=constants)


DEAD = Pass("dead", "Nodes and constants on which no output depends go.", _apply)
