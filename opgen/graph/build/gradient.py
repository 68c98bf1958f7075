"""The gradient of a graph, in reverse mode: from the results back, each node by the gradients of its op.

The contributions of a value's readers are added up, then passed on to the inputs of the node that made the value.
Types alone decide which values are differentiated: only floats have gradients.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from opgen import grad
from opgen.diagnostics import DiagnosticError, InternalError, UserError
from opgen.graph.ir.arithmetic import PLUS, op_for
from opgen.graph.ir.bound import make_node
from opgen.graph.ir.nodes import Constant, Data, Graph, Node, Op, Value, op_of
from opgen.graph.fusion.unify import CannotComposeError, settle
from opgen.runtime.memory.buffers import numpy_dtype
from opgen.spec.call.environment import AttrStored
from opgen.spec.model.model import Tensor


class GradientError(UserError):
    """A graph that has no gradient: a node on the way cannot be differentiated."""


def gradient(graph: Graph, wrt: Sequence[str]) -> Graph:
    """Return the graph of the gradients with respect to the inputs `wrt`, in their order, each in its input's shape.

    It takes the graph's inputs and then, for each output in order, the gradient with respect to it, in its shape.
    Raises GradientError, with the node and the reason.
    """
    floats = {v.name for v in graph.inputs if v.dtype.is_float}
    for name in wrt:
        if all(v.name != name for v in graph.inputs):
            raise InternalError(f"graph '{graph.name}' has no input '{name}'")
        if name not in floats:
            raise GradientError(f"{graph.name}: input '{name}' is of {graph.value[name].dtype} and has no gradient")
    work = _Reverse(graph, wrt)
    seeds = work.seeds()
    for node in reversed(graph.nodes):
        work.node(node)
    outputs = tuple(work.total_or_zeros(name).name for name in wrt)
    return Graph(
        f"{graph.name}_gradient",
        (*graph.inputs, *seeds),
        (*graph.constants, *work.constants),
        (*graph.values, *work.values),
        (*graph.nodes, *work.nodes),
        outputs,
        tuple(f"grad_{name}" for name in wrt),
    )


class _Reverse:
    """Nodes of the gradient in order of addition; `_parts` are the contributions to the gradient of each value."""

    def __init__(self, graph: Graph, wrt: Sequence[str]) -> None:
        self.graph = graph
        self.constants: list[Constant] = []
        self.values: list[Value] = []
        self.nodes: list[Node] = []
        self._parts: dict[str, list[Value]] = {}
        self._taken = {*graph.value, *(n.name for n in graph.nodes)}
        self._moving = _depending(graph, wrt)

    def seeds(self) -> list[Value]:
        """Add a new input for the gradient of each output."""
        found = []
        for name, known in zip(self.graph.outputs, self.graph.result_names, strict=True):
            value = self.graph.value[name]
            seed = Value(self._fresh(f"grad_{known}"), value.dtype, value.shape)
            self._parts.setdefault(name, []).append(seed)
            found.append(seed)
        return found

    def node(self, node: Node) -> None:
        """Pass the gradients of a node's results on to its inputs."""
        if not self._moving.intersection(node.outputs) or not any(name in self._parts for name in node.outputs):
            return
        seeds = [self.total_or_zeros(name) for name in node.outputs]
        for tensor, name in zip(node.op.spec.tensors, node.inputs, strict=True):
            if name in self._moving and not tensor.shape_only:
                self._parts.setdefault(name, []).append(self._part(node, tensor, seeds))

    def _part(self, node: Node, tensor: Tensor, seeds: Sequence[Value]) -> Value:
        forward, attributes = self._plain(node)
        op, names = _derivative(node, forward, tensor.name)
        taken = [self.graph.value[name] for name in node.inputs]
        given = dict(zip((t.name for t in node.op.spec.tensors), taken, strict=True))
        given |= zip(names, seeds, strict=True)
        inputs = [given[t.name] for t in op.spec.tensors]
        return self._add(f"{node.name}.grad_{tensor.name}", op, inputs, attributes, dict(node.types), node.origin)

    def _plain(self, node: Node) -> tuple[Op, dict[str, AttrStored]]:
        """Return the op of a node and its attributes, with broadcasting resolved for these operands.

        The gradient of a broadcast operand is a sum over the places where it was read, and the op alone does not know
        them.
        """
        if any(d.broadcast for t in node.op.spec.tensors for d in t.dims):
            try:
                settled = settle(self.graph, node)
                return Op(settled.op, node.op.functions), dict(settled.attributes)
            except CannotComposeError:
                pass
        return node.op, dict(node.attributes)

    def total_or_zeros(self, name: str) -> Value:
        """Return the sum of the contributions to a value's gradient so far; zeros if there are none."""
        parts = self._parts.get(name)
        value = self.graph.value[name]
        if not parts:
            return self._zeros(value)
        while len(parts) > 1:
            one, other = parts[:2]
            parts[:2] = [self._add(f"grad_{name}", op_for(PLUS, (one, other)), (one, other))]
        return parts[0]

    def _zeros(self, like: Value) -> Value:
        value = Value(self._fresh(f"zeros_{like.name}"), like.dtype, like.shape)
        self.constants.append(Constant(value, Data(np.zeros(like.shape, numpy_dtype(like.dtype)))))
        return value

    def _add(
        self,
        name: str,
        op: Op,
        inputs: Sequence[Value],
        attributes: Mapping[str, AttrStored] | None = None,
        types: Mapping[str, str] | None = None,
        origin: str = "",
    ) -> Value:
        label = self._fresh(name)
        node, made = make_node(label, op, inputs, [label], attributes, types, origin)
        self.nodes.append(node)
        self.values += made
        return made[0]

    def _fresh(self, name: str) -> str:
        number, found = 1, name
        while found in self._taken:
            number += 1
            found = f"{name}.{number}"
        self._taken.add(found)
        return found


def _depending(graph: Graph, wrt: Sequence[str]) -> set[str]:
    """Return the float values that depend on the values of some inputs."""
    found = set(wrt)
    for node in graph.nodes:
        taken = [n for t, n in zip(node.op.spec.tensors, node.inputs, strict=True) if not t.shape_only]
        if found.intersection(taken):
            found.update(name for name in node.outputs if graph.value[name].dtype.is_float)
    return found


def _derivative(node: Node, op: Op, tensor: str) -> tuple[Op, tuple[str, ...]]:
    try:
        return _derived(op, tensor)
    except DiagnosticError as error:
        where = f"node '{node.name}' ({node.op.spec.name})" + (f" at {node.origin}" if node.origin else "")
        raise GradientError(
            f"{where} has no gradient with respect to '{tensor}': {error.diagnostics[0].message}"
        ) from error


@lru_cache(maxsize=256)
def _derived(op: Op, tensor: str) -> tuple[Op, tuple[str, ...]]:
    """Return the gradient of an op with respect to an input, and its names for the gradients of the op's outputs."""
    found = grad.gradient(op.module, op.spec, tensor)
    if found.gradient is None:
        raise InternalError(f"'{found.name}' does not say of what it is the gradient")
    return op_of(op.module, found), found.gradient.cotangents
