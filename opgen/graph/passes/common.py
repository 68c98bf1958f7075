"""Merging of duplicates: constants with equal elements, and nodes that compute the same from the same inputs."""

from __future__ import annotations

from opgen.graph.ir.edit import edited
from opgen.graph.ir.nodes import Constant, Data, Graph, Node
from opgen.graph.passes.base import Pass, Report

_SAMPLED = 64
"""Number of elements of a constant that are compared before all are."""


def _apply(graph: Graph, report: Report) -> Graph:
    instead: dict[str, str] = {}
    constants: list[Constant] = []
    alike: dict[object, list[Constant]] = {}
    for constant in graph.constants:
        others = alike.setdefault(_sample(constant.data), [])
        first = next((c for c in others if c.data == constant.data), None)
        if first is None:
            others.append(constant)
            constants.append(constant)
        else:
            instead[constant.value.name] = first.value.name
            report.note(COMMON.name, constant.value.name, f"has the elements of '{first.value.name}'")
    nodes: dict[object, Node] = {}
    for node in graph.nodes:
        inputs = tuple(instead.get(name, name) for name in node.inputs)
        # Python says that 0.0 equals -0.0, but they are different attributes.
        same = nodes.setdefault((node.op, node.types, repr(node.attributes), inputs), node)
        if same is not node:
            instead.update(zip(node.outputs, same.outputs, strict=True))
            report.note(COMMON.name, node.name, f"computes what '{same.name}' does")
    if not instead:
        return graph
    return edited(graph, list(nodes.values()), instead, constants)


def _sample(data: Data) -> object:
    """Return a value that equal constants share: type, shape and some elements.

    Few pairs are then compared in full.
    """
    flat = data.array.reshape(-1)
    return data.array.dtype.name, data.array.shape, flat[:: max(1, flat.size // _SAMPLED)].tobytes()


COMMON = Pass(
    "common",
    "Equal constants become one, and so do nodes that compute the same.",
    _apply,
    after=("views",),
    then=("dead",),
)
