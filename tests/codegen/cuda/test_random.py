"""Random expressions: precedence, wrapping, division and intervals, against the interpreter."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from opgen.dtypes import BOOL, DTYPES, FLOAT32, FLOAT64, INT64, DType, wrap
from opgen.loop import build as b
from opgen.loop.interpret import interpret
from opgen.loop.nodes import (
    Binary,
    Buffer,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    For,
    Kernel,
    Load,
    Parameter,
    Select,
    Store,
    Type,
    Unary,
    Var,
)
from opgen.loop.print import print_kernel
from opgen.runtime.devices import emulation
from tests.codegen.cuda.kernels import sample
from tests.loop.strategies import OPERATIONS
from tests.support.arrays import assert_same

pytestmark = pytest.mark.skipif(emulation.compiler() is None, reason="there is no C++ compiler")

TYPES = (BOOL, *(d for d in DTYPES.values() if d.is_int and not d.is_bits), FLOAT32, FLOAT64)
SIZE = 64
COUNT = 12


class Grower:
    """Grows well-typed expressions over x_TYPE[i], the loop variable and two parameters."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def grow(self, dtype: DType, depth: int) -> Expr:
        if depth == 0 or self.random.random() < 0.1:
            return self.leaf(dtype)
        makers: list[Callable[[DType, int], Expr]] = [self.select, self.cast, self.binary, self.binary, self.binary]
        makers.append(self.unary if dtype != BOOL else self.compare)
        return self.random.choice(makers)(dtype, depth - 1)

    def leaf(self, dtype: DType) -> Expr:
        draw = self.random.random()
        if dtype == INT64 and draw < 0.5:
            return Var(self.random.choice(["i", "n", "free"]))
        if draw < 0.6:
            return Load(f"x_{dtype}", (Var("i"),), dtype)
        if dtype == BOOL:
            return Const(self.random.random() < 0.5, Type(BOOL))
        if dtype.is_int:
            values = [0, 1, -1, 3, -7, 100000, dtype.greatest, dtype.least, dtype.greatest // 2]
            return Const(wrap(self.random.choice(values), dtype), Type(dtype))
        return Const(self.random.choice([0.0, -0.0, 1.0, -2.5, 0.5, 2.0**20, float("inf")]), Type(dtype))

    def binary(self, dtype: DType, depth: int) -> Expr:
        if dtype == BOOL:
            op = self.random.choice(["and", "or", "xor"])
        elif dtype.is_int:
            op = self.random.choice(OPERATIONS["int"])
        else:
            op = self.random.choice(OPERATIONS["float"])
        left, right = self.grow(dtype, depth), self.grow(dtype, depth)
        if op in ("floordiv", "mod"):
            zero, three = Const(0, Type(dtype)), Const(3, Type(dtype))
            right = Select(Compare("eq", right, zero), three, right)
        return Binary(op, left, right)

    def unary(self, dtype: DType, depth: int) -> Expr:
        operand = self.grow(dtype, depth)
        if dtype.is_int and self.random.random() < 0.3:
            return Call("pow", (operand, self.grow(dtype, depth)))
        return Call("abs", (operand,)) if self.random.random() < 0.5 else Unary("neg", operand)

    def compare(self, dtype: DType, depth: int) -> Expr:
        other = self.random.choice(TYPES[1:])
        op = self.random.choice(["eq", "ne", "lt", "le", "gt", "ge"])
        return Compare(op, self.grow(other, depth), self.grow(other, depth))

    def select(self, dtype: DType, depth: int) -> Expr:
        return Select(self.grow(BOOL, depth), self.grow(dtype, depth), self.grow(dtype, depth))

    def cast(self, dtype: DType, depth: int) -> Expr:
        other = self.random.choice([t for t in TYPES if t != dtype])
        return Cast(Type(dtype), self.grow(other, depth))


def random_kernel(seed: int) -> Kernel:
    grower = Grower(seed)
    n = Parameter("n", INT64, 0, 1000)
    shape = (n.var,)
    types = [grower.random.choice(TYPES) for _ in range(COUNT)]
    stores = [Store(f"y{i}", (Var("i"),), grower.grow(t, 4)) for i, t in enumerate(types)]
    return Kernel(
        f"random_{seed}",
        tuple(Buffer(f"x_{t}", t, shape) for t in TYPES),
        tuple(Buffer(f"y{i}", t, shape) for i, t in enumerate(types)),
        (n, Parameter("free", INT64)),
        For("i", b.index(0), n.var, b.block(stores), "block.x"),
    )


SEEDS = range(12)


@pytest.fixture(scope="module")
def compiled() -> list[emulation.EmulatedKernel]:
    return emulation.compile_emulated([random_kernel(seed) for seed in SEEDS])


@pytest.mark.parametrize("seed", SEEDS)
def test_random_expressions_mean_what_the_interpreter_says(seed: int, compiled: list[emulation.EmulatedKernel]) -> None:
    run = compiled[seed]
    kernel = run.program.kernel
    rng = np.random.default_rng(seed)
    arrays = {buffer.name: sample(rng, (SIZE,), buffer.dtype) for buffer in kernel.inputs}
    for free in (0, -5, 2**62, -(2**63)):
        parameters = {"n": SIZE, "free": free}
        expected = interpret(kernel, arrays, parameters)
        found = run(arrays, parameters)
        for name, value in expected.items():
            assert_same(found[name], value, True, f"seed {seed}, free {free}, {name}\n{print_kernel(kernel)}")
