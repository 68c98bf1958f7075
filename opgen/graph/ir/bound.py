"""An op with the types, attributes and shapes of one call: the meaning of a node in numbers.

Every stage of graphs asks here for a node's results, and for the kernel that computes them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from opgen.diagnostics import InternalError
from opgen.dtypes import lookup
from opgen.graph.ir.draft import GraphView
from opgen.graph.ir.nodes import Node, Op, Value
from opgen.graph.ir.scratch import kept_while_making
from opgen.graph.ir.values import Kind as Kind
from opgen.lower import Variant, structural_attrs
from opgen.spec.call.arguments import AttrArgument, CallError, CallTypeError, placed_attrs
from opgen.spec.call.environment import AttrStored, Environment
from opgen.spec.call.shapes import solve
from opgen.spec.model.model import OpSpec, Sizes

Types: TypeAlias = "tuple[tuple[str, str], ...]"
Attributes: TypeAlias = "tuple[tuple[str, AttrStored], ...]"


@dataclass(frozen=True, eq=False)
class Bound:
    """An op in one call.  `results` are the types and shapes of its outputs.  Equal calls are mostly one object.

    `types` and `attributes` are a node's.
    """

    op: Op
    types: Types
    attributes: Attributes
    variant: Variant
    environment: Environment
    results: tuple[Kind, ...]


def bind(op: Op, types: Types, attributes: Attributes, inputs: Sequence[Kind]) -> Bound:
    """Return the call of an op with tensors of these types and shapes.

    Raises CallError, in the op's own words, for a call that the op does not take.
    """
    return _bind(op, types, attributes, tuple(inputs), repr(attributes) if attributes else "")


def bound(graph: GraphView, node: Node) -> Bound:
    """Return the call of a node."""
    values = graph.value
    return bind(
        node.op, node.types, node.attributes, [(values[name].dtype, values[name].shape) for name in node.inputs]
    )


@kept_while_making
def _bind(op: Op, types: Types, attributes: Attributes, inputs: tuple[Kind, ...], _: str) -> Bound:
    """Return the call; `_` distinguishes attributes that Python calls equal: 0.0 and -0.0, 1 and 1.0."""
    spec, bindings = op.spec, dict(types)
    _check_types(spec, bindings, inputs)
    shapes = {t.name: shape for t, (_, shape) in zip(spec.tensors, inputs, strict=True)}
    sizes, attrs = as_given(spec, dict(attributes))
    environment = solve(spec, op.module, shapes, sizes, attrs)
    words = {a.name: str(environment.attrs[a.name]) for a in structural_attrs(spec)}
    variant = Variant(bindings, words)
    results = tuple((variant.dtype(o.dtype), environment.output_shapes[o.name]) for o in spec.outputs)
    return Bound(op, types, attributes, variant, environment, results)


def _check_types(spec: OpSpec, types: Mapping[str, str], inputs: Sequence[Kind]) -> None:
    if len(inputs) != len(spec.tensors):
        raise CallTypeError(spec.name, spec.name, f"{len(spec.tensors)} tensors", f"{len(inputs)}")
    for tensor, (dtype, _) in zip(spec.tensors, inputs, strict=True):
        wanted = lookup(types.get(tensor.dtype, tensor.dtype))
        if wanted != dtype:
            raise CallTypeError(spec.name, tensor.name, f"a tensor of {wanted}", str(dtype))


def types_of(spec: OpSpec, inputs: Sequence[Kind], given: Mapping[str, str] | None = None) -> Types:
    """Return the type of each type variable, determined by `given`, else by the first input that has it.

    Raises CallTypeError for a type that the op does not take.
    """
    found = dict(given or {})
    for tensor, (dtype, _) in zip(spec.tensors, inputs, strict=False):
        variable = spec.type_variable(tensor.dtype)
        if variable is None or variable.name in found:
            continue
        if dtype not in variable.allowed:
            allowed = ", ".join(t.name for t in variable.allowed)
            raise CallTypeError(spec.name, tensor.name, f"a tensor of {allowed}", str(dtype))
        found[variable.name] = dtype.name
    missing = [v.name for v in spec.type_variables if v.name not in found]
    if missing:
        raise CallTypeError(spec.name, missing[0], "a type", "nothing")
    return tuple((v.name, found[v.name]) for v in spec.type_variables)


def as_given(
    spec: OpSpec, attributes: Mapping[str, AttrStored]
) -> tuple[dict[str, tuple[int, ...]], dict[str, AttrArgument]]:
    """Return the values of sizes inputs, and the attributes as a caller writes them: a list in place of its word."""
    sizes: dict[str, tuple[int, ...]] = {}
    for entry in spec.inputs:
        if isinstance(entry, Sizes):
            given = attributes.get(entry.name, ())
            sizes[entry.name] = tuple(int(v) for v in given) if isinstance(given, tuple) else ()
    attrs: dict[str, AttrArgument] = {name: value for name, value in attributes.items() if name not in sizes}
    for attr in spec.attrs:
        if attr.payload is not None and attrs.get(attr.name) == attr.payload[0]:
            attrs[attr.name] = attrs.get(attr.payload[1])
        if attr.carried_by is not None:
            attrs.pop(attr.name, None)
    return sizes, attrs


def settled(spec: OpSpec, attributes: Mapping[str, AttrStored | AttrArgument]) -> Attributes:
    """Return the attributes as a node holds them: all present, checked and in the op's order, with lists flat.

    Raises CallError for an unknown, missing or illegal one.
    """
    vectors = [i.name for i in spec.inputs if isinstance(i, Sizes)]
    attrs = {name: value for name, value in attributes.items() if name not in vectors}
    placed, _ = placed_attrs(spec, attrs)
    found = [(a.name, _plain(placed[a.name])) for a in spec.attrs]
    for name in vectors:
        given = attributes.get(name)
        if not isinstance(given, Sequence) or isinstance(given, str):
            raise CallTypeError(spec.name, name, "a list of integers", "nothing" if given is None else repr(given))
        found.append((name, tuple(int(v) for v in given if isinstance(v, int))))
    return tuple(found)


def _plain(value: AttrStored) -> AttrStored:
    """Return a value with one NaN object for all, so that an attribute equals itself."""
    if isinstance(value, float) and math.isnan(value):
        return math.nan
    if isinstance(value, tuple) and any(isinstance(v, float) and math.isnan(v) for v in value):
        return tuple(math.nan if math.isnan(v) else float(v) for v in value)
    return value


def make_node(
    name: str,
    op: Op,
    inputs: Sequence[Value],
    outputs: Sequence[str],
    attributes: Mapping[str, AttrStored | AttrArgument] | None = None,
    types: Mapping[str, str] | None = None,
    origin: str = "",
) -> tuple[Node, tuple[Value, ...]]:
    """Return a node and its results; omitted attributes have their defaults, and omitted `types` those of the inputs.

    Raises CallError for a call that the op does not take.
    """
    kinds = [(v.dtype, v.shape) for v in inputs]
    known = types_of(op.spec, kinds, types)
    stated = settled(op.spec, attributes or {})
    made = bind(op, known, stated, kinds)
    if len(outputs) != len(made.results):
        raise InternalError(f"node '{name}' names {len(outputs)} results, '{op.spec.name}' has {len(made.results)}")
    node = Node(name, op, known, stated, tuple(v.name for v in inputs), tuple(outputs), origin)
    return node, tuple(Value(n, dtype, shape) for n, (dtype, shape) in zip(outputs, made.results, strict=True))


__all__ = ["Bound", "CallError", "Kind", "as_given", "bind", "bound", "make_node", "settled", "types_of"]
