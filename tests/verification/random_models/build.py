"""A builder of random models: it evaluates each node as it adds it, so that shapes, types and values are known."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

Array = NDArray[Any]
Dims = tuple[int, ...]
"""One dimension: its size in each binding of the model's symbols."""

OPSET = 21
IR_VERSION = 10
BINDINGS = 2
"""Combinations of sizes for which a model is run."""
LARGEST = 4096
"""Elements of the largest value."""
SPECIALS = (np.nan, np.inf, -np.inf, -0.0, 1e-40, 1e15, -1e15)
"""Squares of the finite ones are finite in float32: where they overflow, it is the algorithm that decides."""


class UnusableError(Exception):
    """A node that the reference evaluator refuses, or whose results do not serve."""


@dataclass(frozen=True)
class Step:
    """A node, with an evaluator of its own."""

    node: NodeProto
    reads: tuple[str, ...]
    """Names of the values it reads, those that bodies of control flow read among them."""
    evaluator: ReferenceEvaluator

    def run(self, feeds: dict[str, Array]) -> list[Array]:
        """Return the outputs of the node for values of its inputs.  Raises UnusableError."""
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                found = self.evaluator.run(None, {n: feeds[n] for n in self.reads})
        except Exception as error:  # the evaluator raises whatever its numpy code does
            raise UnusableError(str(error)) from error
        return [np.asarray(a) for a in found]


@dataclass(frozen=True)
class Value:
    """A tensor of the model: its elements in each binding."""

    name: str
    arrays: tuple[Array, ...]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.arrays[0].dtype

    @property
    def rank(self) -> int:
        return self.arrays[0].ndim

    @property
    def dims(self) -> tuple[Dims, ...]:
        """The sizes of each dimension."""
        return tuple(zip(*(a.shape for a in self.arrays), strict=True))

    @property
    def fixed(self) -> bool:
        """True if the shape is the same in all bindings."""
        return all(a.shape == self.arrays[0].shape for a in self.arrays)


@dataclass
class Builder:
    """A model as it grows.  Everything follows from `choose`."""

    choose: random.Random
    empty: bool = False
    """Sizes of 0 may occur."""
    special: bool = False
    """NaN, infinities and extremes may occur among inputs."""
    symbolic: bool = False
    """Sizes of inputs may be symbols."""
    inputs: dict[str, Value] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)
    values: list[Value] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    symbols: dict[Dims, str] = field(default_factory=dict)

    def size(self, least: int = 1) -> Dims:
        """A new size: the same in all bindings, or a symbol's."""
        sizes = [*range(least, 6), 8, 17]
        if self.empty and least <= 1 and self.choose.random() < 0.1:
            sizes = [0]
        if self.symbolic and self.choose.random() < 0.4:
            return tuple(self.choose.choice(sizes) for _ in range(BINDINGS))
        return (self.choose.choice(sizes),) * BINDINGS

    def shape(self, rank: int) -> tuple[Dims, ...]:
        return tuple(self.size() for _ in range(rank))

    def array(self, dtype: np.dtype[Any], shape: Sequence[int]) -> Array:
        """Random elements: small halves, whole numbers, or normally distributed ones; perhaps special ones."""
        rng = np.random.default_rng(self.choose.getrandbits(64))
        if dtype == np.bool_:
            return rng.integers(0, 2, shape).astype(np.bool_)
        if dtype.kind in "iu":
            low = 0 if dtype.kind == "u" else -5
            return rng.integers(low, 10, shape).astype(dtype)
        found = rng.integers(-6, 7, shape) / 2 if self.choose.random() < 0.4 else rng.standard_normal(shape)
        if self.special:
            chosen = rng.random(shape) < 0.1
            found = np.where(chosen, rng.choice(SPECIALS, shape), found)
        with np.errstate(over="ignore"):
            return np.asarray(found).astype(dtype)

    def weights(self, dtype: Any, dims: Sequence[Dims]) -> Value:
        """A new operand that is finite, mostly a constant.

        A product of what lies outside a tensor and an infinity is left out here, and NaN in other libraries.
        """
        special, self.special = self.special, False
        try:
            return self.operand(dtype, dims, constant=0.9)
        finally:
            self.special = special

    def operand(self, dtype: Any, dims: Sequence[Dims], constant: float = 0.5) -> Value:
        """A new input, or with a probability a constant, of a type and shape."""
        kind = np.dtype(dtype)
        shapes = list(zip(*dims, strict=True)) if dims else [()] * BINDINGS
        if len(set(shapes)) == 1 and self.choose.random() < constant:
            return self.constant(self.array(kind, shapes[0]))
        value = Value(f"x{len(self.inputs)}", tuple(self.array(kind, s) for s in shapes))
        self.inputs[value.name] = value
        self.values.append(value)
        return value

    def constant(self, array: Any, dtype: Any = None) -> Value:
        elements = np.asarray(array, dtype)
        name = f"c{len(self.constants)}"
        self.constants[name] = elements
        return Value(name, (elements,) * BINDINGS)

    def numbers(self, *numbers: int) -> Value:
        """A constant vector of int64."""
        return self.constant(np.array(numbers, np.int64))

    def value(
        self, dtypes: Sequence[Any], fits: Callable[[Value], bool] = lambda _: True, rank: int | None = None
    ) -> Value:
        """A value that is there, the last ones first, or a new one."""
        kinds = [np.dtype(d) for d in dtypes]
        fitting = [v for v in self.values if v.dtype in kinds and (rank is None or v.rank == rank) and fits(v)]
        if fitting and self.choose.random() < 0.85:
            weights = [1 + i for i in range(len(fitting))]
            return self.choose.choices(fitting, weights)[0]
        wanted = self.choose.choice((1, 2, 2, 3, 3, 4)) if rank is None else rank
        made = self.operand(self.choose.choice(kinds), self.shape(wanted), constant=0.1)
        if not fits(made):
            raise UnusableError("no value fits")
        return made

    def like(self, value: Value) -> Value:
        """A value of the same type and shape."""
        fitting = [v for v in self.values if v.dtype == value.dtype and v.dims == value.dims]
        if fitting and self.choose.random() < 0.5:
            return self.choose.choice(fitting)
        return self.operand(value.dtype, value.dims)

    def beside(self, value: Value) -> Value:
        """A value of the same type that broadcasts to the shape."""
        if self.choose.random() < 0.5:
            return self.like(value)
        dims = value.dims[self.choose.randrange(value.rank + 1) :]
        return self.operand(value.dtype, tuple((1,) * BINDINGS if self.choose.random() < 0.3 else d for d in dims))

    def axis(self, value: Value) -> int:
        """One of the value's axes, counted from either end.  Raises UnusableError for a scalar."""
        if not value.rank:
            raise UnusableError("a scalar has no axis")
        return self.choose.randrange(-value.rank, value.rank)

    def node(
        self,
        operator: str,
        inputs: Sequence[Value | None],
        outputs: int = 1,
        outside: Sequence[Value] = (),
        **attributes: Any,
    ) -> list[Value]:
        """Add a node; its bodies may read values from `outside`.

        Raises UnusableError if it cannot be evaluated, or its results are too large.
        """
        number = len(self.steps)
        names = [v.name if v else "" for v in inputs]
        made = [f"v{number}" if not i else f"v{number}_{i}" for i in range(outputs)]
        node = helper.make_node(operator, names, made, name=f"n{number}", **attributes)
        read = {v.name: v for v in (*inputs, *outside) if v}
        step = Step(node, tuple(read), _evaluator(node, list(read.values())))
        found = [step.run({name: v.arrays[b] for name, v in read.items()}) for b in range(BINDINGS)]
        values = [Value(name, tuple(f[i] for f in found)) for i, name in enumerate(made)]
        for value in values:
            if any(a.size > LARGEST for a in value.arrays):
                raise UnusableError("too large")
            if value.dtype.kind not in "fiub" or any(
                a.dtype != value.dtype or a.ndim != value.rank for a in value.arrays
            ):
                raise UnusableError("of no type or rank that all bindings share")
        self.steps.append(step)
        self.values += values
        return values

    def model(self, outputs: Sequence[str] | None = None) -> ModelProto:
        """The model; by default what no node takes is its result."""
        used = {name for step in self.steps for name in step.reads}
        made = [name for step in self.steps for name in step.node.output if name]
        known = {v.name: v for v in self.values}
        results = [n for n in made if n not in used] if outputs is None else outputs
        graph = helper.make_graph(
            [step.node for step in self.steps],
            "random",
            [_info(v.name, v.dtype, self._named(v)) for v in self.inputs.values()],
            [_info(n, known[n].dtype, None) for n in results],
            [numpy_helper.from_array(a, n) for n, a in self.constants.items()],
        )
        imports = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)

    def feeds(self, binding: int) -> dict[str, Array]:
        return {v.name: v.arrays[binding] for v in self.inputs.values()}

    def _named(self, value: Value) -> list[int | str]:
        """The declared shape: sizes that differ between bindings are symbols."""
        return [d[0] if len(set(d)) == 1 else self.symbols.setdefault(d, f"s{len(self.symbols)}") for d in value.dims]


def _info(name: str, dtype: np.dtype[Any], shape: Sequence[int | str | None] | None) -> Any:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), shape)


def _evaluator(node: NodeProto, inputs: Sequence[Value]) -> ReferenceEvaluator:
    graph = helper.make_graph(
        [node],
        "one",
        [_info(v.name, v.dtype, [None] * v.rank) for v in inputs],
        [helper.make_empty_tensor_value_info(n) for n in node.output],
    )
    try:
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        return ReferenceEvaluator(model)
    except Exception as error:  # it is the evaluator's word which nodes it takes
        raise UnusableError(str(error)) from error
