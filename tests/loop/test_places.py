"""Expressions at many places at once, against the interpreter's value at each."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

from opgen.loop.analysis.places import at_places
from opgen.loop.nodes import INDEX, Binary, Compare, Const, Expr, Load, Unary, Var
from opgen.loop.print import print_expr
from tests.loop.oracle import value

LOOPS = {"a": range(4), "b": range(-2, 3), "c": range(5, 6)}


def integer(rng: random.Random, depth: int) -> Expr:
    if depth == 0 or rng.random() < 0.2:
        return Var(rng.choice("abc")) if rng.random() < 0.7 else Const(rng.randint(-9, 9))
    left, right = integer(rng, depth - 1), integer(rng, depth - 1)
    op = rng.choice(("add", "sub", "mul", "floordiv", "mod", "min", "max"))
    return Binary(op, left, Const(rng.randint(1, 5)) if op in ("floordiv", "mod") else right)


def condition(rng: random.Random, depth: int) -> Expr:
    match rng.choice(("compare", "compare", "and", "or", "not")) if depth else "compare":
        case "not":
            return Unary("not", condition(rng, depth - 1))
        case "and" | "or" as op:
            return Binary(op, condition(rng, depth - 1), condition(rng, depth - 1))
    return Compare(rng.choice(("eq", "ne", "lt", "le", "gt", "ge")), integer(rng, 2), integer(rng, 2))


@pytest.mark.parametrize("seed", range(20))
def test_as_one_by_one(seed: int) -> None:
    rng = random.Random(seed)
    for make in (integer, condition):
        e = make(rng, 3)
        places = [dict(zip(LOOPS, p, strict=True)) for p in product(*LOOPS.values())]
        found = at_places(e, LOOPS)
        assert found is not None
        assert found.shape == (4, 5, 1)
        expected = [value(e, p) for p in places]
        assert np.array_equal(found.ravel(), expected), f"seed {seed}: {print_expr(e)}"


def test_what_depends_on_anything_else_is_not_known() -> None:
    assert at_places(Binary("add", Var("a"), Var("n")), LOOPS) is None
    assert at_places(Compare("lt", Load("x", (Var("a"),), INDEX), Const(3)), LOOPS) is None
