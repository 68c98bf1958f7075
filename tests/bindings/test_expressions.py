"""Printed expressions mean what the model's mean: compared on random expressions, and the parentheses by hand."""

from __future__ import annotations

import ast
import random

import pytest

from opgen.bindings.formula import Formula
from opgen.bindings.python.expressions import PythonPrinter
from opgen.spec.call.environment import Environment, evaluate
from opgen.spec.call.whole import EvaluationError
from opgen.spec.loading import load_text
from opgen.spec.model.model import Conditional, EnumIs, Expr, Negate, Not, Number, Operation, Operator, Present, Symbol

NAMES = {"a": "a", "b": "b", "mode": "mode", "extra": "extra"}
OP = load_text(
    'op F { """f""" type T in {float32} input x: T[a, b] """x""" attr mode: enum {X, Y} """m""" '
    'attr extra: int[2] = [] """e""" output y: T[a, b] """y""" require present(extra) or a > 0 : extra "e" '
    "y[i, j] = if mode == X then x[i, j] * T(extra[0]) else x[i, j] }"
).op("F")
INTEGERS: tuple[Operator, ...] = ("+", "-", "*", "//", "%", "min", "max", "ceildiv")
COMPARISONS: tuple[Operator, ...] = ("==", "!=", "<", "<=", ">", ">=")


def _integer(rng: random.Random, depth: int) -> Expr:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice([Number(rng.randrange(-3, 4)), Symbol("a"), Symbol("b")])
    kind = rng.random()
    if kind < 0.1:
        return Negate(_integer(rng, depth - 1))
    if kind < 0.25:
        return Conditional(_condition(rng, depth - 1), _integer(rng, depth - 1), _integer(rng, depth - 1))
    return Operation(rng.choice(INTEGERS), _integer(rng, depth - 1), _integer(rng, depth - 1))


def _condition(rng: random.Random, depth: int) -> Expr:
    kind = rng.random()
    if depth == 0 or kind < 0.2:
        return rng.choice([EnumIs("mode", "X"), Present("extra")])
    if kind < 0.4:
        return Not(_condition(rng, depth - 1))
    if kind < 0.7:
        word: Operator = "and" if rng.random() < 0.5 else "or"
        return Operation(word, _condition(rng, depth - 1), _condition(rng, depth - 1))
    return Operation(rng.choice(COMPARISONS), _integer(rng, depth - 1), _integer(rng, depth - 1))


def _run(source: str, values: dict[str, object]) -> object:
    ast.parse(source, mode="eval")
    try:
        return eval(source, {}, values)
    except ZeroDivisionError:
        return "no value"


def _meant(e: Expr, values: dict[str, object]) -> object:
    symbols = {n: int(str(values[n])) for n in ("a", "b")}
    attrs = {"mode": str(values["mode"]), "extra": (1, 2) if values["extra"] else ()}
    try:
        return evaluate(e, Environment(OP, {}, symbols, attrs))
    except EvaluationError:
        return "no value"


@pytest.mark.parametrize("seed", range(10))
def test_python_means_the_same(seed: int) -> None:
    rng = random.Random(seed)
    printer = PythonPrinter(NAMES, {})
    for _ in range(200):
        values: dict[str, object] = {
            "a": rng.randrange(-4, 5), "b": rng.randrange(-4, 5), "mode": rng.choice("XY"), "extra": rng.choice([(),
            (1, 2)]) }  # fmt: skip
        number, condition = _integer(rng, 4), _condition(rng, 4)
        for e in (number, condition):
            source = printer.text(e)
            meant, found = _meant(e, values), _run(source, values)
            if "no value" not in (meant, found):  # Python may skip what the evaluator computes
                assert found == meant, f"seed {seed}: {source} with {values}"
        positive, negative = _run(printer.text(condition), values), _run(printer.negated(condition), values)
        if "no value" not in (positive, negative):
            assert negative is (not positive), f"seed {seed}: {printer.negated(condition)} of {printer.text(condition)}"


A, B = Symbol("a"), Symbol("b")


@pytest.mark.parametrize(
    ("e", "python", "formula"),
    [
        (Operation("-", A, Operation("-", B, A)), "a - (b - a)", "a - (b - a)"),
        (Operation("-", Operation("-", A, B), A), "a - b - a", "a - b - a"),
        (Operation("*", Operation("+", A, B), A), "(a + b) * a", "(a + b) * a"),
        (Operation("ceildiv", Operation("+", A, B), A), "-(-(a + b) // a)", "ceildiv(a + b, a)"),
        (Not(EnumIs("mode", "X")), 'mode != "X"', "not mode == X"),
        (Conditional(EnumIs("mode", "X"), A, B), 'a if mode == "X" else b', "if mode == X then a else b"),
        (Operation("+", Conditional(Present("extra"), A, B), A), "(a if len(extra) > 0 else b) + a",
         "(if present(extra) then a else b) + a"),
        (Negate(Operation("+", A, B)), "-(a + b)", "-(a + b)"),
        (Operation("==", Operation("<", A, B), Operation("<", B, A)), "(a < b) == (b < a)", "(a < b) == (b < a)"),
    ],
)  # fmt: skip
def test_parentheses_where_they_are_needed(e: Expr, python: str, formula: str) -> None:
    assert PythonPrinter(NAMES, {}).text(e) == python
    assert Formula(OP).text(e) == formula
