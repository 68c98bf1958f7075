"""Random graphs: a Hypothesis strategy, and arrays for their inputs.

`graphs()` draws graphs of the ops in `ops.op` with values that several nodes take, nodes that are there twice (or
nearly), dead ends, several outputs (one perhaps twice, one perhaps an input or a constant), sizes of 0, and nodes that
depend on constants alone.

How many are tried is `OPGEN_GRAPHS` (a test says its default), and the seed `OPGEN_SEED`: `@campaign(60)` on a test
that takes `graph`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import ml_dtypes  # noqa: F401  (registers bfloat16 with numpy)
import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from opgen.dtypes import DTYPES, DType
from opgen.graph.ir.bound import CallError, Kind, make_node
from opgen.graph.ir.nodes import Array, Constant, Data, Graph, Node, Op, Value, op_of
from opgen.spec.loading import load
from opgen.spec.model.model import Attr, Dimension, OpSpec, Sizes

SEED = int(os.environ.get("OPGEN_SEED", 23))
MODULE = load(Path(__file__).with_name("ops.op"))
OPS: tuple[Op, ...] = tuple(op_of(MODULE, spec) for spec in MODULE.ops)
SIZES = (0, 1, 2, 3, 4, 6)
FLOATS = (0.5, -1.25, 2.0)
Test = TypeVar("Test", bound=Callable[..., None])


def campaign(count: int, shrinks: bool = True, **drawn: st.SearchStrategy[object]) -> Callable[[Test], Test]:
    """Runs a test on `count` graphs (or OPGEN_GRAPHS), given as `graph`, and on what else is to be drawn.

    Unless it `shrinks`, the first graph for which the test fails is enough.
    """

    def run(test: Test) -> Test:
        print(f"OPGEN_SEED={SEED}")
        examples = int(os.environ.get("OPGEN_GRAPHS", count))
        phases = [Phase.generate, *([Phase.explicit, Phase.target, Phase.shrink] if shrinks else [])]
        quiet = list(HealthCheck)
        limits = settings(
            max_examples=examples,
            deadline=None,
            suppress_health_check=quiet,
            phases=phases,
            database=None,
            report_multiple_bugs=False,
        )
        found: Test = seed(SEED)(limits(given(graph=graphs(), **drawn)(test)))
        return found

    return run


def random_arrays(values: Sequence[Value], number: int) -> dict[str, Array]:
    """Arrays for values, chosen by a number: small integers and halves, so that sums of a few are exact."""
    rng = np.random.default_rng([SEED, number])
    return {v.name: _array(rng, v.dtype, v.shape) for v in values}


def random_inputs(graph: Graph, number: int = 0) -> dict[str, Array]:
    """Arrays for the inputs of a graph."""
    return random_arrays(graph.inputs, number)


def _array(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Array:
    if dtype.name == "bool":
        return rng.integers(0, 2, shape).astype(np.bool_)
    whole = rng.integers(-6, 7, shape)
    return (whole / 2 if dtype.is_float else whole).astype(dtype.name)


@dataclass
class _Builder:
    """A graph as it grows."""

    draw: st.DrawFn
    ops: Sequence[Op]
    inputs: list[Value] = field(default_factory=list)
    constants: list[Constant] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)

    @property
    def known(self) -> list[Value]:
        return [*self.inputs, *(c.value for c in self.constants), *self.values]

    def source(self, kind: Kind) -> Value:
        """A new input or constant."""
        if self.draw(st.booleans()) or not self.inputs:
            value = Value(f"x{len(self.inputs)}", *kind)
            self.inputs.append(value)
            return value
        value = Value(f"c{len(self.constants)}", *kind)
        elements = _array(np.random.default_rng([SEED, self.draw(st.integers(0, 99))]), *kind)
        self.constants.append(Constant(value, Data(elements)))
        return value

    def value(self, kind: Kind) -> Value:
        """A value of a type and shape: one that is there, mostly, the last ones first."""
        fitting = [v for v in reversed(self.known) if (v.dtype, v.shape) == kind]
        if fitting and self.draw(st.integers(0, 4)):
            return self.draw(st.sampled_from(fitting))
        return self.source(kind)

    def step(self) -> None:
        """One more node, if the op that is drawn takes what is drawn for it."""
        op = self.draw(st.sampled_from(self.ops))
        spec = op.spec
        sizes, types = self._start(spec)
        attributes = {
            a.name: self.draw(_attribute(a)) for a in spec.attrs if self.draw(st.booleans()) or not a.has_default
        }
        for entry in spec.inputs:
            if isinstance(entry, Sizes):
                form = self.draw(st.sampled_from(entry.forms))
                attributes[entry.name] = tuple(self._size(d, sizes) for d in form)
        before = len(self.inputs), len(self.constants)
        tensors = [
            self.value((DTYPES[types.get(t.dtype, t.dtype)], tuple(self._size(d, sizes) for d in t.dims)))
            for t in spec.tensors
        ]
        number = len(self.nodes)
        names = [f"v{number}_{o.name}" for o in spec.outputs]
        try:
            node, made = make_node(f"n{number}", op, tensors, names, attributes, origin=f"step {number}")
        except CallError:
            del self.inputs[before[0] :], self.constants[before[1] :]
            return
        self.nodes.append(node)
        self.values += made

    def again(self) -> None:
        """A node once more, perhaps with other attributes."""
        node = self.draw(st.sampled_from(self.nodes))
        spec, number = node.op.spec, len(self.nodes)
        attributes = dict(node.attributes)
        if self.draw(st.booleans()):
            attributes |= {a.name: self.draw(_attribute(a)) for a in spec.attrs}
        known = {v.name: v for v in self.known}
        names = [f"v{number}_{o.name}" for o in spec.outputs]
        tensors = [known[name] for name in node.inputs]
        try:
            made = make_node(f"n{number}", node.op, tensors, names, attributes, dict(node.types), f"step {number}")
        except CallError:
            return
        self.nodes.append(made[0])
        self.values += made[1]

    def _start(self, spec: OpSpec) -> tuple[dict[str, int], dict[str, str]]:
        """Sizes and types of an op, those of the first input taken from a value that is there, if one fits."""
        types = {v.name: self.draw(st.sampled_from(v.allowed)).name for v in spec.type_variables}
        sizes: dict[str, int] = {}
        first = spec.tensors[0]
        fitting = [v for v in reversed(self.known) if len(v.shape) == first.rank and _takes(spec, first.dtype, v.dtype)]
        if fitting and self.draw(st.integers(0, 4)):
            value = self.draw(st.sampled_from(fitting))
            if first.dtype in types:
                types[first.dtype] = value.dtype.name
            sizes = {str(d.factors[0]): s for d, s in zip(first.dims, value.shape, strict=True) if d.factors}
        return sizes, types

    def _size(self, dim: Dimension, sizes: dict[str, int]) -> int:
        if dim.broadcast and self.draw(st.integers(0, 3)) == 0:
            return 1
        size = 1
        for f in dim.factors:
            size *= f if isinstance(f, int) else sizes.setdefault(f, self.draw(st.sampled_from(SIZES)))
        return size

    def graph(self) -> Graph:
        known = [v.name for v in self.known]
        made = [v.name for v in self.values] or known
        outputs = self.draw(st.lists(st.sampled_from(made), min_size=1, max_size=4))
        outputs += self.draw(st.lists(st.sampled_from(known), max_size=1))
        named = tuple(f"result {i}" for i in range(len(outputs))) if self.draw(st.booleans()) else ()
        return Graph(
            "random",
            tuple(self.inputs),
            tuple(self.constants),
            tuple(self.values),
            tuple(self.nodes),
            tuple(outputs),
            named,
        )


def _takes(spec: OpSpec, name: str, dtype: DType) -> bool:
    variable = spec.type_variable(name)
    return dtype.name == name if variable is None else dtype in variable.allowed


def _attribute(attr: Attr) -> st.SearchStrategy[object]:
    """A value of an attribute."""
    if attr.kind == "float":
        return st.sampled_from(FLOATS)
    if attr.kind == "bool":
        return st.booleans()
    if attr.values:
        return st.sampled_from(attr.values)
    low = -2 if attr.minimum is None else attr.minimum
    return st.integers(low, 4 if attr.maximum is None else attr.maximum)


@st.composite
def graphs(draw: st.DrawFn, ops: Sequence[Op] = OPS, steps: int = 9) -> Graph:
    """A graph of at most so many nodes, drawn from these ops."""
    builder = _Builder(draw, ops)
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(("float32", "float32", "float64", "int32")))
        rank = draw(st.integers(1, 3))
        builder.source((DTYPES[kind], tuple(draw(st.sampled_from(SIZES)) for _ in range(rank))))
    for _ in range(draw(st.integers(0, steps))):
        if builder.nodes and draw(st.integers(0, 5)) == 0:
            builder.again()
        else:
            builder.step()
    return builder.graph()


def same_bits(one: Array, other: Array) -> bool:
    """Whether two arrays have the same type, shape and elements, NaN for NaN and -0 for -0."""
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def assert_same(one: Mapping[str, Array] | Sequence[Array], other: Mapping[str, Array] | Sequence[Array]) -> None:
    """Asserts that results are the same, bit for bit."""
    left = list(one.values()) if isinstance(one, Mapping) else list(one)
    right = list(other.values()) if isinstance(other, Mapping) else list(other)
    assert len(left) == len(right)
    for place, (a, b) in enumerate(zip(left, right, strict=True)):
        assert same_bits(a, b), f"result {place}: {a} is not {b}"
