"""Random kernels, compiled for two targets, against the interpreter: equal bits."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from opgen.codegen.llvm.target import Target
from opgen.dtypes import BOOL, DTYPES, FLOAT32, INT64, DType, wrap
from opgen.loop import build as b
from opgen.loop.interpret import interpret
from opgen.loop.nodes import (
    Binary,
    BinaryOp,
    Broadcast,
    Buffer,
    Call,
    Compare,
    CompareOp,
    Const,
    Expr,
    For,
    Function,
    If,
    Kernel,
    Let,
    Load,
    Parameter,
    Ramp,
    Select,
    Shuffle,
    Stmt,
    Store,
    Unary,
    Var,
)
from opgen.loop.print import print_kernel
from tests.codegen.llvm.guard import Guarded
from tests.codegen.llvm.jit import Compiled
from tests.codegen.llvm.kernels import tile
from tests.support.elementwise import NUMPY

TYPES = [d for d in DTYPES.values() if not d.is_bits]
COUNT = 48
OF_ELEMENTS: Sequence[BinaryOp] = ("quot", "rem", "shl", "shr")
FLOAT_OPS: Sequence[BinaryOp] = ("add", "sub", "mul", "div", "rem", "min", "max")
INT_OPS: Sequence[BinaryOp] = (
    "add",
    "sub",
    "mul",
    "min",
    "max",
    "and",
    "or",
    "xor",
    "floordiv",
    "mod",
    "quot",
    "rem",
    "shl",
    "shr",
)
BOOL_OPS: Sequence[BinaryOp] = ("and", "or", "xor")
interpret_kernel = interpret
EXACT: Sequence[Function] = ("fma", "sqrt", "floor", "ceil", "round", "abs")
COMPARES: Sequence[CompareOp] = ("eq", "ne", "lt", "le", "gt", "ge")


class Maker:
    """Random typed expressions over inputs `x_<type>`, read at element `at` (scalar or a vector)."""

    def __init__(self, rng: random.Random, lanes: int) -> None:
        self.rng = rng
        self.lanes = lanes
        base = b.mul(b.var("i"), lanes)
        self.at: Expr = base if lanes == 1 else Ramp(base, Const(1), lanes)

    def leaf(self, t: DType) -> Expr:
        if self.rng.random() < 0.25:
            value = self.rng.choice([0, 1, -1, 3, 7, 100, -13]) * (self.rng.choice([1, 0.3]) if t.is_float else 1)
            return b.const(wrap(value, t) if t.is_int else value, t, self.lanes)
        mask = self.mask() if self.rng.random() < 0.2 else None
        if self.lanes > 1 and self.rng.random() < 0.3:
            stride = self.rng.choice([0, 2, 3, -1, 5])
            start = b.const(COUNT // 2, INT64) if stride < 0 else Const(self.rng.randrange(8))
            return Load(f"x_{t}", (Ramp(start, Const(stride), self.lanes),), t, mask)
        return Load(f"x_{t}", (self.at,), t, mask)

    def mask(self) -> Expr:
        return self.make(BOOL, 1)

    def make(self, t: DType, depth: int) -> Expr:
        if depth == 0:
            return self.leaf(t)
        if self.lanes > 1 and self.rng.random() < 0.1:
            order = tuple(self.rng.randrange(2 * self.lanes) for _ in range(self.lanes))
            return Shuffle(self.make(t, depth - 1), self.make(t, depth - 1), order)
        choice = self.rng.random()
        if choice < 0.15:
            return Select(self.make(BOOL, depth - 1), self.make(t, depth - 1), self.make(t, depth - 1))
        if choice < 0.4 or (t.bits == 16 and t.is_float):
            return b.cast(t, self.make(self.rng.choice(TYPES), depth - 1))
        if t.kind == "bool":
            return self.truth(depth)
        if choice < 0.5:
            return Unary("neg", self.make(t, depth - 1))
        if t.is_int and choice < 0.6:
            return Call("pow", (self.make(t, depth - 1), self.make(t, depth - 1)))
        if t.is_float and choice < 0.7:
            function = self.rng.choice(EXACT)
            arity = 3 if function == "fma" else 1
            return Call(function, tuple(self.make(t, depth - 1) for _ in range(arity)))
        return self.arithmetic(t, depth)

    def truth(self, depth: int) -> Expr:
        if self.rng.random() < 0.6:
            t = self.rng.choice([d for d in TYPES if d.compute_type == d != BOOL])
            return Compare(self.rng.choice(COMPARES), self.make(t, depth - 1), self.make(t, depth - 1))
        return Binary(self.rng.choice(BOOL_OPS), self.make(BOOL, depth - 1), self.make(BOOL, depth - 1))

    def arithmetic(self, t: DType, depth: int) -> Expr:
        op = self.rng.choice(FLOAT_OPS if t.is_float else INT_OPS)
        right = self.make(t, depth - 1)
        if op in ("floordiv", "mod"):
            constant = b.const(wrap(self.rng.choice([1, 2, 3, 8, 10, -1, -4, -7]), t), t, self.lanes)
            right = constant if self.rng.random() < 0.5 else Binary("or", right, b.const(1, t, self.lanes))
        return Binary(op, self.make(t, depth - 1), right)


def inputs(rng: np.random.Generator) -> dict[str, NDArray]:
    arrays = {}
    for t in TYPES:
        if t.kind == "bool":
            values = rng.random(COUNT) < 0.5
        elif t.is_int:
            info = np.iinfo(NUMPY[t.name])
            wide = rng.integers(info.min, info.max, COUNT, dtype=NUMPY[t.name])
            values = np.where(rng.random(COUNT) < 0.5, rng.integers(-50, 50, COUNT).astype(wide.dtype), wide)
        else:
            values = rng.standard_normal(COUNT) * np.where(rng.random(COUNT) < 0.6, 4, 1e30)
            values[rng.integers(0, COUNT, 6)] = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40]
        with np.errstate(over="ignore"):
            arrays[f"x_{t}"] = values.astype(NUMPY[t.name])
    return arrays


def assert_agree(kernel: Kernel, arrays: dict[str, NDArray], note: str, **parameters: int) -> None:
    """The interpreter's outputs, bit for bit (NaN for NaN), on memory that ends at protected pages."""
    want = interpret_kernel(kernel, arrays, parameters)
    for target in (Target.generic(), Target.host()):
        own = []
        for buffer in kernel.buffers:
            like = arrays.get(buffer.name, want.get(buffer.name))
            assert like is not None
            guarded = Guarded(like.size, NUMPY[buffer.dtype.name]).array.reshape(like.shape)
            if buffer.name in arrays:
                guarded[...] = like
            own.append(guarded)
        assert Compiled(kernel, target)(*own, **parameters) == 0
        for buffer, got in zip(kernel.outputs, own[len(kernel.inputs) :], strict=True):
            expected = want[buffer.name]
            bits = f"u{got.dtype.itemsize}"
            same = np.asarray(got).view(bits) == expected.view(bits)
            if buffer.dtype.is_float:
                with np.errstate(invalid="ignore"):
                    same |= np.isnan(got.astype(np.float64)) & np.isnan(expected.astype(np.float64))
            where = np.argwhere(~same)
            assert same.all(), (
                f"{note}, target {target.name}: {buffer.name}{where[0].tolist()} is {got[tuple(where[0])]!r}, "
                f"not {expected[tuple(where[0])]!r}\n{print_kernel(kernel)}"
            )


@pytest.mark.parametrize("seed", range(60))
def test_random_expressions(seed: int) -> None:
    rng = random.Random(seed)
    maker = Maker(rng, rng.choice([1, 1, 2, 4, 8]))
    sources = tuple(Buffer(f"x_{t}", t, (Const(COUNT),)) for t in TYPES)
    results = tuple(Buffer(f"y_{t}", t, (Const(COUNT),)) for t in TYPES)
    body = b.block(Store(f"y_{t}", (maker.at,), maker.make(t, 3)) for t in TYPES)
    kernel = Kernel("random", sources, results, (), For("i", Const(0), Const(COUNT // maker.lanes), body))
    assert_agree(kernel, inputs(np.random.default_rng(seed)), f"seed {seed}")


def random_nest(rng: random.Random) -> Kernel:
    """A copy through a local buffer, tiled at random, with guards, lets, and a masked vector tail."""
    rows, columns = Parameter("rows", low=0), Parameter("columns", low=0)
    lanes, tile_rows = rng.choice([1, 4, 8]), rng.choice([1, 2, 3])
    shape = (rows.var, columns.var)
    x, y = Buffer("x", FLOAT32, shape), Buffer("y", FLOAT32, shape)
    tile_buffer = Buffer("tile", FLOAT32, (Const(tile_rows), Const(lanes)), rng.choice(["heap", "stack", "register"]))
    r, c, t = (b.var(v) for v in "rct")
    row = Var("row")
    across = Ramp(b.mul(c, lanes), Const(1), lanes) if lanes > 1 else c
    cell = Ramp(Const(0), Const(1), lanes) if lanes > 1 else Const(0)
    inside = Compare("lt", across, Broadcast(columns.var, lanes) if lanes > 1 else columns.var)

    def every_row(body: Stmt) -> Stmt:
        guarded = If(Compare("lt", row, rows.var), body)
        return For("t", Const(0), Const(tile_rows), Let(row, b.add(b.mul(r, tile_rows), t), guarded))

    fill = every_row(Store("tile", (t, cell), Load("x", (row, across), FLOAT32, inside)))
    value = Binary("add", Load("tile", (t, cell), FLOAT32), b.const(0.1, FLOAT32, lanes))
    drain = every_row(Store("y", (row, across), value, inside))
    inner = For("c", Const(0), b.ceildiv(columns.var, lanes), b.alloc(tile_buffer, b.block([fill, drain])))
    kind = rng.choice(["serial", "parallel"])
    return Kernel("nest", (x,), (y,), (rows, columns), For("r", Const(0), b.ceildiv(rows.var, tile_rows), inner, kind))


@pytest.mark.parametrize("seed", range(20))
def test_random_nests(seed: int) -> None:
    rng = random.Random(seed)
    kernel = random_nest(rng)
    rows, columns = rng.randrange(6), rng.randrange(20)
    x = np.random.default_rng(seed).standard_normal((rows, columns)).astype(np.float32)
    assert_agree(kernel, {"x": x}, f"seed {seed}", rows=rows, columns=columns)


def test_the_register_tile() -> None:
    kernel = tile(rows=2, columns=7, depth=3, width=32, window=2, positions=7, vectors=2)
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((3, 8, 3)), rng.standard_normal((2, 2, 3, 32))
    assert_agree(kernel, {"x": x.astype(np.float32), "w": w.astype(np.float32)}, "tile")


def test_the_comparison_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: one element of one output is one unit in the last place off."""
    kernel = random_nest(random.Random(1))
    x = np.ones((3, 9), np.float32)
    assert_agree(kernel, {"x": x}, "right", rows=3, columns=9)

    def faulty(*arguments: object) -> dict[str, NDArray]:
        result = interpret(*arguments)
        result["y"][2, 8] = np.nextafter(result["y"][2, 8], np.float32(9))
        return result

    monkeypatch.setattr(sys.modules[__name__], "interpret_kernel", faulty)
    with pytest.raises(AssertionError, match=r"^planted, target generic: y\[2, 8\] is "):
        assert_agree(kernel, {"x": x}, "planted", rows=3, columns=9)
