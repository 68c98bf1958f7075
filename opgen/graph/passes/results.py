"""Removal of unused results, where others of the same node are used: the op becomes one with fewer outputs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache

from opgen.graph.fusion.unused import live, without_idle
from opgen.graph.ir.edit import edited
from opgen.graph.ir.nodes import Graph, Node, Op, op_of
from opgen.graph.passes.base import Pass, Report
from opgen.spec.check.signature import default_signature
from opgen.spec.model.model import Definition, Tensor
from opgen.spec.model.walk import reads


def _apply(graph: Graph, report: Report) -> Graph:
    taken = set(graph.taken())
    nodes = [_trimmed(node, taken, report) for node in graph.nodes]
    changed = any(one is not other for one, other in zip(nodes, graph.nodes, strict=True))
    return edited(graph, nodes) if changed else graph


def _trimmed(node: Node, taken: Collection[str], report: Report) -> Node:
    """Return the node without its unused results; unchanged if all are used, or none."""
    spec = node.op.spec
    outputs = zip(spec.outputs, node.outputs, strict=True)
    lost = frozenset(o.name for o, name in outputs if name not in taken)
    if not lost or len(lost) == len(spec.outputs):
        return node
    op = _without(node.op, lost)
    report.note(RESULTS.name, node.name, f"nobody takes {', '.join(sorted(lost))}")
    known = {a.name for a in op.spec.attrs} | {i.name for i in op.spec.inputs}
    return replace(
        node,
        op=op,
        attributes=tuple((name, value) for name, value in node.attributes if name in known),
        outputs=tuple(name for name in node.outputs if name in taken),
    )


@lru_cache(maxsize=256)
def _without(op: Op, lost: frozenset[str]) -> Op:
    """Return the op without some outputs and the definitions that only they need.

    An input that only they read counts by its shape alone.
    """
    spec = op.spec
    definitions = _left(spec.definitions, lost)
    algorithms = tuple(replace(a, definitions=_left(a.definitions, lost)) for a in spec.algorithms)
    everything = (*definitions, *(d for a in algorithms for d in a.definitions))
    read = {r.tensor for d in everything for r in reads(d.value)}
    spec = replace(
        spec,
        inputs=tuple(
            replace(i, shape_only=True) if isinstance(i, Tensor) and i.name not in read else i for i in spec.inputs
        ),
        outputs=tuple(o for o in spec.outputs if o.name not in lost),
        definitions=definitions,
        algorithms=algorithms,
    )
    spec = without_idle(spec)
    return op_of(op.module, replace(spec, signature=default_signature(spec.inputs, spec.attrs)))


def _left(definitions: tuple[Definition, ...], lost: Collection[str]) -> tuple[Definition, ...]:
    return live(tuple(d for d in definitions if d.tensor not in lost))


RESULTS = Pass("results", "A result that nobody takes is not computed.", _apply, after=("dead",))
