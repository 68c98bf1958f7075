"""Results of nodes that may be written over operands, as far as lifetimes decide.

An operand may be written over if all of this holds:

- the node's own graph makes it: it is not an input or a constant;
- no later step reads it or a view of it, and it is not an output;
- the node takes it once, and result and operand have the same type and number of elements.

The node's kernel decides whether each element is read before it is overwritten (`opgen.loop.analysis.overwriting`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from opgen.graph.ir.nodes import Graph, Node
from opgen.graph.plan.places import bytes_of

Pairs: TypeAlias = "tuple[tuple[int, int], ...]"
"""Pairs of positions: of an operand among a node's inputs, of a result among its outputs."""


def may_share(graph: Graph, views: Mapping[str, str]) -> Mapping[int, Pairs]:
    """Return for each node that runs a kernel the pairs that may share a place.

    The operand that is taken first comes first.  `views` maps each result that is a view to the value that it views.
    """
    source: dict[str, str] = {name: name for name in graph.value}
    last: dict[str, int] = {}
    made: set[str] = set()
    for number, node in enumerate(graph.nodes):
        for name in node.outputs:
            source[name] = source[views[name]] if name in views else name
            made |= set() if name in views else {name}
        if not all(name in views for name in node.outputs):
            last |= {source[name]: number for name in node.inputs}
    kept = {source[name] for name in graph.outputs}
    found: dict[int, Pairs] = {}
    for number, node in enumerate(graph.nodes):
        if not all(name in views for name in node.outputs):
            taken = [source[name] for name in node.inputs]
            ends = {s for s in taken if s in made - kept and last[s] == number and taken.count(s) == 1}
            found[number] = _pairs(graph, node, [k for k, s in enumerate(taken) if s in ends])
    return found


def _pairs(graph: Graph, node: Node, ends: list[int]) -> Pairs:
    operands = [(k, graph.value[node.inputs[k]]) for k in ends]
    results = [(r, graph.value[name]) for r, name in enumerate(node.outputs)]
    return tuple(
        (k, r) for r, y in results for k, x in operands if x.dtype == y.dtype and bytes_of(x) == bytes_of(y) > 0
    )
