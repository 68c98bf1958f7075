"""Numbers with which a kernel's integers would not fit are refused; with all others, the index is the exact one.

Random subscripts are called with attributes around 0, 1, 2**31 and beyond, on inputs between protected pages: an access
outside ends the process.
"""

from __future__ import annotations

import random
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import opgen
from opgen.diagnostics import InternalError
from opgen.diagnostics.calls import ArgumentValueError, CallMemoryError
from opgen.grad import load_text
from opgen.loop.interpret import interpret
from opgen.loop.nodes import Kernel
from opgen.lower import Variant, lower
from opgen.runtime.kernels.run import AnyArray
from opgen.runtime.memory.guard import guarded_copy
from tests.support.wide_terms import LARGE, Term, op_text, term


def _exact(python: str, i: int, a: int, b: int, n: int) -> int | None:
    """The value over the mathematical integers; None if there is none."""
    try:
        return int(eval(python, {"min": min, "max": max}, {"i": i, "a": a, "b": b, "n": n}))
    except ZeroDivisionError:
        return None


def _module(folder: Path, text: str, which: str) -> ModuleType:
    path = folder / f"limits_{which}.op"
    path.write_text(op_text("Look", text))
    return opgen.load(path)


def _interpreted(kernel: Kernel, x: AnyArray, a: int, b: int) -> list[float] | None:
    """What the interpreter gives; None where a side not taken divides by zero, which it refuses."""
    try:
        return [float(v) for v in interpret(kernel, {"x": x}, {"n": len(x), "a": a, "b": b})["y"]]
    except InternalError as error:
        if "divides an integer by zero" not in str(error):
            raise
        return None


def _answer(module: ModuleType, x: AnyArray, a: int, b: int) -> list[float] | str:
    try:
        return [float(v) for v in module.look(x, a=a, b=b)]
    except ArgumentValueError as error:
        return str(error)


@pytest.mark.parametrize("seed", range(40))
def test_random_subscripts(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(f"limits {seed}")
    text, python = term(rng, 3)
    general, special = (_module(tmp_path, text, which) for which in ("general", "special"))
    parsed = load_text(op_text("Look", text))
    kernel = lower(parsed, parsed.op("Look"), Variant({})).kernel
    for _ in range(8):
        a, b, n = rng.choice(LARGE), rng.choice(LARGE), rng.choice([1, 2, 5])
        plain = np.arange(1, n + 1, dtype=np.float32)
        x = guarded_copy(plain, rng.choice(["end", "start"]), read_only=True).array
        monkeypatch.setenv("OPGEN_SPECIALIZE", "never")
        found = _answer(general, x, a, b)
        monkeypatch.setenv("OPGEN_SPECIALIZE", "always")
        where = f"seed {seed}: x[{text}] with a = {a}, b = {b}, n = {n}"
        assert _answer(special, x, a, b) == found, where
        exact = [_exact(python, i, a, b, n) for i in range(n)]
        if isinstance(found, str):
            assert "expected numbers for which" in found, where
        else:
            assert all(e is not None for e in exact), where
            wanted = [float(plain[e]) if e is not None and 0 <= e < n else 7.0 for e in exact]
            assert found == wanted, where
            assert _interpreted(kernel, plain, a, b) in (wanted, None), where
        if max(abs(a), abs(b)) <= 7 and not any(e is None for e in exact) and "//" not in text and "%" not in text:
            big = any(str(c) in text for c in (2**31, 2**62, 2**63 - 1))
            assert big or not isinstance(found, str), f"{where}: {found}"


Guarded = tuple[str, str, list[str]]
"""A condition, its opposite, and integers that there are, and fit, where it holds."""

GUARDED: list[Guarded] = [
    ("a != 0", "a == 0", ["i // a", "n % a", "(i + b % 7) % a", "(i * 3) // a"]),
    ("i > 0", "i <= 0", ["a // i", "n // i", "b % i"]),
    ("a + i != 0", "a + i == 0", ["n // (a + i)"]),
    ("(-9 <= a and a < 9)", "(a < -9 or 9 <= a)", ["i * a * a * a", "min(i * a + a, n - 1)", "max(0, a * 2 - i)"]),
    ("(n > 1 and a >= 1 and a < 5)", "(n <= 1 or a < 1 or a >= 5)", ["n // a", "i * a", "(i * a) // a", "i % a"]),
]


def guarded(rng: random.Random) -> Term:
    """A value that takes an integer only where it makes sense; in Python as a function of what a place holds, `at`."""
    holds, fails, integers = rng.choice(GUARDED)
    place, other = rng.choice(integers), rng.choice(integers)
    reads: list[Term] = [
        (f"(x[{place}] else 7)", f"at({place}, 7)"),
        (f"(x[{place}] else (x[{other}] else 5))", f"at({place}, at({other}, 5))"),
        (f"sum[r < 2](x[{place} + r])", f"sum(at({place} + r, 0) for r in range(2))"),
        (f"sum[r < min(3, {place})](x[r])", f"sum(at(r, 0) for r in range(min(3, {place})))"),
        (f"sum[r if r < {place}](x[r])", f"sum(at(r, 0) for r in range(n) if r < {place})"),
        (f"(if {place} < {other} then x[i] else 4)", f"(at(i, 0) if {place} < {other} else 4)"),
    ]
    spec, python = rng.choice(reads)
    flag = rng.random() < 0.3
    side = "x[i]" if rng.random() < 0.5 else "3"
    here = "at(i, 0)" if side == "x[i]" else "3"
    extra, more = (" and x[i] > 1", " and at(i, 0) > 1") if flag else ("", "")
    forms: list[Term] = [
        (f"(if {holds}{extra} then {spec} else {side})", f"({python} if {holds}{more} else {here})"),
        (f"(if {fails} then {side} else {spec})", f"({here} if {fails} else {python})"),
        (f"(if {fails} or {spec} > 2 then 1 else {side})", f"(1 if {fails} or {python} > 2 else {here})"),
        (f"(if {holds} and {spec} > 2 then {spec} else 2)", f"({python} if {holds} and {python} > 2 else 2)"),
        (f"(if not ({fails}) then {spec} else 2)", f"({python} if not ({fails}) else 2)"),
    ]
    return rng.choice(forms)


def _place(x: AnyArray, i: int, otherwise: float) -> float:
    return float(x[i]) if 0 <= i < len(x) else otherwise


@pytest.mark.parametrize("seed", range(30))
def test_what_is_not_taken_need_not_make_sense(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(f"guarded {seed}")
    spec, python = guarded(rng)
    for index in "jk"[: rng.randrange(3)]:
        more, value = guarded(rng)
        spec, python = rng.choice([
            (f"{spec} + {more}", f"{python} + {value}"),
            (f"sum[{index} < 2]({spec} + T({index}) + {more})", f"sum({python} + j + {value} for j in (0, 1))"),
            (f"(if i < b then {spec} else {more})", f"({python} if i < b else {value})"),
        ])  # fmt: skip
    text = op_text("Look", "i").replace("{\n", "{\n  type T in {float32}\n", 1).replace("float32[n]", "T[n]")
    text = text.replace("(x[i] else 7) + float32", f"{spec} + T")
    (tmp_path / "taken.op").write_text(text)
    general, special = (opgen.load(tmp_path / "taken.op") for _ in range(2))
    parsed = load_text(text)
    kernel = lower(parsed, parsed.op("Look"), Variant({"T": "float32"})).kernel
    for _ in range(6):
        a, b, n = rng.choice([*range(-3, 7), 2**31, -(2**60), 2**61 - 9]), rng.randrange(-2, 4), rng.choice([1, 2, 5])
        plain = np.arange(1, n + 1, dtype=np.float32)
        x = guarded_copy(plain, rng.choice(["end", "start"]), read_only=True).array
        where = f"seed {seed}: {spec} with a = {a}, b = {b}, n = {n}"
        known = {"at": lambda i, y, x=plain: _place(x, i, y), "a": a, "b": b, "n": n, "min": min, "max": max}
        wanted = [float(eval(python, {**known, "i": i})) for i in range(n)]
        for policy, module in (("never", general), ("always", special)):
            monkeypatch.setenv("OPGEN_SPECIALIZE", policy)
            assert _answer(module, x, a, b) == wanted, f"{where}, {policy}"
        assert _interpreted(kernel, plain, a, b) == wanted, where


HUGE = """op Huge {
  input x: float32[n]
  attr k: int = 1
  output y: float32[n]
  let t[i, j] = (x[i] else 0) * float32(j) where i < k, j < k
  y[i] = sum[r < 2](t[i, i + r])
}
"""


def test_intermediates_beyond_all_memory(tmp_path: Path) -> None:
    (tmp_path / "huge.op").write_text(HUGE)
    huge = opgen.load(tmp_path / "huge.op").huge
    x = np.ones(3, np.float32)
    assert huge(x, k=4).tolist() == [1, 3, 5]
    said = "Huge: argument 'k': expected numbers for which 't' of sizes [k, k] takes less than 281474976710656 bytes, "
    with pytest.raises(ArgumentValueError, match=f"^{re.escape(said)}given k = 2147483647$"):
        huge(x, k=2**31 - 1)
    with pytest.raises(CallMemoryError, match="Huge: not enough memory for temporary results"):
        huge(x, k=2**23 - 1)


@pytest.mark.parametrize(
    ("subscript", "k", "said"),
    [
        ("i * k * k * k * k", 65536, "what is compared in i * k * k * k * k >= 0 in 'y' stays below 2**62"),
        ("i // k", 0, "the divisor k of i // k in 'y' is not 0"),
        ("i % (k - 1)", 1, "the divisor k - 1 of i % (k - 1) in 'y' is not 0"),
    ],
)
def test_messages(tmp_path: Path, subscript: str, k: int, said: str) -> None:
    (tmp_path / "look.op").write_text(op_text("Look", subscript).replace("attr a", "attr k").replace("0 * a", "0 * k"))
    look = opgen.load(tmp_path / "look.op").look
    with pytest.raises(ArgumentValueError) as caught:
        look(np.ones(2, np.float32), k=k)
    assert str(caught.value).startswith(f"Look: argument 'k': expected numbers for which {said}, given ")
    assert str(caught.value).endswith(f"k = {k}")
