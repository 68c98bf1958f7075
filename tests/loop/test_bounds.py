"""The prover: conditions it must prove, conditions it must not, and that what it proves is true."""

from __future__ import annotations

import dataclasses
import itertools
import random
import time
from collections.abc import Iterator

import pytest

from opgen.dtypes import DTYPES
from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context, kept_proofs
from opgen.loop.analysis.intervals import UNBOUNDED, floor_divide
from opgen.loop.analysis.scopes import walk_kernel
from opgen.loop.nodes import INDEX, Binary, Compare, Const, Expr, For, Load, Store, Var
from opgen.loop.parse import parse_expr, parse_kernel
from opgen.loop.print import print_expr
from tests.loop.oracle import value
from tests.support.integers import random_integer


def at_the_end(parameters: str, lines: list[str], condition: str) -> tuple[Context, Expr]:
    """The context inside nested lines, and a condition parsed there.

    Parameters are names; `x` is any integer, `x+` not negative, `x++` positive.
    """
    low = {"": "", "+": " in [0, inf]", "++": " in [1, inf]"}
    header = []
    for word in parameters.split():
        name = word.rstrip("+")
        header.append(f"{name}: int64{low[word[len(name) :]]}")
    text = f"kernel f({', '.join([*header, 'flag: bool', 'idx: int64[100]'])}) -> (b: bool[1]):\n"
    indent = "    "
    for line in [*lines, f"b[0] = {condition}"]:
        text += f"{indent}{line}\n"
        indent += "    " if line.endswith(":") else ""
    kernel = parse_kernel(text)
    ((store, context),) = [(s, c) for s, c in walk_kernel(kernel) if isinstance(s, Store)]
    assert isinstance(store, Store)
    return context, store.value


MUST_PROVE = [
    ("n+", ["for i in 0 .. n:"], "0 <= i and i <= n - 1 and n >= 1"),
    ("G+ GO+ groups+", ["for g in 0 .. groups:", "for k in 0 .. GO:"], "g*GO + k < groups*GO and 0 <= g*GO + k"),
    (
        "n+ s++ d++ H++ R++ top",
        ["for y in 0 .. n:", "for r in 0 .. R:", "if 0 <= y*s + r*d - top and y*s + r*d - top < H:"],
        "0 <= y*s + r*d - top and r*d + y*s - top <= H - 1 and y*s + r*d - top < H + 5",
    ),
    ("K+", ["for ko in 0 .. K // 16:", "for ki in 0 .. 16:"], "ko*16 + ki < K and 0 <= ko*16 + ki"),
    ("K+", ["for ko in 0 .. (K + 15) // 16:", "for ki in 0 .. 16:", "if ko*16 + ki < K:"], "ko*16 + ki < K"),
    ("K+", ["for ko in 0 .. (K + 15) // 16:", "for ki in 0 .. min(16, K - ko*16):"], "ko*16 + ki < K and ki < 16"),
    ("K", ["assume K >= 16", "for o in 0 .. (K + 15) // 16:", "for i in 0 .. 16:"], "min(o*16, K - 16) + i < K"),
    ("K", ["assume K >= 16", "for o in 0 .. (K + 15) // 16:", "for i in 0 .. 16:"], "min(o*16, K - 16) + i >= 0"),
    ("n+", ["for o in 0 .. n // 7:", "for t in 0 .. 7:", "for v in 0 .. 2:"], "(o*7 + t)*32 + v*16 + 15 < n*32"),
    ("e c++", [], "e == (e // c)*c + e % c and 0 <= e % c and e % c < c"),
    ("e", [], "e % 16 < 16 and e % 16 >= 0 and e // 16 * 16 <= e and e // 16 * 16 > e - 16"),
    ("a+ b+", ["for i in 0 .. min(a, b):"], "i < a and i < b and i < min(a, b)"),
    ("a+ b+", ["for i in max(a, b) .. a + b:"], "i >= a and i >= b and i >= max(a, b)"),
    ("n", ["let q: int64 = max(0, n)", "for i in 0 .. q:"], "i < n"),
    ("H+ s++ d++ R++", ["for y in 0 .. (H - ((R - 1)*d + 1) + s) // s:", "for r in 0 .. R:"], "y*s + r*d < H"),
    (
        "s++ H++",
        ["let q: int64 = (H + s - 1) // s", "for z in 0 .. q:", "for p in 0 .. s:", "if z*s + p < H:"],
        "z*s + p < H and z <= q - 1",
    ),
    ("C++ D++", ["assume C % D == 0", "for g in 0 .. C // D:", "for c in 0 .. D:"], "g*D + c < C"),
    ("C++ G++ D++", ["assume C == G*D", "for g in 0 .. G:", "for c in 0 .. D:"], "g*D + c < C"),
    ("", ["for f in 0 .. 56:"], "f // 14 % 2 * 64 + f // 28 * 32 + 31 < 128 and f // 14 % 2 * 64 + f // 28 * 32 >= 0"),
    (
        "n++",
        ["for p in 0 .. (n*n + 3) // 4:", "for q in 0 .. 4:", "if p*4 + q < n*n:"],
        "(p*4 + q) // n * 2 + (p*4 + q) % n >= 0",
    ),
    ("N++ H++ W++", ["for f in 0 .. N*H*W:"], "f // (H*W) < N and f // W % H < H and f % W < W and f // W % H >= 0"),
    (
        "s++ H++ p+ t",
        ["for z in 0 .. H:", "if (z + p) % s == 0:", "if 0 <= z + p and (z + p) // s < t:"],
        "(z + p) // s >= 0 and (z + p) // s < t and s * ((z + p) // s) == z + p",
    ),
    ("n", ["let q: int64 = select(n > 3, n, 3)"], "q >= 3 and q >= n"),
    ("a+ b+", ["let q: int64 = select(flag, a, b + 1)"], "q >= 0 and q <= a + b + 1"),
    ("n", ["if n != 0 and n >= 0:"], "n >= 1 and n != 0"),
    ("n", ["if not (n < 3 or n > 5):"], "n >= 3 and n <= 5 and (n == 3 or n >= 4)"),
    ("n", ["if flag and n > 2:"], "flag and n > 2"),
    ("n", ["if not flag:"], "not flag"),
    ("n+", ["for i in 0 .. n:", "let j: int64 = i + 1", "let k: int64 = j * 2:"], "k <= 2 * n and k >= 2"),
    ("", ["for a in 0 .. 14:", "for c in 0 .. 56:", "for d in 0 .. 3:"], "a*4 + c*896 + d*17 <= 49366 and a + c >= 0"),
    ("x", ["if x > 3:", "if x < 2:"], "x == 100"),
    ("n+", ["for i in 0 .. n:"], "ramp(i * 16, 1, 16) < broadcast(n * 16, 16)"),
    ("a b", ["if a <= b:"], "a < b or a == b"),
    ("n", ["if idx[3] < n:"], "idx[3] <= n"),
    (
        "c++ n+",
        ["for f in 0 .. n * ((c + 31) // 32):", "if c % 32 == 0:", "for i in 0 .. 2:"],
        "f % ((c + 31) // 32) * 32 + i * 16 + 15 < c",
    ),
]


@pytest.mark.parametrize(("parameters", "lines", "condition"), MUST_PROVE)
def test_conditions_that_must_be_proved(parameters: str, lines: list[str], condition: str) -> None:
    context, parsed = at_the_end(parameters, lines, condition)
    lanes = context.with_lanes(parsed.type.lanes)
    assert lanes.proves(parsed)


CANNOT_PROVE = [
    ("K+", ["for ko in 0 .. (K + 15) // 16:", "for ki in 0 .. 16:"], "ko*16 + ki < K"),
    ("n", ["for i in 0 .. n:"], "i < n - 1"),
    ("n s d H R top", ["for y in 0 .. n:", "for r in 0 .. R:"], "y*s + r*d - top >= 0"),
    ("a b", ["for i in 0 .. max(a, b):"], "i < a"),
    ("e c", [], "e % c >= 0"),
    ("x", ["if x > 3 or flag:"], "x > 3"),
    ("x", ["if not (x > 3 and flag):"], "x <= 3"),
    ("n", ["if b[0]:"], "b[0]"),
    ("n", ["if flag:"], "not flag"),
]


@pytest.mark.parametrize(("parameters", "lines", "condition"), CANNOT_PROVE)
def test_conditions_that_need_not_hold(parameters: str, lines: list[str], condition: str) -> None:
    context, parsed = at_the_end(parameters, lines, condition)
    assert not context.proves(parsed)


def test_what_is_loaded_from_memory_that_changes_is_not_remembered() -> None:
    context = Context().with_condition(parse_expr("t[0] < 3", {}, {"t": INDEX.dtype}))
    assert not context.proves(parse_expr("t[0] < 3", {}, {"t": INDEX.dtype}))


INTERVALS = [
    ("", ["for i in 0 .. 10:", "for j in 2 .. 5:"], "i * 3 - j", (-4, 25)),
    ("", ["for i in 0 .. 100:"], "i % 16", (0, 15)),
    ("", ["for i in 0 .. 100:"], "i // 16", (0, 6)),
    ("n+", ["for i in 0 .. n:"], "i + 1", (1, None)),
    ("n", ["for i in n .. n + 16:"], "i - n", (0, 15)),
    ("n", [], "min(n, 5) + max(3, 4)", (None, 9)),
    ("a", ["if a > 2 and a < 9:"], "a * a", (9, 64)),
    ("a", [], "a", (None, None)),
]


@pytest.mark.parametrize(("parameters", "lines", "text", "expected"), INTERVALS)
def test_intervals(parameters: str, lines: list[str], text: str, expected: tuple[int | None, int | None]) -> None:
    context, condition = at_the_end(parameters, lines, f"{text} < 0")
    assert isinstance(condition, Compare)
    assert context.interval(condition.left) == expected


# Soundness ---------------------------------------------------------------------------------------


class Place:
    """A random place in a random program: variables with ranges, loops, conditions; and every state that reaches it."""

    def __init__(self, rng: random.Random) -> None:
        self.names = ["a", "b"]
        self.context = Context()
        for name in self.names:
            self.context = self.context.with_loop(name, Const(-3), Const(5))
        self.steps: list[For | Expr] = []
        for number in range(rng.randint(1, 3)):
            if rng.random() < 0.6:
                name = f"i{number}"
                start, stop = (random_integer(rng, self.names, 2) for _ in range(2))
                start = start if rng.random() < 0.4 else Const(0)
                self.steps.append(For(name, start, stop, b.EMPTY))
                self.context = self.context.with_loop(name, start, stop)
                self.names.append(name)
            else:
                condition = random_condition(rng, self.names)
                self.steps.append(condition)
                self.context = self.context.with_condition(condition)

    def states(self) -> Iterator[dict[str, int]]:
        for x, y in itertools.product(range(-3, 5), repeat=2):
            yield from self._from({"a": x, "b": y}, 0)

    def _from(self, state: dict[str, int], number: int) -> Iterator[dict[str, int]]:
        if number == len(self.steps):
            yield state
            return
        step = self.steps[number]
        if not isinstance(step, For):
            if value(step, state):
                yield from self._from(state, number + 1)
            return
        start, stop = value(step.start, state), value(step.stop, state)
        for i in range(start, min(stop, start + 6)):
            yield from self._from({**state, step.var: i}, number + 1)

    def __str__(self) -> str:
        shown = [
            f"{s.var} in {print_expr(s.start)} .. {print_expr(s.stop)}" if isinstance(s, For) else print_expr(s)
            for s in self.steps
        ]
        return "; ".join(["a, b in -3 .. 5", *shown])


def random_condition(rng: random.Random, names: list[str]) -> Expr:
    op = rng.choice(("lt", "le", "gt", "ge", "eq", "ne"))
    made = b.compare(op, random_integer(rng, names, 2), random_integer(rng, names, 2))
    match rng.randint(0, 5):
        case 0:
            return b.both(made, random_condition(rng, names))
        case 1:
            return b.either(made, random_condition(rng, names))
        case 2:
            return b.negate(made)
    return made


@pytest.mark.parametrize("seed", range(16))
def test_what_is_proved_is_true(seed: int) -> None:
    rng = random.Random(seed)
    proved = 0
    for _ in range(12):
        place = Place(rng)
        states = list(itertools.islice(place.states(), 400))
        for _ in range(8):
            condition = random_condition(rng, place.names)
            if not place.context.proves(condition, fuel=120):
                continue
            proved += 1
            for state in states:
                assert value(condition, state), (
                    f"seed {seed}: {place}: proved {print_expr(condition)}, false at {state}"
                )
    assert proved > 3


@pytest.mark.parametrize("seed", range(12))
def test_intervals_hold_every_value(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(10):
        place = Place(rng)
        states = list(itertools.islice(place.states(), 300))
        for _ in range(5):
            e = random_integer(rng, place.names, 3)
            low, high = place.context.interval(e)
            for state in states:
                found = value(e, state)
                shown = f"seed {seed}: {place}: {print_expr(e)} is {found} at {state}, not in [{low}, {high}]"
                assert low is None or low <= found, shown
                assert high is None or found <= high, shown


def test_constant_bounds_are_proved_fast() -> None:
    context = Context()
    index: Expr = Const(0)
    for number in range(12):
        context = context.with_loop(f"i{number}", Const(0), Const(7))
        index = b.add(b.mul(index, 7), Var(f"i{number}", INDEX))
    start = time.perf_counter()
    for _ in range(20):
        assert context.proves(b.both(b.compare("le", 0, index), b.compare("lt", index, 7**12)))
    assert time.perf_counter() - start < 1.0


def test_while_proofs_are_kept_kernels_that_differ_in_their_bodies_share_a_context() -> None:
    kernel = parse_kernel(
        "kernel f(n: int64 in [1, inf]) -> (y: float32[n]):\n    for i in 0 .. n:\n        y[i] = 1.0f32\n"
    )
    other = dataclasses.replace(kernel, body=b.EMPTY)
    with kept_proofs():
        first = Context.of(kernel)
        with kept_proofs():
            assert Context.of(other) is first
        assert Context.of(other) is first
        assert Context.of(dataclasses.replace(kernel, parameters=())) is not first
    assert Context.of(kernel) is not first


def test_what_was_asked_before_does_not_change_an_answer() -> None:
    lines = ["for i in 0 .. n:", "if i * d + d <= m:"]
    questions = ("i * d < m", "(i + 1) * d - 1 < m", "i < n + d", "i * d + 1 < m", "d <= m", "i * i * d <= m * n")
    alone = [Context.proves(*at_the_end("n++ m++ d++", lines, q), 12) for q in questions]
    for order in (questions, questions[::-1]):
        context, _ = at_the_end("n++ m++ d++", lines, order[0])
        asked = {q: context.proves(at_the_end("n++ m++ d++", lines, q)[1], 12) for q in order}
        assert [asked[q] for q in questions] == alone


def test_quotients_by_no_number_are_not_known() -> None:
    """Where a loop is never run its conditions contradict each other."""
    assert floor_divide((0, 5), (1, 0)) == UNBOUNDED
    assert floor_divide((0, 5), (2, 4)) == (0, 2)


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "uint64"])
def test_sums_of_elements_may_wrap(dtype: str) -> None:
    """What is proved of indices is not true of integers in memory; conditions on them as they are do count."""
    x = Load("x", (Var("i"),), DTYPES[dtype])
    one = Const(1, x.type)
    inside = Context.of(parse_kernel(f"kernel k(x: {dtype}[n], n: int64 in [1, inf]) -> ():\n  pass\n")).with_loop(
        "i", Const(0), Var("n")
    )
    assert not inside.proves(Compare("lt", x, Binary("add", x, one)))
    assert not inside.proves(Compare("le", Binary("sub", x, one), x))
    if dtype == "int64":  # they differ all the same
        assert inside.proves(Compare("ne", Binary("add", x, one), x))
        assert not inside.proves(Compare("le", Binary("max", Binary("add", x, one), x), Binary("add", x, one)))
    known = inside.with_condition(Compare("lt", x, Const(60, x.type)))
    assert known.proves(Compare("le", x, Const(59, x.type)))
    assert not known.proves(Compare("lt", Binary("mul", x, Const(2, x.type)), Const(120, x.type)))


def test_casts_have_the_range_of_what_they_keep() -> None:
    kernel = parse_kernel("kernel k(x: int8[n], y: uint8[n], n: int64 in [1, inf]) -> ():\n  pass\n")
    inside = Context.of(kernel).with_loop("i", Const(0), Var("n"))
    x, y = Load("x", (Var("i"),), DTYPES["int8"]), Load("y", (Var("i"),), DTYPES["uint8"])
    assert inside.interval(b.cast(DTYPES["int64"], x)) == (-128, 127)
    assert inside.interval(b.cast(DTYPES["int32"], y)) == (0, 255)
    assert inside.interval(b.cast(DTYPES["uint16"], x)) == (0, 65535)
    assert inside.interval(b.cast(DTYPES["int64"], b.cast(DTYPES["uint64"], x))) == UNBOUNDED
