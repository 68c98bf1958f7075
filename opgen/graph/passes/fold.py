"""Constant folding: nodes that depend on constants alone are computed now.

A result that is much larger than its inputs (a repeated number, say) is left to the run: it would be read from memory
instead of being computed.
"""

from __future__ import annotations

from collections import OrderedDict
from math import prod
from weakref import ref as weakref

from opgen.diagnostics.calls import ArgumentValueError
from opgen.graph.ir.bound import Bound, bound
from opgen.graph.ir.edit import edited
from opgen.graph.ir.nodes import Constant, Data, Graph, Node
from opgen.graph.ir.steps import steps
from opgen.graph.kernels.interpret import worked_out
from opgen.graph.passes.base import Pass, Report
from opgen.graph.plan.views import view_of

LARGE = 1 << 20
"""Bytes from which on a result is only folded if its inputs are about as large."""

MADE, MADE_EACH = 64 << 20, 16
"""Maximum number of bytes of all folded results: a fixed part, and a factor for the bytes of the constants.

A chain of nodes that each double their input would otherwise fill any memory.
"""

STEPS = 1 << 34
"""Maximum number of operations for a folded result: longer work is left to runs, which may never reach it."""

KEPT = 4096
"""Number of results that are remembered while they are alive."""

_found: OrderedDict[tuple[object, ...], tuple[weakref[Data], ...]] = OrderedDict()
"""Inputs of a folded node, then its results: a model whose sizes change folds the same weights each time."""


def _apply(graph: Graph, report: Report) -> Graph:
    known = {c.value.name: c.data for c in graph.constants}
    constants = list(graph.constants)
    nodes: list[Node] = []
    left = MADE + MADE_EACH * sum(d.array.nbytes for d in known.values())
    for node in graph.nodes:
        read = [t.shape_only or name in known for name, t in zip(node.inputs, node.op.spec.tensors, strict=True)]
        if not all(read):
            nodes.append(node)
        elif _is_inflated(graph, node):
            nodes.append(node)
            report.note(FOLD.name, node.name, "depends on constants alone, but its result is much larger than they")
        elif _made(graph, node) > left or steps(bound(graph, node)) > STEPS:
            nodes.append(node)
            report.note(FOLD.name, node.name, "depends on constants alone, but takes too much memory or time")
        elif (found := _results(node, bound(graph, node), [known.get(name) for name in node.inputs])) is None:
            nodes.append(node)
            report.note(FOLD.name, node.name, "has no result: a run will say why")
        else:
            known |= zip(node.outputs, found, strict=True)
            constants += (Constant(graph.value[n], data) for n, data in zip(node.outputs, found, strict=True))
            left -= _made(graph, node)
            report.note(FOLD.name, node.name, "depends on constants alone")
    return graph if len(nodes) == len(graph.nodes) else edited(graph, nodes, constants=constants)


def _is_inflated(graph: Graph, node: Node) -> bool:
    made = _made(graph, node)
    return made > LARGE and made > 2 * sum(_bytes(graph, name) for name in node.inputs)


def _made(graph: Graph, node: Node) -> int:
    return sum(_bytes(graph, name) for name in node.outputs)


def _bytes(graph: Graph, name: str) -> int:
    value = graph.value[name]
    return prod(value.shape) * value.dtype.bytes


def _results(node: Node, call: Bound, tensors: list[Data | None]) -> tuple[Data, ...] | None:
    """Return the results of a node, remembered or computed; None if its op has none for these elements."""
    position = view_of(call)
    if position is not None and (viewed := tensors[position]) is not None:
        return (Data(viewed.array.reshape(call.results[0][1])),)
    made_of = [d for d in tensors if d is not None]
    shapes = tuple(call.environment.shapes.items())
    key = (node.op, node.types, repr(node.attributes), tuple(map(id, made_of)), shapes)
    known = [held() for held in _found.get(key, ())]
    if known and all(one is other for one, other in zip(known, made_of, strict=False)):
        found = tuple(d for d in known[len(made_of) :] if d is not None)
        if len(found) == len(node.outputs):
            return found
    results = _computed(call, tensors)
    if results is not None:
        _found[key] = tuple(map(weakref, (*made_of, *results)))
        while len(_found) > KEPT:
            _found.popitem(last=False)
    return results


def _computed(call: Bound, tensors: list[Data | None]) -> tuple[Data, ...] | None:
    try:
        return tuple(map(Data, worked_out(call, [None if d is None else d.array for d in tensors])))
    except (ArgumentValueError, MemoryError):
        return None


FOLD = Pass(
    "fold",
    "What depends on constants alone becomes a constant, unless it would be much larger.",
    _apply,
    after=("shapes",),
)
