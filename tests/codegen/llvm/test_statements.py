"""Loops, branches, local buffers, threads, and what happens when memory runs out."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable

import numpy as np
import pytest

from opgen.codegen.llvm.emit import emit
from opgen.codegen.llvm.target import Target
from opgen.diagnostics import InternalError
from opgen.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT32, INT64
from opgen.loop import build as b
from opgen.loop.nodes import (
    Alloc,
    Barrier,
    Binary,
    Buffer,
    Compare,
    Const,
    For,
    If,
    Kernel,
    Let,
    Load,
    LoopKind,
    Parameter,
    Space,
    Stmt,
    Store,
    Type,
    Var,
)
from tests.codegen.llvm.jit import BODY, Compiled
from tests.codegen.llvm.kernels import tile

C = Const
OUT = Buffer("y", INT64, (C(16),))
N = Parameter("n")


def kernel(body: Stmt, *parameters: Parameter, out: Buffer = OUT, name: str = "k") -> Kernel:
    return Kernel(name, (), (out,), parameters, body)


def ran(body: Stmt, *parameters: Parameter, **values: int) -> list[int]:
    y = np.full(16, -1, np.int64)
    assert Compiled(kernel(body, *parameters))(y, **values) == 0
    return y.tolist()


def put(at: int | Var, value: object) -> Store:
    return Store("y", (b.index(at),), value)


@pytest.mark.parametrize(("start", "stop"), [(0, 3), (1, 4), (-2, 1), (3, 3)])
@pytest.mark.parametrize("branch", [False, True])
def test_multiples_of_an_innermost_loop_are_added_up(start: int, stop: int, branch: bool) -> None:
    """Also those that are only met in a branch; not of loops around it, of loops that begin anywhere, or small ones."""
    i, j = b.var("i"), b.var("j")
    place = b.add(b.sub(b.mul(j, 5), start * 5), i)
    body: Stmt = Store("y", (place,), b.add(b.mul(j, 7), b.mul(i, 3)))
    body = If(Compare("ne", j, C(2)), body) if branch else body
    nest = For("i", C(0), C(2), For("j", C(start), C(stop), body))
    want = [-1] * 16
    for row in range(2):
        for column in range(start, stop):
            if not branch or column != 2:
                want[5 * (column - start) + row] = 7 * column + 3 * row
    assert ran(nest) == want
    text = Compiled(kernel(nest)).ir
    assert ("mul i64 %i, 3" in text) == (start < stop)
    assert "mul i64 %j" not in text
    assert text.count(" = phi i64 ") == (4 if start < stop else 1)


def test_multiples_of_a_loop_that_begins_anywhere_are_products() -> None:
    nest = For("i", N.var, C(3), put(b.mul(b.var("i"), 5), b.mul(b.var("i"), 2)))
    assert ran(nest, N, n=1) == [2 * (n // 5) if n in (5, 10) else -1 for n in range(16)]
    text = Compiled(kernel(nest, N)).ir
    assert "mul i64 %i, 5" in text
    assert "mul i64 %i, 2" in text


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (3, 7), (5, 2), (-2, 1), (0, 16)])
def test_a_loop_runs_from_start_to_below_stop(start: int, stop: int) -> None:
    body = For("i", C(start), N.var, Store("y", (b.mod(b.var("i"), 16),), b.var("i")))
    want = [-1] * 16
    for i in range(start, stop):
        want[i % 16] = i
    assert ran(body, N, n=stop) == want
    constant = For("i", C(start), C(stop), Store("y", (b.mod(b.var("i"), 16),), b.var("i")))
    assert ran(constant) == want


def test_branches_and_lets() -> None:
    twice = Var("twice")
    body = Let(
        twice,
        b.add(N.var, N.var),
        If(Compare("gt", twice, C(10)), put(0, twice), b.block([put(1, b.mul(twice, 3)), put(2, N.var)])),
    )
    assert ran(body, N, n=6)[:3] == [12, -1, -1]
    assert ran(body, N, n=5)[:3] == [-1, 30, 5]
    assert ran(If(Compare("eq", N.var, C(1)), put(0, C(7))), N, n=0)[0] == -1


def test_a_let_is_computed_once_before_what_follows() -> None:
    """The load must not move behind the store that changes what it read."""
    old = Var("old")
    body = b.block([put(0, C(5)), Let(old, b.add(Load("y", (C(0),), INT64), 1), b.block([put(0, C(9)), put(1, old)]))])
    assert ran(body)[:2] == [9, 6]


def test_values_of_one_branch_are_not_used_in_the_other() -> None:
    square = b.mul(N.var, N.var)
    body = b.block([If(Compare("gt", N.var, C(0)), put(0, square), put(1, square)), put(2, square)])
    assert ran(body, N, n=3)[:3] == [9, -1, 9]
    assert ran(body, N, n=-3)[:3] == [-1, 9, 9]


def test_parameters_of_every_type() -> None:
    types = [BOOL, INT32, INT64, FLOAT16, BFLOAT16, FLOAT32, FLOAT64]
    values = [True, -5, 2**40 + 1, -1.5, 3.0, 0.1, 0.1]
    parameters = [Parameter(f"p{k}", t) for k, t in enumerate(types)]
    outputs = tuple(Buffer(f"y{k}", t, (C(1),)) for k, t in enumerate(types))
    body = b.block(Store(f"y{k}", (C(0),), p.var) for k, p in enumerate(parameters))
    compiled = Compiled(Kernel("parameters", (), outputs, tuple(parameters), body))
    widths = [np.bool_, np.int32, np.int64, np.uint16, np.uint16, np.float32, np.float64]
    arrays = [np.zeros(1, w) for w in widths]
    assert compiled(*arrays, **{p.name: v for p, v in zip(parameters, values, strict=True)}) == 0
    assert [a[0] for a in arrays] == [True, -5, 2**40 + 1, 0xBE00, 0x4040, np.float32(0.1), 0.1]


@pytest.mark.parametrize("space", ["heap", "stack", "register", "tile"])
@pytest.mark.parametrize("kind", ["serial", "tile"])
def test_local_buffers(space: Space, kind: LoopKind) -> None:
    """Tiles are memory where nothing that a matrix unit does is done to them."""
    local = Buffer("local", INT64, (C(4), C(4)), space)
    i, j = b.var("i"), b.var("j")
    fill = For("i", C(0), C(4), For("j", C(0), C(4), Store("local", (i, j), b.add(b.mul(i, 10), j)), kind), kind)
    turn = For(
        "i", C(0), C(4), For("j", C(0), C(4), Store("y", (b.add(b.mul(i, 4), j),), Load("local", (j, i), INT64)))
    )
    assert ran(b.alloc(local, b.block([fill, turn]))) == [10 * j + i for i in range(4) for j in range(4)]


def scratch(*shape: object, name: str = "local", then: Stmt | None = None) -> Alloc:
    """A heap buffer whose first element is used, so that it cannot be optimised away."""
    buffer = Buffer(name, INT64, tuple(shape), "heap")
    first = tuple(C(0) for _ in shape)
    use = b.block([Store(name, first, N.var), then or b.EMPTY, put(0, Load(name, first, INT64))])
    return b.alloc(buffer, If(Compare("gt", N.var, C(0)), use, put(1, C(1))))


@pytest.mark.parametrize("size", [2**60, 2**61, 2**62 + 1, 2**63 - 1, -1, -(2**63)])
def test_a_size_that_cannot_be_had_is_status_1(size: int) -> None:
    y = np.zeros(16, np.int64)
    assert Compiled(kernel(scratch(N.var), N))(y, n=size) == 1
    assert Compiled(kernel(scratch(C(size)), N))(y, n=1) == 1


@pytest.mark.parametrize("sides", [(2**32, 2**32), (2**31, 2**33), (3, 2**62), (-1, -1), (-1, 1), (2**20, 2**45)])
def test_a_size_whose_product_overflows_is_status_1(sides: tuple[int, int]) -> None:
    m = Parameter("m")
    compiled = Compiled(kernel(scratch(N.var, m.var), N, m))
    y = np.zeros(16, np.int64)
    assert compiled(y, n=sides[0], m=sides[1]) == 1
    assert compiled(y, n=3, m=5) == 0
    assert y[0] == 3


def test_empty_buffers_are_valid() -> None:
    assert ran(scratch(N.var), N, n=0)[:2] == [-1, 1]
    assert ran(scratch(C(0)), N, n=0)[:2] == [-1, 1]


class Counted:
    """malloc and free of a compiled module, counted; `fail_at` is the number of the allocation that fails."""

    def __init__(self, fail_at: int = -1) -> None:
        libc = ctypes.CDLL(None)
        libc.malloc.argtypes, libc.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
        libc.free.argtypes = [ctypes.c_void_p]
        self.live: set[int] = set()
        self.count = 0
        self.lock = threading.Lock()

        def malloc(size: int) -> int:
            with self.lock:
                self.count += 1
                if self.count - 1 == fail_at:
                    return 0
                block = int(libc.malloc(size))
                self.live.add(block)
                return block

        def free(block: int) -> None:
            with self.lock:
                self.live.remove(block)
            libc.free(block)

        self.malloc = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_size_t)(malloc)
        self.free = ctypes.CFUNCTYPE(None, ctypes.c_size_t)(free)

    def within(self, k: Kernel) -> Compiled:
        """The kernel with its allocator replaced."""
        own = {f: ctypes.cast(getattr(self, f), ctypes.c_void_p).value for f in ("malloc", "free")}

        class Replaced(Compiled):
            def edited(self, ir: str) -> str:
                for f, address in own.items():
                    ir = ir.replace(f"@{f}(", f"inttoptr (i64 {address} to ptr)(")
                return "\n".join(line for line in ir.splitlines() if "declare" not in line or "inttoptr" not in line)

        return Replaced(k)


NESTED = scratch(N.var, name="one", then=scratch(N.var, name="two", then=scratch(C(4), name="three")))


@pytest.mark.parametrize("fail_at", [0, 1, 2, 3])
def test_no_path_leaks(fail_at: int) -> None:
    counted = Counted(fail_at)
    y = np.zeros(16, np.int64)
    assert counted.within(kernel(NESTED, N))(y, n=8) == (1 if fail_at < 3 else 0)
    assert counted.count == min(fail_at + 1, 3)
    assert counted.live == set()


def split(body: object, context: int, begin: int, end: int, threads: int) -> None:
    """A parallel_for with a thread for each range."""
    call = BODY(body)
    step = -(-(end - begin) // threads)
    ranges = [(a, min(a + step, end)) for a in range(begin, end, step)]
    workers = [threading.Thread(target=call, args=(context, *r)) for r in ranges]
    for w in workers:
        w.start()
    for w in workers:
        w.join()


def parallel(body: Stmt, stop: object = None) -> For:
    return For("i", C(0), stop or C(16), body, "parallel")


@pytest.mark.parametrize("threads", [0, 1, 2, 3, 16])
def test_a_parallel_loop_does_every_iteration_once(threads: int) -> None:
    scale, row = Parameter("scale", FLOAT32), Buffer("row", INT64, (N.var,), "heap")
    i, j = b.var("i"), b.var("j")
    base = Var("base")
    fill = For("j", C(0), N.var, Store("row", (j,), b.mul(j, j)))
    value = b.add(b.add(Load("row", (i,), INT64), base), b.cast(INT64, scale.var))
    body = b.alloc(row, b.block([fill, Let(base, b.mul(N.var, 100), parallel(put(i, value), N.var))]))
    compiled = Compiled(kernel(body, N, scale))
    calls: list[int] = []

    def recorded(body: object, context: int, begin: int, end: int, count: int) -> None:
        calls.append(count)
        split(body, context, begin, end, count)

    y = np.zeros(16, np.int64)
    assert compiled(y, parallel_for=recorded, threads=threads, n=16, scale=3.0) == 0
    assert y.tolist() == [k * k + 1603 for k in range(16)]
    assert calls == ([threads] if threads > 1 else [])
    assert compiled(y, threads=threads, n=0, scale=0.0) == 0


def test_without_parallel_for_the_loop_runs_here() -> None:
    y = np.zeros(16, np.int64)
    assert Compiled(kernel(parallel(put(b.var("i"), b.var("i")))))(y, threads=8) == 0
    assert y.tolist() == list(range(16))


def test_inner_parallel_loops_run_serially() -> None:
    i, j = b.var("i"), b.var("j")
    inner = For("j", C(0), C(4), Store("y", (b.add(b.mul(i, 4), j),), b.add(b.mul(i, 10), j)), "parallel")
    calls: list[tuple[int, int]] = []

    def recorded(body: object, context: int, begin: int, end: int, count: int) -> None:
        calls.append((begin, end))
        split(body, context, begin, end, count)

    y = np.zeros(16, np.int64)
    assert Compiled(kernel(For("i", C(0), C(4), inner, "parallel")))(y, parallel_for=recorded, threads=2) == 0
    assert y.tolist() == [10 * i + j for i in range(4) for j in range(4)]
    assert calls == [(0, 4)]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("fail_at", [0, 1, 5, 16, 99])
def test_out_of_memory_in_a_parallel_body_reaches_the_caller(fail_at: int, threads: int) -> None:
    own = Buffer("own", INT64, (N.var,), "heap")
    i = b.var("i")
    use = b.block([Store("own", (C(0),), i), put(i, Load("own", (C(0),), INT64))])
    outer = scratch(C(2), name="outer", then=parallel(b.alloc(own, use)))
    counted = Counted(fail_at)
    compiled = counted.within(kernel(outer, N))
    y = np.zeros(16, np.int64)
    status = compiled(y, parallel_for=split, threads=threads, n=4)
    assert status == (1 if fail_at <= 16 else 0)
    assert counted.live == set()
    if status == 0:
        assert y.tolist() == [4, *range(1, 16)]


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("target", ["generic", "host"])
def test_a_register_tile_gives_the_same_bits_for_any_number_of_threads(threads: int, target: str) -> None:
    sizes = {"rows": 5, "columns": 14, "depth": 3, "width": 32, "window": 3, "positions": 7, "vectors": 2}
    rng = np.random.default_rng(0)
    x = rng.integers(-8, 8, (7, 16, 3)).astype(np.float32)
    w = rng.integers(-8, 8, (3, 3, 3, 32)).astype(np.float32)
    want = sum(np.einsum("pqd,dk->pqk", x[r : r + 5, s : s + 14], w[r, s]) for r in range(3) for s in range(3))
    y = np.full((5, 14, 32), np.nan, np.float32)
    compiled = Compiled(tile(**sizes, parallel=True), Target.from_name(target))
    assert compiled(x, w, y, parallel_for=split, threads=threads) == 0
    assert np.array_equal(y, want)


@pytest.mark.parametrize("kind", ["unroll", "vector", "block.x", "thread.y"])
def test_loops_that_should_be_gone_are_refused(kind: LoopKind) -> None:
    with pytest.raises(InternalError, match=f"^a loop of kind {kind} reached the CPU emitter$"):
        emit(kernel(For("i", C(0), C(2), put(0, C(1)), kind)), Target.generic())


def shared() -> Stmt:
    return b.alloc(Buffer("s", INT64, (C(4),), "shared"), put(0, C(1)))


def growing() -> Stmt:
    return b.alloc(Buffer("s", INT64, (N.var,), "stack"), put(0, C(1)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Barrier, "a barrier reached the CPU emitter"),
        (shared, "an allocation in space shared reached the CPU emitter"),
        (growing, "buffer s in space stack has no constant size"),
        (lambda: If(Binary("add", N.var, C(1)), put(0, C(1))), "a condition of type int64"),
        (lambda: put(0, Const(1, Type(INT32))), "a int32 is stored to y, at 1 lanes of int64"),
    ],
)
def test_what_a_cpu_does_not_have_is_refused(make: Callable[[], Stmt], message: str) -> None:
    with pytest.raises(InternalError, match=f"^{message}$"):
        emit(kernel(make(), N), Target.generic())
