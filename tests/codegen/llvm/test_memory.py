"""Vector accesses of every shape, against numpy, with arrays that end at protected pages."""

from __future__ import annotations

import signal
import subprocess
import sys

import numpy as np
import pytest
from numpy.typing import NDArray

from opgen.codegen.llvm.emit import emit
from opgen.codegen.llvm.target import Target
from opgen.diagnostics import InternalError
from opgen.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT32, INT64, DType
from opgen.loop import build as b
from opgen.loop.nodes import (
    Binary,
    Broadcast,
    Buffer,
    Cast,
    Compare,
    Const,
    Expr,
    For,
    Kernel,
    Load,
    Parameter,
    Ramp,
    Store,
    Type,
    Var,
)
from opgen.loop.parse import parse_kernel
from opgen.passes.legalize import legalize
from opgen.runtime.kernels.run import run_kernel
from opgen.schedule.schedule import apply, parse_schedule
from tests.codegen.llvm.guard import Guarded
from tests.codegen.llvm.jit import Compiled
from tests.support.elementwise import NUMPY

LANES = 8
TYPES = [FLOAT32, FLOAT64, INT32, FLOAT16, BOOL]
TARGETS = ["generic", "host"]
LIVE = Parameter("live", low=0, high=LANES)


def live_mask(lanes: int = LANES) -> Expr:
    """On for the first `live` lanes."""
    return Compare("lt", Ramp(Const(0), Const(1), lanes), Broadcast(LIVE.var, lanes))


def guarded(count: int, dtype: DType, at_end: bool = True) -> NDArray:
    array = Guarded(count, NUMPY[dtype.name], at_end=at_end).array
    array[:] = (np.arange(count) % 2 == 1) if dtype is BOOL else np.arange(1, count + 1)
    return array


def load_kernel(count: int, index: Expr, dtype: DType, mask: Expr | None) -> Kernel:
    x = Buffer("x", dtype, (Const(count),))
    y = Buffer("y", dtype, (Const(LANES),))
    body = Store("y", (Ramp(Const(0), Const(1), LANES),), Load("x", (index,), dtype, mask))
    return Kernel("loads", (x,), (y,), (LIVE,), body)


def store_kernel(count: int, index: Expr, dtype: DType, mask: Expr | None) -> Kernel:
    x = Buffer("x", dtype, (Const(LANES),))
    y = Buffer("y", dtype, (Const(count),))
    body = Store("y", (index,), Load("x", (Ramp(Const(0), Const(1), LANES),), dtype), mask)
    return Kernel("stores", (x,), (y,), (LIVE,), body)


def test_the_guard_pages_are_guarded() -> None:
    """The tests below rest on this: an access beyond the array kills the process."""
    code = "from tests.codegen.llvm.guard import Guarded; import ctypes; a = Guarded(4, 'f4').array; "
    code += "print(a[3]); ctypes.string_at(a.ctypes.data + {offset}, 1)"
    for offset, status in ((15, 0), (16, -signal.SIGSEGV)):
        ran = subprocess.run([sys.executable, "-c", code.format(offset=offset)], capture_output=True, check=False)
        assert ran.returncode == status
        assert ran.stderr == b""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("stride", [0, 1, 2, 3, 4, 5, 9, -1, -2, -3, -6])
def test_strided_loads_touch_nothing_outside_first_to_last_lane(stride: int, dtype: DType, target: str) -> None:
    count = abs(stride) * (LANES - 1) + 1
    base = 0 if stride >= 0 else count - 1
    index = Ramp(Const(base), Const(stride), LANES)
    kernel = Compiled(load_kernel(count, index, dtype, None), Target.from_name(target))
    for at_end in (False, True):
        x, y = guarded(count, dtype, at_end), guarded(LANES, dtype, at_end)
        assert kernel(x, y, live=0) == 0
        assert y.tolist() == [x[base + stride * k] for k in range(LANES)]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("stride", [0, 1, 2, 7, -1, -4])
def test_strided_stores_leave_everything_else_alone(stride: int, dtype: DType, target: str) -> None:
    count = abs(stride) * (LANES - 1) + 1
    base = 0 if stride >= 0 else count - 1
    kernel = Compiled(
        store_kernel(count, Ramp(Const(base), Const(stride), LANES), dtype, None), Target.from_name(target)
    )
    for at_end in (False, True):
        x, y = guarded(LANES, dtype, at_end), guarded(count, dtype, at_end)
        want = y.copy()
        for k in range(LANES):  # in lane order: of lanes at one place the last stays
            want[base + stride * k] = x[k]
        assert kernel(x, y, live=0) == 0
        assert np.array_equal(y, want)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("stride", [1, 2, -1, -3])
@pytest.mark.parametrize("live", range(LANES + 1))
def test_lanes_that_are_masked_off_touch_no_memory(live: int, stride: int, dtype: DType, target: str) -> None:
    """The array holds only what the live lanes reach: the others would fault."""
    count = max(1, abs(stride) * (live - 1) + 1)
    base = 0 if stride > 0 else count - 1
    index = Ramp(Const(base), Const(stride), LANES)
    at_end = stride > 0
    loads = Compiled(load_kernel(count, index, dtype, live_mask()), Target.from_name(target))
    x, y = guarded(count, dtype, at_end), guarded(LANES, dtype)
    assert loads(x, y, live=live) == 0
    assert y.tolist() == [x[base + stride * k] if k < live else 0 for k in range(LANES)]
    stores = Compiled(store_kernel(count, index, dtype, live_mask()), Target.from_name(target))
    x, y = guarded(LANES, dtype), guarded(count, dtype, at_end)
    want = y.copy()
    for k in range(live):
        want[base + stride * k] = x[k]
    assert stores(x, y, live=live) == 0
    assert np.array_equal(y, want)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("wide", "narrow"), [(FLOAT32, BFLOAT16), (FLOAT32, FLOAT16), (INT64, INT32)], ids=str)
@pytest.mark.parametrize(("first", "last"), [(0, 1), (7, 8), (3, 4), (0, 2)])
def test_few_lanes_that_were_narrowed(first: int, last: int, wide: DType, narrow: DType, target: str) -> None:
    """A store of one lane must not write as much as the value had before it was narrowed."""
    x, y = Buffer("x", wide, (Const(LANES),)), Buffer("y", narrow, (Const(LANES),))
    lanes = Ramp(Const(0), Const(1), LANES)
    inside = b.both(Compare("ge", lanes, Const(first, lanes.type)), Compare("lt", lanes, Const(last, lanes.type)))
    value = Cast(Type(narrow, LANES), Load("x", (lanes,), wide))
    kernel = Compiled(Kernel("few", (x,), (y,), (), Store("y", (lanes,), value, inside)), Target.from_name(target))
    source, result = np.arange(-8, 0).astype(NUMPY[wide.name]), np.full(LANES, 3, NUMPY[narrow.name])
    assert kernel(source, result) == 0
    assert result.astype(float).tolist() == [source[k] if first <= k < last else 3 for k in range(LANES)]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT16], ids=str)
@pytest.mark.parametrize("live", [0, 1])
def test_masked_scalars(live: int, dtype: DType, target: str) -> None:
    x, y = Buffer("x", dtype, (Const(1),)), Buffer("y", dtype, (Const(1),))
    mask = Compare("gt", LIVE.var, Const(0))
    outside = b.mul(b.sub(1, LIVE.var), 2**30)
    body = Store("y", (outside,), Load("x", (outside,), dtype, mask), mask)
    kernel = Compiled(Kernel("masked", (x,), (y,), (LIVE,), body), Target.from_name(target))
    source, result = guarded(1, dtype), guarded(1, dtype)
    source[0] = 5
    assert kernel(source, result, live=live) == 0
    assert result[0] == (5 if live else 1)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("masked", [False, True])
def test_gather_and_scatter_by_loaded_indices(masked: bool, dtype: DType, target: str) -> None:
    rng = np.random.default_rng(5)
    count = 40
    at = Buffer("at", INT64, (Const(LANES),))
    x, y = Buffer("x", dtype, (Const(count),)), Buffer("y", dtype, (Const(count),))
    lanes = Load("at", (Ramp(Const(0), Const(1), LANES),), INT64)
    mask = live_mask() if masked else None
    body = Store("y", (lanes,), Load("x", (lanes,), dtype, mask), mask)
    kernel = Compiled(Kernel("moves", (at, x), (y,), (LIVE,), body), Target.from_name(target))
    for live in (0, 3, LANES):
        where = rng.permutation(count)[:LANES].astype(np.int64)
        wild = where.copy()
        used = live if masked else LANES
        wild[used:] = 2**40  # far outside: would fault
        source, result = guarded(count, dtype), guarded(count, dtype)
        source[:] = source[::-1].copy()
        want = result.copy()
        want[where[:used]] = source[where[:used]]
        assert kernel(wild, source, result, live=live) == 0
        assert np.array_equal(result, want)


ROW, COLUMN = Var("i"), Var("j")
NUMBERS = Ramp(Const(0), Const(1), LANES)


@pytest.mark.parametrize(
    ("index", "contiguous"),
    [
        ((ROW, Ramp(b.mul(COLUMN, LANES), Const(1), LANES)), True),
        ((ROW, Binary("add", Broadcast(b.mul(COLUMN, LANES), LANES), NUMBERS)), True),
        ((ROW, Binary("sub", Ramp(b.mul(COLUMN, LANES), Const(1), LANES), Const(0, Type(INT64, LANES)))), True),
        ((ROW, Binary("mul", Ramp(COLUMN, Const(1), LANES), Const(1, Type(INT64, LANES)))), True),
        ((Broadcast(ROW, LANES), Ramp(b.mul(COLUMN, LANES), Const(1), LANES)), True),
        (
            (Binary("sub", Ramp(ROW, Const(1), LANES), Ramp(Const(0), Const(1), LANES)), Ramp(COLUMN, Const(1), LANES)),
            True,
        ),
        ((Binary("mod", Ramp(ROW, Const(1), LANES), Broadcast(Const(3), LANES)), Ramp(COLUMN, Const(1), LANES)), False),
        ((NUMBERS, Ramp(COLUMN, Const(1), LANES)), False),
    ],
)
def test_contiguous_lanes_are_recognised_in_any_dress(index: tuple[Expr, ...], contiguous: bool) -> None:
    """A 8 x 24 array: element [i, j * 8 + lane] and the like, for all i < 8 and j < 3."""
    w = Parameter("w", low=1)
    x = Buffer("x", FLOAT32, (Const(LANES), w.var))
    y = Buffer("y", FLOAT32, (Const(LANES), Const(3), Const(LANES)))
    store = Store("y", (ROW, COLUMN, Ramp(Const(0), Const(1), LANES)), Load("x", index, FLOAT32))
    nest = For("i", Const(0), Const(LANES), For("j", Const(0), Const(3), store))
    kernel = Compiled(Kernel("dressed", (x,), (y,), (w,), nest))
    source = np.arange(LANES * 24, dtype=np.float32).reshape(LANES, 24)
    result = np.empty((LANES, 3, LANES), np.float32)
    assert kernel(source, result, w=24) == 0
    for i in range(LANES):
        for j in range(3):
            at = np.broadcast_arrays(*(lanes_by_hand(e, i, j) for e in index))
            assert result[i, j].tolist() == source[at[0], at[1]].tolist()
    assert (f"load <{LANES} x float>, ptr" in kernel.ir) == contiguous


def lanes_by_hand(e: Expr, i: int, j: int) -> NDArray:
    """The value of an index expression, as numpy computes it."""
    match e:
        case Const():
            return np.asarray(int(e.value))
        case Var():
            return np.asarray({"i": i, "j": j}[e.name])
        case Ramp():
            return lanes_by_hand(e.base, i, j) + lanes_by_hand(e.stride, i, j) * np.arange(e.lanes)
        case Broadcast():
            return np.repeat(lanes_by_hand(e.operand, i, j), e.lanes)
        case Binary():
            op = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "mod": np.mod}[e.op]
            return op(lanes_by_hand(e.left, i, j), lanes_by_hand(e.right, i, j))
    raise AssertionError(e)


@pytest.mark.parametrize(("outer", "inner", "divided"), [(7, 7, False), (7, 5, True), (5, 5, True)])
def test_a_joined_loop_is_an_offset_by_itself(outer: int, inner: int, divided: bool) -> None:
    """Row p // 7 and column p % 7 of rows of 7 lie p elements from the start; rows by other sizes do not."""
    p, count = b.var("p"), 21
    x, y = Buffer("x", FLOAT32, (Const(2), Const(8), Const(7))), Buffer("y", FLOAT32, (Const(count),))
    value = Load("x", (Const(1), b.floordiv(p, outer), b.mod(p, inner)), FLOAT32)
    kernel = Compiled(Kernel("joined", (x,), (y,), (), For("p", Const(0), Const(count), Store("y", (p,), value))))
    source, result = np.arange(2 * 8 * 7, dtype=np.float32).reshape(2, 8, 7), np.empty(count, np.float32)
    assert kernel(source, result) == 0
    assert result.tolist() == [source[1, n // outer, n % inner] for n in range(count)]
    assert (" ashr " in kernel.ir or "div " in kernel.ir) == divided


@pytest.mark.parametrize("seed", range(20))
def test_row_major_addresses_with_sizes_known_late(seed: int) -> None:
    """Random affine indices into a 3-D array with symbolic, constant and composite sizes."""
    rng = np.random.default_rng(seed)
    h, w = Parameter("h", low=1), Parameter("w", low=1)
    shape = (b.add(h.var, 2), b.mul(w.var, 3), b.add(b.mul(h.var, w.var), 1))
    x = Buffer("x", INT32, shape)
    sizes = {"h": int(rng.integers(1, 5)), "w": int(rng.integers(1, 5))}
    extents = (sizes["h"] + 2, sizes["w"] * 3, sizes["h"] * sizes["w"] + 1)
    y = Buffer("y", INT32, shape)
    i, j, k = (b.var(v) for v in "ijk")
    flipped = tuple(b.sub(b.sub(n, 1), v) if rng.random() < 0.5 else v for n, v in zip(shape, (i, j, k), strict=True))
    body = Store("y", (i, j, k), Load("x", flipped, INT32))
    nest = For("i", Const(0), shape[0], For("j", Const(0), shape[1], For("k", Const(0), shape[2], body)))
    kernel = Compiled(Kernel("moves", (x,), (y,), (h, w), nest))
    source = Guarded(int(np.prod(extents)), np.int32).array.reshape(extents)
    source[:] = rng.integers(-9, 9, extents)
    result = Guarded(int(np.prod(extents)), np.int32).array.reshape(extents)
    assert kernel(source, result, **sizes) == 0
    turned = tuple(slice(None, None, 1 if isinstance(e, Var) else -1) for e in flipped)
    assert np.array_equal(result, source[turned]), f"seed {seed}: sizes {sizes}, indices {flipped}"


@pytest.mark.parametrize(
    ("store", "message"),
    [
        (Store("x", (Const(0),), Const(0.0, Type(FLOAT32))), "buffer x is stored to, but it is read only"),
        (Store("y", (Const(0),), Const(0)), "a int64 is stored to y, at 1 lanes of float32"),
        (Store("y", (), Const(0.0, Type(FLOAT32))), "0 indices for the 1 dimensions of y"),
        (Store("z", (), Const(0.0, Type(FLOAT32))), "buffer z is not in scope"),
        (
            Store("y", (Const(0, Type(INT32)),), Const(0.0, Type(FLOAT32))),
            "an index of type int32 into y",
        ),
    ],
)
def test_broken_accesses_are_refused(store: Store, message: str) -> None:
    x, y = Buffer("x", FLOAT32, (Const(4),)), Buffer("y", FLOAT32, (Const(4),))
    with pytest.raises(InternalError, match=f"^{message}$"):
        emit(Kernel("broken", (x,), (y,), (), store), Target.generic())


PIECES = """
kernel pieces(x: float32[3, 257]) -> (y: float32[3]):
  for i in 0..3:
    alloc acc: float32[] register
    acc[] = 0.0f32
    for j in 0..257:
      acc[] = acc[] + x[i, j]
    y[i] = acc[]
"""


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_masked_loads_stay_masked_beside_masked_arithmetic(lanes: int) -> None:
    """Where registers are few LLVM takes what it folded apart again, and then forgets the mask."""
    steps = ["rfactor j 64 -> part", "partition j_o -1"]
    for loop, ends in (("j_l", ("j_u", "j_v")), ("part_i", ("part_u", "part_v"))):
        steps += [f"split {loop} {lanes} tail=exact -> {', '.join(ends)}", f"vectorize {ends[1]}", f"unroll {ends[0]}"]
    steps += [f"vectorize part_{n}" for n in (32, 16, 8, 4, 2)]
    kernel = parse_kernel(PIECES)
    legal = legalize(apply(kernel, parse_schedule("\n".join(steps))))
    x = np.arange(771, dtype=np.float32).reshape(3, 257)
    assert np.array_equal(run_kernel(legal, {"x": x}, {}, 1, guarded=True)["y"], x.sum(1))
