"""What is not taken has no part, in values and in gradients: random programs that choose between reads.

In reductions they read outside on sides that are taken and on others, under conditions on places, on values and on
elements of bool tensors; lets with infinite derivatives are taken here and there, or not at all.  An evaluator of the
mathematics that shares nothing with the compiler judges interpreter, kernels and gradients.
"""

from __future__ import annotations

import random

import pytest

from tests.verification.random_programs.check import judge
from tests.verification.random_programs.program import Program

RISKY = ("sqrt({0})", "log({0})", "1 / {0}", "pow({0}, 0.5)", "exp(400 * {0})", "{0} / ({0} - 1)", "sqrt({0} * {0})")
"""Not finite, or without finite derivative, somewhere among small whole numbers."""


class _Writer:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"taken {seed}")
        self.floats = {"x": "n", "z": "m"}
        self.bools = {"c": "n", "d": "m"}

    def place(self, index: str) -> str:
        return self.rng.choice([index, index, f"{index} + 1", f"{index} - 1", f"{index} // 2", f"3 - {index}"])

    def condition(self, index: str, depth: int = 1) -> str:
        """Of a place, of a value, or of an element that is one, or of several."""
        rng = self.rng
        if depth and rng.random() < 0.4:
            a, b = self.condition(index, 0), self.condition(index, depth - 1)
            return rng.choice([f"({a} and {b})", f"({a} or {b})", f"(not {a})", f"({a} == {b})"])
        tensor = rng.choice(sorted(self.bools))
        flag = f"{tensor}[{self.place(index)}]"
        return rng.choice([
            f"({self.place(index)} {rng.choice(['<', '>='])} {rng.choice('nm')})",
            f"({self.read(index)} {rng.choice(['>', '<='])} {rng.choice(['0', '1', self.read(index)])})",
            flag, f"({flag} else {rng.choice(['true', 'false', f'd[{index}]'])})", f"bool({self.read(index)})",
        ])  # fmt: skip

    def read(self, index: str) -> str:
        read = f"{self.rng.choice(sorted(self.floats))}[{self.place(index)}]"
        if self.rng.random() < 0.25:
            return f"({read} else {self.rng.choice(['0', '2', f'z[{index}]', f'x[{index} + 1]'])})"
        return read

    def term(self, index: str, depth: int = 2) -> str:
        rng = self.rng
        if depth and rng.random() < 0.6:
            sides = f"{self.term(index, depth - 1)} else {self.term(index, depth - 1)}"
            return f"(if {self.condition(index)} then {sides})"
        if depth and rng.random() < 0.4:
            return f"{self.term(index, depth - 1)} {rng.choice('*+-')} {self.term(index, depth - 1)}"
        return rng.choice([self.read(index)] * 3 + ["2", f"T({index})"])

    def reduction(self, index: str) -> str:
        kind, rng = self.rng.choice(["sum", "sum", "sum", "max", "min", "prod"]), self.rng
        condition = f" if {self.condition(index)}" if rng.random() < 0.5 else ""
        extent = rng.choice(["n", "m", "3"]) if kind != "prod" else "3"
        return f"{kind}[{index} < {extent}{condition}](({self.term(index)}) + 0 * T({index}))"

    def let(self, name: str, reads: list[str]) -> str:
        """An intermediate over n of those before it."""
        rng = self.rng
        risky = rng.choice(RISKY).format(rng.choice(reads))
        other = rng.choice(reads)
        forms = [risky, f"{risky} * {other}", f"{other} * x[i]", f"sum[r < 2](({risky}) * x[r])"]
        return f"  let {name}[i] = {rng.choice(forms)} where i < n"

    def text(self) -> str:
        """Two lets that the result takes by choice, one that nothing takes, a bool one, and two reductions."""
        rng = self.rng
        lets = [self.let("s", ["x[i]"]), self.let("t", ["x[i]", "s[i]"]), self.let("dead", ["x[i]", "t[i]"])]
        flag = f"x[i] {rng.choice(['>', '!='])} {rng.choice('01')} and (c[i] or not (d[i] else true))"
        flags = f"  let b[i] = {flag} where i < n"
        taken = f"if {rng.choice(['b[i]', 'x[i] > 1', 'b[i] and x[i] > 1'])} then t[i] else {rng.choice(['0', 'x[i]'])}"
        body = f"{self.reduction('j')} + {rng.choice(['T(i)', 'x[i]'])} * {self.reduction('k')}"
        use = "(if b[i] then sum[q < m if d[q]](z[q]) else 0)"
        head = ["op Taken {", "  type T in {float32, float64}", "  input x: T[n]", "  input z: T[m]"]
        head += ["  input c: bool[n]", "  input d: bool[m]", "  output y: T[n]"]
        return "\n".join([*head, *lets, flags, f"  y[i] = ({taken}) + {body} + {use}", "}"]) + "\n"


def program(seed: int) -> Program:
    rng = random.Random(seed)
    n, m = rng.choice([1, 2, 3, 5, 8, 17]), rng.choice([1, 2, 4, 7, 16])
    dtype = rng.choice(["float32", "float64"])
    inputs = {"x": dtype, "z": dtype, "c": "bool", "d": "bool"}
    shapes = {"x": (n,), "z": (m,), "c": (n,), "d": (m,)}
    return Program(seed, _Writer(seed).text(), shapes, inputs, {}, {"T": dtype})


SEEDS = range(24)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_not_taken_has_no_part(seed: int) -> None:
    made = program(seed)
    verdict = judge(made)
    assert not verdict.failures, f"seed {seed}: {verdict.failures}\n{made.text}"
    assert not verdict.refused, f"seed {seed}: {verdict.refused}"


def test_most_is_compared() -> None:
    verdicts = [judge(program(seed)) for seed in SEEDS[:6]]
    assert sum(v.compared for v in verdicts) > sum(v.unknown for v in verdicts)
