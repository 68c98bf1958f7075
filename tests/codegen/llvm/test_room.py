"""Buffers on the heap out of memory that the caller gives: no more of it than was said, each thread's apart."""

from __future__ import annotations

import ctypes
import threading

import numpy as np
import pytest

from opgen.codegen.llvm.compile import object_code
from opgen.codegen.llvm.emit import emit
from opgen.codegen.llvm.room import room_of
from opgen.codegen.llvm.target import Target
from opgen.dtypes import INT64
from opgen.loop import build as b
from opgen.loop.nodes import Buffer, Expr, For, Kernel, Load, Parameter, Stmt, Store
from opgen.runtime.kernels.run import evaluate
from opgen.runtime.native.library import load_library
from tests.codegen.llvm.jit import BODY, PARALLEL_FOR

N = Parameter("n", low=0)
GUARD = 0x5A


def C(value: int) -> Expr:
    return b.index(value)


def filled(name: str, shape: tuple[Expr, ...], factor: int, then: Stmt) -> Stmt:
    """A heap buffer whose element at (r, c) is `factor * r + c`, around what reads it."""
    r, c = b.var(f"{name}_r"), b.var(f"{name}_c")
    store = Store(name, (r, c), b.add(b.mul(r, factor), c))
    fill = For(r.name, C(0), shape[0], For(c.name, C(0), shape[1], store))
    return b.alloc(Buffer(name, INT64, shape, "heap"), b.block([fill, then]))


def kernel(rows: Expr, parameters: tuple[Parameter, ...]) -> Kernel:
    """Two buffers one after the other in the same place, of other shapes; one around a parallel loop, whose iterations
    have two each, one in the other.
    """
    i = b.var("i")
    first = filled("first", (rows, C(3)), 10, Store("y", (C(0),), Load("first", (C(1), C(2)), INT64)))
    second = filled("second", (C(2), rows), 100, Store("y", (C(1),), Load("second", (C(1), C(3)), INT64)))
    total = b.add(
        Load("own", (C(1), i), INT64), b.add(Load("inner", (C(1), C(0)), INT64), Load("around", (i, C(1)), INT64))
    )
    inner = filled("inner", (C(2), C(5)), 7, Store("y", (b.add(i, 2),), total))
    loop = For("i", C(0), rows, filled("own", (C(2), rows), 1000, inner), "parallel")
    around = filled("around", (rows, C(2)), 10000, loop)
    y = Buffer("y", INT64, (b.add(rows, 2),))
    return Kernel("roomy", (), (y,), parameters, b.block([first, second, around]))


EXPECTED = [12, 103, *(1000 + i + 7 + 10000 * i + 1 for i in range(20))]


def run(made: Kernel, threads: int, **parameters: int) -> list[int]:
    """The result for 20 rows; asserts that the kernel keeps to its room, and allocates nothing."""
    target = Target.host()
    text = emit(made, target, room=True)
    assert "@malloc" not in text
    needed = room_of(made)
    assert needed is not None
    shared, each = evaluate(needed.shared, parameters), evaluate(needed.each, parameters)
    memory = np.full(64 + shared + 64 + each * threads + 64, GUARD, np.uint8)
    start = memory.ctypes.data + -memory.ctypes.data % 64
    at = start - memory.ctypes.data
    parts = at + shared + 64
    y = np.zeros(22, np.int64)
    callback = PARALLEL_FOR(at_once)
    head = [ctypes.cast(callback, ctypes.c_void_p).value, threads, y.ctypes.data, *parameters.values()]
    words = np.array([*head, start, memory.ctypes.data + parts, each], np.int64)
    library = load_library(object_code(text, target, made.is_bound), "roomy")
    assert ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(library.address("roomy"))(words.ctypes.data) == 0
    outside = np.concatenate([memory[:at], memory[at + shared : parts], memory[parts + each * threads :]])
    assert (outside == GUARD).all()
    return y.tolist()


def at_once(body: int, context: int, begin: int, end: int, threads: int) -> None:
    """A parallel loop of `threads` threads, each of which takes piece after piece."""
    run_range, pieces = BODY(body), list(range(begin, end))

    def work() -> None:
        while pieces:
            try:
                i = pieces.pop()
            except IndexError:
                return
            run_range(context, i, i + 1)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()


@pytest.mark.parametrize("threads", [1, 2, 3, 64, 65, 130])
def test_sizes_that_are_numbers(threads: int) -> None:
    assert run(kernel(C(20), ()), threads) == EXPECTED


@pytest.mark.parametrize("threads", [1, 4])
def test_sizes_that_are_parameters(threads: int) -> None:
    assert run(kernel(N.var, (N,)), threads, n=20) == EXPECTED


def test_the_room_that_is_needed() -> None:
    needed = room_of(kernel(C(20), ()))
    assert needed is not None
    shared, each = (evaluate(e, {}) for e in (needed.shared, needed.each))
    assert shared == 512  # 20 * 3 numbers, more than 2 * 20 and 20 * 2, in whole lines
    assert each == 320 + 128  # 2 * 20 numbers, and 2 * 5 within


def test_a_size_that_only_the_kernel_knows() -> None:
    i = b.var("i")
    own = b.alloc(Buffer("own", INT64, (b.add(i, 1),), "heap"), Store("own", (C(0),), i))
    assert room_of(Kernel("grows", (), (), (), For("i", C(0), C(3), own))) is None
