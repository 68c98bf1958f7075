"""ONNX's operators: every one is documented, its examples are what it computes, and its gradients are slopes there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opgen.dtypes import DTYPES
from opgen.grad import load
from opgen.graph.build.gradient import gradient
from opgen.graph.ir.bound import make_node
from opgen.graph.ir.nodes import Graph, Value, op_of
from opgen.graph.kernels.interpret import interpret
from opgen.runtime.memory.buffers import numpy_dtype
from opgen.spec.check.values import example_values
from opgen.spec.generic import Argument, Instance, instance
from opgen.spec.generic.examples import ExampleCall, examples_of, plain_example
from opgen.spec.model.model import GenericOp, Module
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.report import Report

ONNX = load(Path(__file__).parents[2] / "specs" / "onnx" / "onnx_ops.op")
OPS = {op.name: op for op in ONNX.generics}
EXAMPLES = [(op, decl, call) for op in OPS.values() for decl, call in examples_of(Report(), op)]
NAMES = [f"{op.name}-{call.title}" for op, _, call in EXAMPLES]
SEED = 5


@pytest.mark.parametrize("name", OPS)
def test_every_part_is_documented(name: str) -> None:
    op = OPS[name]
    assert op.doc
    parts = [*op.inputs, *op.attrs, *op.outputs]
    assert [p.name.name for p in parts if p.doc is None or not p.doc.value.strip()] == []
    assert any(o is op for o, _, _ in EXAMPLES), "it has no example"


def graph_of(made: Instance, arrays: dict[str, Any]) -> Graph:
    """One call of a plain op."""
    op = op_of(Module("example", (made.op,), made.functions), made.op)
    inputs = [Value(n, DTYPES[a.dtype.name], a.shape) for n, a in arrays.items()]
    node, values = make_node("node", op, inputs, [f"of_{o.name}" for o in made.op.outputs], made.attributes, made.types)
    return Graph("example", tuple(inputs), (), tuple(values), (node,), node.outputs)


def arrays_of(
    op: GenericOp, decl: s.ExampleDecl, call: ExampleCall, made: Instance
) -> tuple[dict[str, Any], list[Any]]:
    """The arrays of an example's tensors, and its results."""
    values = dict(example_values(Report(), plain_example(op, decl, call, made)))

    def array(name: str, dtype: str) -> Any:
        found = DTYPES[made.types.get(dtype, dtype)]
        return np.array(values[name], numpy_dtype(found))

    tensors = {t.name: array(t.name, t.dtype) for t in made.op.tensors}
    return tensors, [array(o.name, o.dtype) for o in made.op.outputs]


@pytest.mark.parametrize(("op", "decl", "call"), EXAMPLES, ids=NAMES)
def test_an_example_is_what_the_op_computes(op: GenericOp, decl: s.ExampleDecl, call: ExampleCall) -> None:
    made = instance(ONNX, op.name, call.arguments, call.attributes, call.outputs)
    tensors, expected = arrays_of(op, decl, call, made)
    found = interpret(graph_of(made, tensors), tensors)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


# Gradients --------------------------------------------------------------------------------------

DISCRETE = {
    "BitCast",
    "DynamicQuantizeLinear",
    "Mod",
    "NonMaxSuppression",
    "NonMaxSuppressionCount",
    "QLinearConv",
    "QLinearMatMul",
    "QuantizeLinear",
    "Unique",
}
"""Ops that are no smooth functions of their floats."""


def in_float64(argument: Argument | None) -> Argument | None:
    takes = argument is not None and argument.value is None and argument.dtype == "float32"
    return replace(argument, dtype="float64") if takes and argument is not None else argument


def in_floats(op: GenericOp, call: ExampleCall) -> bool:
    return op.name not in DISCRETE and any(a is not None and a != in_float64(a) for a in call.arguments)


SMOOTH = [(op, decl, call) for op, decl, call in EXAMPLES if in_floats(op, call)]


@pytest.mark.parametrize(("op", "decl", "call"), SMOOTH, ids=[f"{op.name}-{call.title}" for op, _, call in SMOOTH])
def test_gradients_are_slopes(op: GenericOp, decl: s.ExampleDecl, call: ExampleCall) -> None:
    """Along a random direction, near random values in the example's shapes."""
    made = instance(ONNX, op.name, [in_float64(a) for a in call.arguments], call.attributes, call.outputs)
    rng = np.random.default_rng(SEED)
    tensors, _ = arrays_of(op, decl, call, made)
    floats = [t.name for t in made.op.tensors if tensors[t.name].dtype == np.float64 and not t.shape_only]
    for least in (0.1, 1.1):  # within the domain of roots and logarithms, or of what is for numbers above 1
        tensors |= {n: rng.uniform(least, least + 0.8, tensors[n].shape) for n in floats}
        results = interpret(graph_of(made, tensors), tensors)
        if all(np.isfinite(r).all() for r in results):
            break
    graph = graph_of(made, tensors)
    derived = gradient(graph, floats)
    seeds = [rng.standard_normal(v.shape).astype(v.dtype.name) for v in derived.inputs[len(tensors) :]]
    given = {**tensors, **{v.name: g for v, g in zip(derived.inputs[len(tensors) :], seeds, strict=True)}}
    along = {n: rng.standard_normal(tensors[n].shape) for n in floats}
    slope = sum(float(np.sum(g * along[n])) for n, g in zip(floats, interpret(derived, given), strict=True))
    sums = []
    for step in (1e-6, -1e-6):
        moved = interpret(graph, tensors | {n: tensors[n] + step * along[n] for n in floats})
        sums.append(sum(float(np.sum(g * r)) for g, r in zip(seeds, moved, strict=True) if r.dtype == np.float64))
    expected = (sums[0] - sums[1]) / 2e-6
    assert abs(slope - expected) <= 1e-6 * (1 + abs(expected)), f"seed {SEED}: {slope}, not {expected}"
