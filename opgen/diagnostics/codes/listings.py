"""Codes of the texts that opgen prints and reads back: loop IR, schedules, graphs."""

from __future__ import annotations

from opgen.diagnostics.codes.code import Code

LISTINGS = (
    Code(
        "loop-syntax",
        "a listing of loop IR that does not follow the grammar",
        "The reader expected something else at this place, or a line is indented unlike its block.",
        """\
kernel f() -> ():
    for i in 0 ..
        pass
""",
        "Compare with what `opgen inspect OP --stage loop` prints.",
        "loop",
    ),
    Code(
        "loop-name",
        "an unknown variable or buffer in loop IR",
        "Names are known below the `for`, `let` or `alloc` that declares them; parameters, in the whole kernel.",
        """\
kernel f(n: int64) -> (output: float32[n]):
    outptu[0] = 1.0f32
""",
        "Correct the name, or declare it.",
        "loop",
    ),
    Code(
        "loop-type",
        "an unknown type in loop IR",
        "Types are the scalar types of specs, and vectors of them such as float32x8.",
        """\
kernel f() -> (y: flot32[1]):
    pass
""",
        "Write a scalar type, or one with a number of lanes.",
        "loop",
    ),
    Code(
        "loop-literal",
        "a constant that does not fit its type",
        "A constant without a suffix is an int64; others have one, as in 1.5f32. The number must fit the type.",
        """\
kernel f() -> (y: float32[1]):
    y[0] = 1.5
""",
        "Add the suffix of a type that holds the number.",
        "loop",
    ),
    Code(
        "loop-function",
        "an unknown function in loop IR",
        "Loop IR has a fixed set of functions; those of specs are expressed by them.",
        """\
kernel f(x: float32[1]) -> (y: float32[1]):
    y[0] = squirt(x[0])
""",
        "Use a function that listings have.",
        "loop",
    ),
    Code(
        "loop-arguments",
        "a wrong number of arguments in loop IR",
        "Every function of loop IR has a fixed number of arguments.",
        """\
kernel f() -> (y: float32[1]):
    y[0] = fma(1.0f32, 2.0f32)
""",
        "Give the number that the message names.",
        "loop",
    ),
    Code(
        "loop-lanes",
        "a wrong lane or number of lanes",
        "Lanes are counted from 0, and their numbers are written as integers.",
        """\
kernel f(n: int64, x: float32[1]) -> (y: float32[8]):
    y[ramp(0, 1, 8)] = broadcast(x[0], n)
""",
        "Write an integer in place of the expression.",
        "loop",
    ),
    Code(
        "loop-result",
        "a result that is not a buffer",
        "Kernels return nothing; they write to the buffers after the arrow.",
        """\
kernel f(x: float32) -> (n: int64):
    pass
""",
        "Declare a buffer, as in n: int64[1].",
        "loop",
    ),
    Code(
        "loop-bound",
        "a bound of a parameter that is not an integer",
        "The range of a parameter is two integers, or -inf and inf where it is open.",
        """\
kernel f(n: int64 in [few, inf]) -> (y: float32[n]):
    pass
""",
        "Write an integer, -inf or inf.",
        "loop",
    ),
    Code(
        "loop-space",
        "an unknown memory space",
        "A buffer is in one of the memory spaces of loop IR.",
        """\
kernel f() -> ():
    alloc a: float32[1] regster
    pass
""",
        "Name a known space, or none for the default.",
        "loop",
    ),
    Code(
        "loop-pass",
        "`pass` beside other statements",
        "`pass` is a block without statements.",
        """\
kernel f() -> ():
    pass
    barrier
""",
        "Remove `pass`.",
        "loop",
    ),
    Code(
        "loop-empty",
        "a `let` or `alloc` with nothing below it",
        "A declaration governs the lines that follow in its block.",
        """\
kernel f() -> ():
    alloc a: float32[1]
""",
        "Add the statements that use the name, or `pass`.",
        "loop",
    ),
    Code(
        "schedule",
        "a schedule that cannot be read, or a step that is not legal",
        "A schedule is a list of steps with arguments. Each checks that it keeps the meaning of the kernel.",
        """\
split x four
""",
        "Correct the step as specs/SCHEDULES.md describes it; the message has the reason.",
        "schedule",
    ),
    Code(
        "graph-syntax",
        "a text of a graph that cannot be read",
        "The reader expected something else at this place.",
        """\
graph g {
  input x float32[2]
}
""",
        "Compare with what `opgen inspect MODEL` prints.",
        "graph",
    ),
)
