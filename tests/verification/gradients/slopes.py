"""One call: its derived gradient in a random direction, and the slope of the op's results there, in float64."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from opgen.dtypes import DTYPES, lookup
from opgen.grad import load
from opgen.graph.build.gradient import gradient
from opgen.graph.ir.bound import make_node
from opgen.graph.ir.nodes import Graph, Value, op_of
from opgen.graph.kernels.interpret import interpret
from opgen.runtime.memory.buffers import numpy_dtype
from opgen.spec.generic import Argument, Instance, instance, known_sizes
from opgen.spec.model.model import GenericOp, Module, OpSpec, Sizes, Tensor
from opgen.spec.syntax import nodes as s

SPECS = Path(__file__).parents[3] / "specs" / "onnx" / "onnx_ops.op"
STEP = 1e-6
TOLERANCE = 1e-6
"""Of slopes, relative to 1 and their magnitude: rounding of the results over the step is some 1e-9."""

Array = npt.NDArray[Any]
_FLOATS = ("float64", "float32", "float16", "bfloat16")
_INTEGERS = ("int64", "int32", "uint8", "int8")


@dataclass(frozen=True)
class Port:
    """An input of an op: its types, and whether it is a static one, a single number, several tensors."""

    name: str
    types: tuple[str, ...]
    static: bool = False
    scalar: bool = False
    several: bool = False


@cache
def module() -> Module:
    return load(SPECS)


def ops() -> dict[str, GenericOp | OpSpec]:
    """The operators, by name."""
    found: list[GenericOp | OpSpec] = [*module().generics, *module().ops]
    return {op.name: op for op in found}


def ports(op: GenericOp | OpSpec) -> list[Port]:
    """The inputs of an op, in order."""
    if isinstance(op, OpSpec):
        return [
            Port(i.name, _types(op, i.dtype) if isinstance(i, Tensor) else ("int64",), static=isinstance(i, Sizes))
            for i in op.inputs
        ]
    found = []
    for i in op.inputs:
        if isinstance(i, s.SizesDecl):
            found.append(Port(i.name.name, ("int64",), static=True))
        elif isinstance(i, s.StaticDecl):
            found.append(Port(i.name.name, _types(op, i.dtype.name), True, i.scalar))
        else:
            found.append(Port(i.name.name, _types(op, i.dtype.name), several=isinstance(i, s.SeveralDecl)))
    return found


def _types(op: GenericOp | OpSpec, name: str) -> tuple[str, ...]:
    """The types that a type, a type variable or an attribute that names one may be."""
    if isinstance(op, OpSpec):
        variable = op.type_variable(name)
        return (name,) if variable is None else tuple(t.name for t in variable.allowed)
    for item in op.decl.items:
        named: tuple[s.Ident, ...] = ()
        if isinstance(item, s.TypeDecl) and item.name.name == name:
            named = item.allowed
        elif isinstance(item, s.AttrDecl) and item.name.name == name:
            named = tuple(w.name for w in item.type.words)
        if named:
            return tuple(t.name for t in (lookup(i.name) for i in named) if t is not None)
    dtype = lookup(name)
    return () if dtype is None else (dtype.name,)


def differentiable() -> Iterator[str]:
    """The operators that have a float among their inputs, of which the values count, and one among their results."""
    for name, op in ops().items():
        if isinstance(op, OpSpec):
            outputs = [_types(op, o.dtype) for o in op.outputs]
            shapes = {i.name for i in op.tensors if i.shape_only}
        else:
            outputs = [_types(op, o.dtype.name) for o in op.outputs]
            shapes = {i.name.name for i in op.inputs if isinstance(i, s.TensorDecl) and i.shape_only}
        inputs = [p.types for p in ports(op) if not p.static and p.name not in shapes]
        if _any_float(inputs) and _any_float(outputs):
            yield name


def _any_float(types: Sequence[tuple[str, ...]]) -> bool:
    return any(t in _FLOATS for each in types for t in each)


# A call -----------------------------------------------------------------------------------------------


def arguments(port: Port, written: str, rng: np.random.Generator) -> list[Array]:
    """The tensors that a case gives for an input."""
    return [_array(port, each, rng) for each in (written.split(";") if port.several else [written])]


def _array(port: Port, written: str, rng: np.random.Generator) -> Array:
    literal = re.fullmatch(r"(\[.*\])(0?)", written)
    if literal is None:
        shape, _, between = written.partition("@")
        low, _, high = (between or "0.1:0.9").partition(":")
        return rng.uniform(float(low), float(high), tuple(int(n) for n in shape.split(",") if n))
    value = np.array(json.loads(literal[1]))
    if literal[2] or port.scalar:
        value = value.reshape(())
    wanted = ("bool",) if value.dtype == bool else _FLOATS if value.dtype.kind == "f" else (*_INTEGERS, *_FLOATS)
    fitting = next((t for t in wanted if t in port.types), port.types[0])
    return value.astype(fitting if not port.static or fitting != "float64" else "float32")


def _attribute(written: str) -> object:
    try:
        return json.loads(written)
    except ValueError:
        return written


@dataclass(frozen=True)
class Call:
    """A call of an op: the plain op, and its tensors by name."""

    made: Instance
    tensors: Mapping[str, Array]

    @property
    def floats(self) -> list[str]:
        """The tensors that the gradient is with respect to."""
        return [t.name for t in self.made.op.tensors if self.tensors[t.name].dtype == np.float64 and not t.shape_only]

    def graph(self) -> Graph:
        """The call alone."""
        made = self.made
        op = op_of(Module("call", (made.op,), made.functions), made.op)
        inputs = [Value(n, DTYPES[a.dtype.name], a.shape) for n, a in self.tensors.items()]
        names = [f"of_{o.name}" for o in made.op.outputs]
        node, values = make_node("node", op, inputs, names, made.attributes, made.types)
        return Graph("call", tuple(inputs), (), tuple(values), (node,), node.outputs)


def call_of(name: str, case: str, rng: np.random.Generator) -> Call:
    """What a case says."""
    op = ops()[name]
    known = {p.name: p for p in ports(op)}
    given = dict(part.split("=", 1) for part in case.split())
    wanted = given.pop("results", None)
    tensors: list[Array | None] = []
    for port in known.values():
        written = given.pop(port.name, None)
        tensors += [None] if written is None else arguments(port, written, rng)
    while tensors and tensors[-1] is None:
        tensors.pop()
    described = [
        None if t is None else _argument(op, at, t, list(known.values())[min(at, len(known) - 1)])
        for at, t in enumerate(tensors)
    ]
    attributes = {key: _attribute(value) for key, value in given.items()}
    made = instance(module(), name, described, attributes, None if wanted is None else int(wanted))
    found = {t.name: tensors[at] for t, at in zip(made.op.tensors, made.inputs, strict=True)}
    return Call(made, {n: a for n, a in found.items() if a is not None})


def _argument(op: GenericOp | OpSpec, at: int, tensor: Array, port: Port) -> Argument:
    dtype = DTYPES[tensor.dtype.name].name
    sizes = known_sizes(op, at, tensor.shape) if isinstance(op, GenericOp) else ()
    flat = tensor.tolist()
    value = (tuple(flat) if isinstance(flat, list) else flat) if port.static else None
    return Argument(dtype, tensor.ndim, value, sizes)


def mistake(name: str, case: str, seed: int) -> str | None:
    """How the gradient of a call differs from the slope of its results in a random direction; None if it does not."""
    rng = np.random.default_rng(seed)
    call = call_of(name, case, rng)
    graph, floats, tensors = call.graph(), call.floats, dict(call.tensors)
    if not floats:
        return "no float is given"
    derived = gradient(graph, floats)
    seeds = {
        v.name: rng.standard_normal(v.shape) if v.dtype.name == "float64" else np.zeros(v.shape, numpy_dtype(v.dtype))
        for v in derived.inputs[len(tensors) :]  # differences of results in fewer bits are rounding
    }
    along = {n: rng.standard_normal(tensors[n].shape) for n in floats}
    by = interpret(derived, {**tensors, **seeds})
    slope = sum(float(np.sum(g * along[n])) for n, g in zip(floats, by, strict=True))
    sums = []
    for step in (STEP, -STEP):
        moved = interpret(graph, tensors | {n: tensors[n] + step * along[n] for n in floats})
        sums.append(sum(float(np.sum(g * r)) for g, r in zip(seeds.values(), moved, strict=True)))
    expected = (sums[0] - sums[1]) / (2 * STEP)
    if abs(slope - expected) <= TOLERANCE * (1 + abs(expected)):
        return None
    return f"the gradient says {slope:.9g}, differences say {expected:.9g}"
