"""Listings: what is printed reads well and parses back, and mistakes are shown where they are."""

from __future__ import annotations

import math
import random
import textwrap

import pytest
from hypothesis import HealthCheck, given, settings

from opgen.diagnostics import Diagnostic, DiagnosticError, InternalError
from opgen.dtypes import BFLOAT16, BOOL, FLOAT32, FLOAT64, INT32, INT64
from opgen.loop.nodes import (
    INDEX,
    Barrier,
    Binary,
    BitCast,
    Block,
    Cast,
    Compare,
    Const,
    For,
    If,
    Kernel,
    Let,
    Load,
    Ramp,
    Select,
    Type,
    Unary,
    Var,
)
from opgen.loop.parse import parse_expr, parse_kernel
from opgen.loop.print import print_expr, print_kernel, print_stmt
from tests.loop.strategies import kernels

RELAXED = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
A, B, C = (Var(name) for name in "abc")
SCOPE = {"a": INDEX, "b": INDEX, "c": INDEX, "f": Type(FLOAT32), "v": Type(FLOAT32, 16), "p": Type(BOOL)}


@RELAXED
@given(kernels())
def test_every_kernel_parses_back(kernel: Kernel) -> None:
    assert parse_kernel(print_kernel(kernel)) == kernel


EXPRESSIONS = [
    (Binary("sub", A, Binary("sub", B, C)), "a - (b - c)"),
    (Binary("sub", Binary("sub", A, B), C), "a - b - c"),
    (Binary("mul", Binary("add", A, B), C), "(a + b) * c"),
    (Binary("floordiv", A, Binary("mod", B, C)), "a // (b % c)"),
    (Binary("min", Binary("add", A, B), C), "min(a + b, c)"),
    (Unary("neg", Binary("mul", A, B)), "-(a * b)"),
    (Binary("mul", Unary("neg", A), B), "-a * b"),
    (Unary("neg", Const(1)), "-(1)"),
    (Unary("neg", Const(-1)), "--1"),
    (Unary("neg", Unary("neg", Const(1))), "--(1)"),
    (Binary("sub", A, Const(-1)), "a - -1"),
    (Unary("not", Compare("lt", A, B)), "not a < b"),
    (Compare("eq", Unary("not", Var("p", Type(BOOL))), Const(True, Type(BOOL))), "(not p) == true"),
    (Compare("eq", Compare("lt", A, B), Compare("lt", B, C)), "(a < b) == (b < c)"),
    (Binary("and", Binary("or", A, B), C), "(a or b) and c"),
    (Binary("xor", A, Binary("and", B, C)), "a xor b and c"),
    (Const(3, Type(INT32)), "3i32"),
    (Const(-3, Type(INT64, 8)), "-3i64x8"),
    (Const(0.5, Type(FLOAT32, 16)), "0.5f32x16"),
    (Const(-0.0, Type(FLOAT64)), "-0.0f64"),
    (Const(1e-45, Type(FLOAT32)), "1e-45f32"),
    (Const(-math.inf, Type(BFLOAT16)), "-inf_bf16"),
    (Const(math.nan, Type(FLOAT32, 4)), "nan_f32x4"),
    (Const(True, Type(BOOL, 8)), "true_x8"),
    (Cast(Type(FLOAT64, 16), Var("v", Type(FLOAT32, 16))), "float64x16(v)"),
    (BitCast(Type(INT32, 16), Var("v", Type(FLOAT32, 16))), "bit_cast_int32x16(v)"),
    (Cast(Type(BOOL, 4), Const(1, Type(INT64, 4))), "boolx4(1i64x4)"),
    (Select(Compare("ge", A, B), A, B), "select(a >= b, a, b)"),
    (Ramp(A, Const(1), 16), "ramp(a, 1, 16)"),
    (Load("x", (A, Ramp(B, Const(1), 4)), FLOAT32, None), "x[a, ramp(b, 1, 4)]"),
    (Load("x", (A,), FLOAT32, Compare("lt", A, B)), "x[a if a < b]"),
    (Load("x", (), FLOAT32, None), "x[]"),
]


@pytest.mark.parametrize(("expr", "text"), EXPRESSIONS, ids=[t for _, t in EXPRESSIONS])
def test_expressions(expr: Binary, text: str) -> None:
    assert print_expr(expr) == text
    assert parse_expr(text, SCOPE, {"x": FLOAT32}) == expr


LISTING = """\
kernel scale(
    x: float32[n, 16],
    n: int64 in [0, 4096],
    `for`: float32,
    shift: int32 in [-inf, 7],
) -> (
    y: float32[n, 16],
):
    assume n % 4 == 0
    parallel for i in 0 .. n:
        alloc acc: float32[16] register
        alloc tile: float32[2, 8] tile:
            tile for half in 0 .. 2:
                tile for j in 0 .. 8:
                    tile[half, j] = 0.0f32
        unroll for j in 0 .. 16:
            acc[j] = x[i, j] * `for`
        let half: int64 = n // 2:
            y[half, 0] = acc[0]
        block:
            barrier
        if i < n - 1:
            y[i, ramp(0, 1, 16)] = acc[ramp(0, 1, 16)]
        else:
            pass
"""


def test_a_listing_prints_as_it_was_written() -> None:
    assert print_kernel(parse_kernel(LISTING)) == LISTING


def test_comments_blank_lines_and_line_ends_do_not_count() -> None:
    spaced = LISTING.replace(":\n", ":  # a comment\n\n").replace("\n", "\r\n")
    assert parse_kernel(spaced) == parse_kernel(LISTING)


def test_a_type_that_differs_from_the_declaration_is_shown() -> None:
    broken = Kernel("f", (), (), (), For("i", Const(0), Const(3), If(Var("i", Type(INT32)), Barrier())))
    text = "kernel f() -> ():\n    for i in 0 .. 3:\n        if (i: int32):\n            barrier\n"
    assert print_kernel(broken) == text
    assert parse_kernel(text) == broken


def test_statements_print_alone() -> None:
    assert print_stmt(Block((Let(A, B, Barrier()), Barrier()))) == "let a: int64 = b:\n    barrier\nbarrier"


def test_a_name_that_no_listing_can_hold_is_refused() -> None:
    with pytest.raises(InternalError, match="'a`b' cannot be a name in loop IR"):
        print_expr(Var("a`b"))


MISTAKES = [
    (
        "kernel f() -> ():\n    for i in 0 .. 3:\n        pass\n      pass",
        """\
        k:4:7: error[loop-syntax]: this line is indented unlike the blocks around it
           |
         4 |       pass
           |       ^""",
    ),
    (
        "kernel f(n: int64) -> (output: float32[n]):\n    outptu[0] = m",
        """\
        k:2:5: error[loop-name]: there is no buffer 'outptu' here
           |
         2 |     outptu[0] = m
           |     ^^^^^^
           = help: did you mean 'output'?

        k:2:17: error[loop-name]: there is no variable 'm' here
           |
         2 |     outptu[0] = m
           |                 ^""",
    ),
    (
        "kernel f() -> ():\n    for i in 0 ..",
        """\
        k:2:18: error[loop-syntax]: unexpected end of line
           |
         2 |     for i in 0 ..
           |                  ^
           = help: expected '(' or '-' or 'not' or a constant or a name""",
    ),
    (
        "kernel f() -> ():\n    pass $",
        """\
        k:2:10: error[loop-syntax]: unexpected character '$'
           |
         2 |     pass $
           |          ^
           = help: expected end of line""",
    ),
    (
        "kernel f() -> (y: flot32[1]):\n    pass",
        """\
        k:1:19: error[loop-type]: 'flot32' is no scalar type
           |
         1 | kernel f() -> (y: flot32[1]):
           |                   ^^^^^^
           = help: did you mean 'float32'?""",
    ),
    (
        "kernel f() -> (y: float32[1]):\n    y[0] = 1.5",
        """\
        k:2:12: error[loop-literal]: a constant that is no integer needs a floating type
           |
         2 |     y[0] = 1.5
           |            ^^^
           = help: for example 1.5f32""",
    ),
    (
        "kernel f() -> (y: float32[1]):\n    y[0] = fma(1, 2)",
        """\
        k:2:12: error[loop-arguments]: 'fma' takes 3 arguments, not 2
           |
         2 |     y[0] = fma(1, 2)
           |            ^^^^^^^^^""",
    ),
    (
        "kernel f() -> (y: float32[1]):\n    y[0] = shuffle(1, 2)",
        """\
        k:2:12: error[loop-arguments]: 'shuffle' takes two vectors and at least two lanes
           |
         2 |     y[0] = shuffle(1, 2)
           |            ^^^^^^^^^^^^^""",
    ),
    (
        "kernel f() -> ():\n    alloc a: float32[1] regster\n    pass",
        """\
        k:2:25: error[loop-space]: 'regster' is no memory space
           |
         2 |     alloc a: float32[1] regster
           |                         ^^^^^^^
           = help: did you mean 'register'?""",
    ),
    (
        "kernel f(x: float32) -> (n: int64):\n    pass",
        """\
        k:1:26: error[loop-result]: a kernel's results are buffers
           |
         1 | kernel f(x: float32) -> (n: int64):
           |                          ^^^^^^^^""",
    ),
]


@pytest.mark.parametrize(("text", "message"), MISTAKES)
def test_mistakes_are_shown_in_place(text: str, message: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        parse_kernel(text, "k")
    assert str(caught.value) == textwrap.dedent(message)


def test_deep_nesting_is_a_mistake_not_a_crash() -> None:
    with pytest.raises(DiagnosticError, match="this is nested too deeply"):
        parse_expr("(" * 5000 + "1" + ")" * 5000, {})


@pytest.mark.parametrize("seed", range(8))
def test_a_garbled_listing_never_crashes(seed: int) -> None:
    rng = random.Random(seed)
    pieces = [
        "(",
        ")",
        "[",
        "]",
        ":",
        "\n",
        " ",
        "    ",
        "if ",
        "`",
        "-",
        "1",
        "9" * 5000,
        "x" * 9,
        "\0",
        "é",
        "let ",
        "..",
    ]
    for _ in range(60):
        text = LISTING
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(text))
            text = text[:at] + rng.choice(pieces) + text[at + rng.randint(0, 6) :]
        for diagnostic in mistakes(text):
            assert diagnostic.span is not None, f"seed {seed}: {text}"


def mistakes(text: str) -> tuple[Diagnostic, ...]:
    try:
        parse_kernel(text)
    except DiagnosticError as error:
        return error.diagnostics
    return ()


@pytest.mark.parametrize("cut", range(0, len(LISTING), 7))
def test_a_cut_listing_never_crashes(cut: int) -> None:
    for text in (LISTING[:cut], LISTING[cut:], LISTING[:cut] + LISTING[cut + 5 :]):
        for diagnostic in mistakes(text):
            assert diagnostic.span is not None
