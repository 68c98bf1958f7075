"""The verifier: each rule and its message; and the bounds of accesses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opgen.diagnostics import InternalError
from opgen.dtypes import FLOAT32, INT32
from opgen.loop.nodes import INDEX, Alloc, Block, Buffer, Const, For, Kernel, Parameter, Store, Type, Var
from opgen.loop.parse import parse_kernel
from opgen.loop.verify import problems, verify

HEADER = (
    "kernel f(x: float32[n, 16], h: float16[n], n: int64 in [0, inf], a: float32, q: int32, p: bool) "
    "-> (y: float32[n, 16]):\n"
)


def kernel(body: str) -> Kernel:
    return parse_kernel(HEADER + "".join(f"    {line}\n" for line in body.split("\n")))


def test_a_right_kernel_has_no_problems() -> None:
    body = (
        "parallel for i in 0 .. n:\n  alloc acc: float32[16] stack\n  for j in 0 .. 16:\n    acc[j] = x[i, j] + a\n"
        "  y[i, ramp(0, 1, 16)] = acc[ramp(0, 1, 16)]"
    )
    assert problems(kernel(body), bounds=True) == []
    verify(kernel(body), bounds=True)


PROBLEMS = [
    ("y[0, 0] = (m: float32)", "there is no variable 'm' here (in the body)"),
    ("let u: float64 = (a: float64)\npass", "variable 'a' is float32, used as float64 (in the body)"),
    ("for n in 0 .. 3:\n  pass", "the name 'n' is declared twice (in the body)"),
    ("for i in 0 .. 3:\n  for i in 0 .. 2:\n    pass", "the name 'i' is declared twice (in for i)"),
    ("y[0, 0] = a + 1", "'a + 1' combines float32 and int64 (in the body)"),
    ("y[0, 0] = float32(h[0] + h[1])", "'h[0] + h[1]' is arithmetic on float16; cast to float32 first (in the body)"),
    ("if h[0] < h[1]:\n  pass", "'h[0] < h[1]' is arithmetic on float16; cast to float32 first (in the body)"),
    ("y[0, 0] = a // a", "'a // a': floordiv is not for float32 (in the body)"),
    ("let u: int64 = n / n\npass", "'n / n': div is not for int64 (in the body)"),
    ("let u: bool = p + p\npass", "'p + p': add is not for bool (in the body)"),
    ("let u: int64 = exp(n)\npass", "'exp(n)': exp is not for int64 (in the body)"),
    ("y[0, 0] = select(n, a, a)", "the condition of 'select(n, a, a)' is int64, not bool (in the body)"),
    ("y[0] = a", "buffer 'y' has 2 dimensions, accessed by 1 indices (in the body)"),
    ("y[0, q] = a", "the index 'q' of buffer 'y' is int32, not int64 (in the body)"),
    ("y[0, 0 if n] = a", "the mask of an access to buffer 'y' is int64, not bool (in the body)"),
    (
        "y[0, ramp(0, 1, 4) if p] = broadcast(a, 4)",
        "the mask of an access to buffer 'y' is bool, not boolx4 (in the body)",
    ),
    ("y[0, 0] = broadcast(a, 4)", "1 elements of buffer 'y' are stored from 4 lanes (in the body)"),
    (
        "y[ramp(0, 1, 2), ramp(0, 1, 4)] = broadcast(a, 4)",
        "the index 'ramp(0, 1, 2)' of buffer 'y' has 2 lanes, others 4 (in the body)",
    ),
    ("y[0, 0] = 1", "buffer 'y' holds float32, accessed as int64 (in the body)"),
    ("x[0, 0] = a", "a store to the input 'x' (in the body)"),
    ("for i in 0 .. q:\n  pass", "the bound 'q' of loop 'i' is int32, not int64 (in the body)"),
    ("if n:\n  pass", "the condition 'n' is int64, not bool (in the body)"),
    ("let u: int32 = n\npass", "'u' is int32, its value int64 (in the body)"),
    (
        "parallel for i in 0 .. n:\n  parallel for j in 0 .. n:\n    pass",
        "the parallel loop 'j' stands in a parallel loop (in parallel for i)",
    ),
    (
        "block.x for i in 0 .. n:\n  block.x for j in 0 .. n:\n    pass",
        "the block.x loop 'j' stands in a block.x loop (in block.x for i)",
    ),
    (
        "thread.x for i in 0 .. n:\n  block.x for j in 0 .. n:\n    pass",
        "the block.x loop 'j' stands in a thread loop (in thread.x for i)",
    ),
    ("alloc t: float32[n] stack\npass", "buffer 't' in stack memory has no constant size (in the body)"),
    ("alloc t: float32[n] register\npass", "buffer 't' in register memory has no constant size (in the body)"),
    (
        "alloc t: float32[4] global\npass",
        "buffer 't' is allocated in global memory, which is for arguments (in the body)",
    ),
    (
        "alloc t: float32[4] shared\npass",
        "buffer 't' in shared memory is not allocated between block and thread loops (in the body)",
    ),
    (
        "block.x for i in 0 .. n:\n  alloc t: float32[4] register\n  thread.x for j in 0 .. 4:\n    t[j] = a",
        "buffer 't' in register memory is allocated outside the thread loops that use it (in block.x for i)",
    ),
    ("barrier", "a barrier outside block and thread loops (in the body)"),
    (
        "block.x for i in 0 .. n:\n  thread.x for j in 0 .. 4:\n    if j < 2:\n      barrier",
        "a barrier that some threads may not reach (in block.x for i > thread.x for j > if)",
    ),
    (
        "block.x for i in 0 .. n:\n  thread.x for j in 0 .. 4:\n    let k: int64 = j + 1\n    for l in 0 .. k:\n"
        "      barrier",
        "a barrier that some threads may not reach (in block.x for i > thread.x for j > for l)",
    ),
    ("prefetch h[a]", "the index 'a' of a prefetch is float32, not int64 (in the body)"),
    ("prefetch h[0, n]", "2 indices for the 1 dimensions of buffer 'h' (in the body)"),
    (
        "alloc t: float32[4] register\nprefetch t[0]",
        "a prefetch of 't', which is no argument (in the body)",
    ),
    ("let u: int32 = 3000000000i32\npass", "the constant 3000000000 does not fit int32 (in the body)"),
    ("let u: int64x4 = int64x4(n)\npass", "'int64x4(n)' changes the number of lanes from 1 (in the body)"),
    (
        "let u: int64 = bit_cast_int64(a)\npass",
        "'bit_cast_int64(a)' takes 64 bits from the 32 of float32 (in the body)",
    ),
    (
        "let u: float16 = bit_cast_float16(h[0])\npass",
        "'bit_cast_float16(h[0])': bit_cast is not for float16 (in the body)",
    ),
    ("let u: float32x4 = ramp(a, a, 4)\npass", "'ramp(a, a, 4)' is a ramp of float32, not of integers (in the body)"),
    (
        "let u: int64x2 = shuffle(ramp(n, 1, 2), ramp(n, 1, 2), 0, 4)\npass",
        "'shuffle(ramp(n, 1, 2), ramp(n, 1, 2), 0, 4)' picks a lane that two vectors of 2 do not have (in the body)",
    ),
    (
        "let u: int64x2 = shuffle(n, n, 0, 1)\npass",
        "'shuffle(n, n, 0, 1)' picks 2 of 1 lanes; a vector has at least 2 (in the body)",
    ),
    ("let u: int64 = broadcast(n, 1)\npass", "'broadcast(n, 1)' has 1 lanes; a vector has at least 2 (in the body)"),
]


@pytest.mark.parametrize(("body", "message"), PROBLEMS)
def test_broken_rules_are_named(body: str, message: str) -> None:
    assert [str(p) for p in problems(kernel(body))] == [message]


def test_an_expression_that_was_right_elsewhere_is_looked_at_again() -> None:
    """The same object in a loop, in another loop of the same name and type, and outside of both."""
    place = Var("i", INDEX)
    store = Store("y", (place, Const(0, INDEX)), Const(1.0, Type(FLOAT32)))
    loops = [For(name, Const(0, INDEX), Const(2, INDEX), store, "serial") for name in ("i", "i", "j")]
    y = Buffer("y", FLOAT32, (Const(2, INDEX), Const(1, INDEX)))
    kernel = Kernel("k", (), (y,), (), Block((*loops, store)))
    assert [str(p) for p in problems(kernel)] == [
        "there is no variable 'i' here (in for j)",
        "there is no variable 'i' here (in the body)",
    ]


def test_the_header_is_checked() -> None:
    good = kernel("y[0, 0] = a")
    twice = replace(good, parameters=(*good.parameters, Parameter("x")))
    assert [str(p) for p in problems(twice)] == ["the name 'x' is declared twice (in kernel f)"]
    bounded = replace(good, parameters=(*good.parameters, Parameter("b", FLOAT32, 0, 1)))
    assert [str(p) for p in problems(bounded)] == [
        "parameter 'b' is float32 and has bounds; only integers have (in kernel f)"
    ]
    shaped = replace(good, inputs=(*good.inputs, Buffer("w", FLOAT32, (Const(3, Type(INT32)),), "heap")))
    assert [str(p) for p in problems(shaped)] == [
        "the size '3i32' of buffer 'w' is int32, not int64 (in kernel f)",
        "argument 'w' is in heap memory, not global (in kernel f)",
    ]
    assumed = replace(good, assumptions=(Const(3),))
    assert [str(p) for p in problems(assumed)] == ["the assumption '3' is int64, not bool (in kernel f)"]
    named = replace(good, name="a-b")
    assert [str(p) for p in problems(named)] == ["'a-b' is no name (in kernel a-b)"]


def test_what_no_listing_can_say() -> None:
    store = Store("y", (Const(0), Const(0)), Const(1, Type(FLOAT32)))
    nested = replace(kernel("pass"), body=Block((Block((store,)), store)))
    assert [str(p) for p in problems(nested)] == [
        "a block stands directly in a block (in the body)",
        "the constant 1 is no float32 (in the body)",
    ]
    first, second = (Buffer(name, FLOAT32, (Const(4),), "heap") for name in "st")
    inside = replace(kernel("pass"), body=Alloc((first,), Alloc((second,), Block(()))))
    assert [str(p) for p in problems(inside)] == ["an allocation on the heap stands directly in another (in the body)"]
    mixed = replace(kernel("pass"), body=Alloc((first, replace(second, space="stack")), Block(())))
    assert [str(p) for p in problems(mixed)] == [
        "buffers of which not all are on the heap are allocated together (in the body)"
    ]
    twice = replace(kernel("pass"), body=Alloc((first, first), Block(())))
    assert [str(p) for p in problems(twice)] == ["a name is declared twice in an allocation (in the body)"]
    nothing = replace(kernel("pass"), body=Alloc((), Block(())))
    assert [str(p) for p in problems(nothing)] == ["an allocation of nothing (in the body)"]
    unknown = replace(kernel("pass"), body=Store("v", (), Const(1.0, Type(FLOAT32))))
    assert [str(p) for p in problems(unknown)] == ["there is no buffer 'v' here (in the body)"]


def test_verify_raises_with_every_problem() -> None:
    with pytest.raises(InternalError) as caught:
        verify(kernel("x[0, 0] = a + 1"))
    assert str(caught.value) == (
        "kernel 'f' breaks the rules of loop IR:\n"
        "  'a + 1' combines float32 and int64 (in the body)\n"
        "  a store to the input 'x' (in the body)"
    )


BOUNDS = [
    (
        "y[0, 0] = a",
        ["the index '0' of buffer 'y' is not proved to be below n (in a store to 'y')"],
    ),
    (
        "for i in 0 .. n:\n  y[i, ramp(i, 1, 4)] = broadcast(a, 4)",
        ["the index 'ramp(i, 1, 4)' of buffer 'y' is not proved to be below 16 (in a store to 'y')"],
    ),
    (
        "for i in 0 .. n:\n  y[i, 0] = x[i - 1, 0]",
        ["the index 'i - 1' of buffer 'x' is not proved to be at least 0 (in a store to 'y')"],
    ),
    (
        "for i in 0 .. n:\n  y[i, 0] = select(i > 0, x[i - 1, 0], a)",
        ["the index 'i - 1' of buffer 'x' is not proved to be at least 0 (in a store to 'y')"],
    ),
    ("if n // (n - 3) < 3:\n  pass", ["the divisor of 'n // (n - 3)' is not proved to differ from 0 (in a condition)"]),
    ("for i in 0 .. n:\n  if i > 0:\n    y[i, 0] = x[i - 1, 0]", []),
    ("for i in 0 .. n:\n  y[i, 0] = x[i - 1, 0 if i > 0]", []),
    ("for i in 0 .. n:\n  y[i, ramp(12, 1, 8) if ramp(12, 1, 8) < 16i64x8] = broadcast(a, 8)", []),
    ("for i in 0 .. n:\n  let j: int64x4 = ramp(0, 4, 4)\n  y[i, j + broadcast(3, 4)] = broadcast(a, 4)", []),
    ("if n > 3:\n  if n // (n - 3) < 3:\n    pass", []),
    ("for o in 0 .. n // 4:\n  alloc t: float32[n, 4] heap\n  for i in 0 .. 4:\n    t[o * 4 + i, i] = a", []),
]


@pytest.mark.parametrize(("body", "messages"), BOUNDS)
def test_bounds(body: str, messages: list[str]) -> None:
    assert [str(p) for p in problems(kernel(body), bounds=True)] == messages
