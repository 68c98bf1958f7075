"""Removal of inputs that count by their shape alone: the node gets the sizes as an attribute instead.

So no value is computed or kept alive only because an op asks for its size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from opgen.dtypes import lookup
from opgen.graph.ir.edit import edited
from opgen.graph.ir.nodes import Graph, Node, Op, op_of
from opgen.graph.passes.base import Pass, Report
from opgen.spec.call.environment import AttrStored
from opgen.spec.model.model import Algorithm, BitCast, Convert, Definition, Expr, OpSpec, SizeOf, Sizes, Tensor
from opgen.spec.model.visit import everything_in
from opgen.spec.model.walk import transform


def _apply(graph: Graph, report: Report) -> Graph:
    nodes = [_told(graph, node, report) for node in graph.nodes]
    changed = any(one is not other for one, other in zip(nodes, graph.nodes, strict=True))
    return edited(graph, nodes) if changed else graph


def _told(graph: Graph, node: Node, report: Report) -> Node:
    """Return the node with an op that asks for sizes where it took a tensor for its shape."""
    names = tuple(t.name for t in node.op.spec.tensors if t.shape_only and _can_go(node.op.spec, t))
    if not names:
        return node
    op = _asking(node.op, names, node.types)
    shapes: dict[str, AttrStored] = {
        t.name: graph.value[name].shape for t, name in zip(node.op.spec.tensors, node.inputs, strict=True)
    }
    known = dict(node.attributes) | {name: shapes[name] for name in names}
    order = [*(a.name for a in op.spec.attrs), *(i.name for i in op.spec.inputs if isinstance(i, Sizes))]
    inputs = zip(node.op.spec.tensors, node.inputs, strict=True)
    report.note(SHAPES.name, node.name, f"is told the sizes of {', '.join(names)}")
    return replace(
        node,
        op=op,
        types=tuple((name, word) for name, word in node.types if op.spec.type_variable(name) is not None),
        attributes=tuple((name, known[name]) for name in order),
        inputs=tuple(name for t, name in inputs if t.name not in names),
    )


def _can_go(spec: OpSpec, tensor: Tensor) -> bool:
    """Return whether the sizes of a tensor are all that an op needs of it."""
    stretches = any(d.broadcast for d in tensor.dims)
    return tensor.rank > 0 and not stretches and not any(_asks_size(e, tensor.name) for e in _expressions(spec))


def _asks_size(e: Expr, name: str) -> bool:
    return any(isinstance(n, SizeOf) and n.tensor == name for n in everything_in(e))


def _expressions(spec: OpSpec) -> list[Expr]:
    outputs = [d.size for o in spec.outputs for d in o.dims]
    everywhere = (*spec.definitions, *(d for a in spec.algorithms for d in a.definitions))
    return [*outputs, *(e for d in everywhere for e in (d.value, *d.dims, *(r.extent for r in d.indices)))]


@lru_cache(maxsize=256)
def _asking(op: Op, names: tuple[str, ...], types: tuple[tuple[str, str], ...]) -> Op:
    """Return the op with sizes instead of tensors; a type that only these tensors determined is substituted."""
    spec = op.spec
    inputs = tuple(_sizes(i) if isinstance(i, Tensor) and i.name in names else i for i in spec.inputs)
    told = {i.dtype for i in inputs if isinstance(i, Tensor)}
    placed = {name: word for name, word in types if name not in told}
    return op_of(op.module, _typed(replace(spec, inputs=inputs), placed))


def _sizes(tensor: Tensor) -> Sizes:
    return Sizes(tensor.name, (tensor.dims,), (tensor.layout,), tensor.doc, tensor.span)


def _typed(spec: OpSpec, types: Mapping[str, str]) -> OpSpec:
    """Return the op with types substituted for some of its type variables."""
    if not types:
        return spec
    return replace(
        spec,
        type_variables=tuple(v for v in spec.type_variables if v.name not in types),
        outputs=tuple(replace(o, dtype=types.get(o.dtype, o.dtype)) for o in spec.outputs),
        definitions=_definitions(spec.definitions, types),
        algorithms=tuple(_algorithm(a, types) for a in spec.algorithms if _takes(a, types)),
    )


def _takes(algorithm: Algorithm, types: Mapping[str, str]) -> bool:
    return all(lookup(types[v.name]) in v.allowed for v in algorithm.type_variables if v.name in types)


def _algorithm(algorithm: Algorithm, types: Mapping[str, str]) -> Algorithm:
    variables = tuple(v for v in algorithm.type_variables if v.name not in types)
    return replace(algorithm, type_variables=variables, definitions=_definitions(algorithm.definitions, types))


def _definitions(given: tuple[Definition, ...], types: Mapping[str, str]) -> tuple[Definition, ...]:
    def typed(e: Expr) -> Expr:
        return replace(e, to=types[e.to]) if isinstance(e, Convert | BitCast) and e.to in types else e

    return tuple(replace(d, dtype=types.get(d.dtype, d.dtype), value=transform(typed, d.value)) for d in given)


SHAPES = Pass(
    "shapes",
    "A node that counts a tensor by its shape alone is told its sizes, and takes it no more.",
    _apply,
    after=("results",),
    then=("dead",),
)
