"""Random scalar integer expressions."""

from __future__ import annotations

import random

from opgen.loop.nodes import INDEX, Binary, Const, Expr, Select, Var
from opgen.loop.parse import parse_expr

NAMES = dict.fromkeys("abcde", INDEX)


def parse(text: str) -> Expr:
    return parse_expr(text, NAMES)


def random_integer(rng: random.Random, names: list[str], depth: int) -> Expr:
    """A random scalar integer expression without division by zero (divisors are positive constants or squares + 1)."""
    if depth == 0 or rng.random() < 0.2:
        return Var(rng.choice(names)) if rng.random() < 0.7 else Const(rng.randint(-9, 20))
    parts = [random_integer(rng, names, depth - 1) for _ in range(3)]
    match rng.choice(("add", "sub", "mul", "floordiv", "mod", "min", "max", "select")):
        case "select":
            return Select(parse("a < b"), parts[0], parts[1])
        case "floordiv" | "mod" as op:
            positive = Binary("add", Binary("mul", parts[2], parts[2]), Const(1))
            return Binary(op, parts[0], Const(rng.randint(1, 9)) if rng.random() < 0.7 else positive)
        case op:
            return Binary(op, parts[0], parts[1])
