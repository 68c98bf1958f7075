"""Views of views: a node that keeps the order of elements and changes the shape takes the first value of the chain.

Where the last shape equals the first one, the node goes.  `opgen.graph.plan.views` recognises views by the op's access
summary; a view runs no kernel.
"""

from __future__ import annotations

from math import prod

from opgen.graph.fusion.reshaped import view_between
from opgen.graph.ir.bound import bound, make_node
from opgen.graph.ir.edit import edited
from opgen.graph.ir.nodes import Graph, Node
from opgen.graph.passes.base import Pass, Report
from opgen.graph.plan.views import view_of


def _apply(graph: Graph, report: Report) -> Graph:
    instead: dict[str, str] = {}
    sources: dict[str, str] = {}
    nodes: list[Node] = []
    changed = False
    for node in graph.nodes:
        position = view_of(bound(graph, node))
        if position is None:
            nodes.append(node)
            continue
        taken = instead.get(node.inputs[position], node.inputs[position])
        source = sources.get(taken, taken)
        (result,) = node.outputs
        if graph.value[source].shape == graph.value[result].shape:
            instead[result] = source
            report.note(VIEWS.name, node.name, f"is '{source}' as it is")
            changed = True
            continue
        sources[result] = source
        merged = None if source == taken else _merged(graph, node, source)
        if merged is None:
            report.note(VIEWS.name, node.name, f"is a view of '{taken}'")
        else:
            report.note(VIEWS.name, node.name, f"is a view of '{source}', past '{taken}'")
            changed = True
        nodes.append(merged or node)
    return edited(graph, nodes, instead) if changed else graph


def _merged(graph: Graph, node: Node, source: str) -> Node | None:
    """Return a single view in place of a view of a view of a value; None if no op of plain subscripts expresses it."""
    first, last = graph.value[source], graph.value[node.outputs[0]]
    if prod(first.shape) == 0:
        return None
    found = view_between(first.shape, last.shape)
    if found is None:
        return None
    op, pieces = found
    made, _ = make_node(node.name, op, [first], node.outputs, {"pieces": pieces}, origin=node.origin)
    return made


VIEWS = Pass(
    "views", "A view of a view takes the first value; one with that value's shape goes.", _apply, after=("fold",)
)
