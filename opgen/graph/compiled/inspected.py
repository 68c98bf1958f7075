"""Nodes of a graph as kernels to be looked at."""

from __future__ import annotations

from opgen.compiler.make import artifact
from opgen.compiler.request import Compilation
from opgen.diagnostics import UserError, did_you_mean
from opgen.graph.ir.bound import bound
from opgen.graph.ir.nodes import Graph, Node
from opgen.graph.kernels.kernels import wanted
from opgen.graph.program.program import Openings, wants
from opgen.runtime.inspection import Inspection

LISTED = 20
"""Number of nodes that a message names."""


def node_of(graph: Graph, which: int | str, asks: str) -> Node:
    """Return the node of that number or name.  Raises UserError, which `asks` begins, if there is none.

    Nodes that became one have the name of the last.
    """
    nodes = graph.nodes
    if isinstance(which, int) and 0 <= which < len(nodes):
        return nodes[which]
    found = next((n for n in nodes if n.name == which), None)
    if found is None:
        names = [n.name for n in nodes]
        listed = ", ".join(f"{number} {name[:40]}" for number, name in enumerate(names[:LISTED]))
        more = ", ..." if len(names) > LISTED else ""
        hint = did_you_mean(str(which), names) or f"they are 0 to {len(names) - 1}: {listed}{more}"
        raise UserError(f"{asks} {which}: there is no such node; {hint}")
    return found


def request_of(graph: Graph, node: Node, openings: Openings | None = None) -> Compilation:
    """Return the request for the kernel that the program of a graph runs for a node, with these `openings`.

    A view runs none: its request is for the kernel that would copy it.
    """
    number = graph.nodes.index(node)
    return (wants(graph, openings).get(number) or wanted(bound(graph, node))).request


def inspection_of(graph: Graph, which: int | str, openings: Openings | None = None) -> Inspection:
    """Return the kernel of a node.  Raises UserError for an unknown node."""
    node = node_of(graph, which, "node")
    taken, made = (", ".join(str(graph.value[n]) for n in names) for names in (node.inputs, node.outputs))
    title = f"node {node.name}: {node.op.spec.name} of {taken}: {made}"
    return Inspection(title, artifact(request_of(graph, node, openings)))
