"""Small graphs written step by step, for tests of passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from opgen.dtypes import DTYPES
from opgen.grad.load import load
from opgen.graph.ir.bound import make_node
from opgen.graph.ir.nodes import Array, Constant, Data, Graph, Node, Value, op_of
from opgen.graph.passes.base import Report
from opgen.graph.program.programs import Passed
from opgen.spec.call.environment import AttrStored
from opgen.spec.model.model import Module

OPS = load(Path(__file__).with_name("fused.op"))
NN = load(Path(__file__).parents[2] / "specs" / "nn_ops.op")


def as_it_is(graph: Graph) -> Passed:
    """A graph that goes through no passes."""
    return Passed(graph, Report())


class Steps:
    """A graph as it is written: each step gives the names of its values."""

    def __init__(self) -> None:
        self.inputs: list[Value] = []
        self.constants: list[Constant] = []
        self.values: list[Value] = []
        self.nodes: list[Node] = []

    def input(self, *shape: int, dtype: str = "float32") -> str:
        self.inputs.append(Value(f"x{len(self.inputs)}", DTYPES[dtype], shape))
        return self.inputs[-1].name

    def constant(self, array: Array) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(Constant(Value(name, DTYPES[array.dtype.name], array.shape), Data(array)))
        return name

    def random(self, *shape: int, seed: int = 0, dtype: str = "float32") -> str:
        """A constant of numbers drawn between 0.5 and 1.5."""
        drawn = np.random.default_rng([seed, len(self.constants)]).uniform(0.5, 1.5, shape)
        return self.constant(drawn.astype(dtype))

    def several(self, op: str, *inputs: str, module: Module = OPS, **attributes: AttrStored) -> tuple[str, ...]:
        """The results of one more node."""
        known = {v.name: v for v in (*self.inputs, *(c.value for c in self.constants), *self.values)}
        spec = module.op(op)
        number = len(self.nodes)
        names = [f"v{number}_{o.name}" for o in spec.outputs]
        node, made = make_node(f"n{number}", op_of(module, spec), [known[i] for i in inputs], names, attributes)
        self.nodes.append(node)
        self.values += made
        return tuple(names)

    def __call__(self, op: str, *inputs: str, module: Module = OPS, **attributes: AttrStored) -> str:
        """The one result of one more node."""
        (result,) = self.several(op, *inputs, module=module, **attributes)
        return result

    def graph(self, *outputs: str) -> Graph:
        parts = tuple(self.inputs), tuple(self.constants), tuple(self.values), tuple(self.nodes)
        return Graph("steps", *parts, outputs)


def uniform(values: Sequence[Value], seed: int = 0) -> Mapping[str, Array]:
    """Arrays for values: floats between -1 and 1, so that every rounding shows."""
    rng = np.random.default_rng(seed)
    return {v.name: rng.uniform(-1, 1, v.shape).astype(v.dtype.name) for v in values}
