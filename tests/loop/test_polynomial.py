"""The normal form of integer expressions."""

from __future__ import annotations

import random

import pytest

from opgen.loop.analysis.polynomial import coefficient, expression, linear, polynomial
from opgen.loop.print import print_expr
from tests.loop.oracle import value
from tests.support.integers import parse, random_integer

EQUAL = [
    ("a * (b + c) - a * b", "c * a"),
    ("(a // b) * b + a % b", "a"),
    ("(16 * a + b) // 16", "a + b // 16"),
    ("(a * b + c) // b", "a + c // b"),
    ("(16 * a + b) % 16", "b % 16"),
    ("(4 * a + 6) // 8", "(2 * a + 3) // 4"),
    ("(a + 17) // 16", "1 + (a + 1) // 16"),
    ("min(a, b) + max(c, d)", "max(d, c) + min(b, a)"),
    ("min(a + 1, a + 3)", "a + 1"),
    ("max(a + 1, a + 3)", "3 + a"),
    ("(a + b) // c", "(b + a) // c"),
    ("select(a < b, c + 1, 1 + c)", "c + 1"),
    ("-(a - b)", "b - a"),
    ("int64(a) * 2", "a + a"),
    ("7 % -4", "-1"),
    ("a // b // 4", "a // (4 * b)"),
    ("(a // 3 + 2) // 5", "(a + 6) // 15"),
]


@pytest.mark.parametrize(("left", "right"), EQUAL)
def test_equal_expressions_have_one_form(left: str, right: str) -> None:
    assert polynomial(parse(left)) == polynomial(parse(right))
    assert print_expr(expression(polynomial(parse(left)))) == print_expr(expression(polynomial(parse(right))))


@pytest.mark.parametrize(("left", "right"), [("a // b", "b // a"), ("a * a", "a"), ("min(a, b)", "max(a, b)")])
def test_different_expressions_have_different_forms(left: str, right: str) -> None:
    assert polynomial(parse(left)) != polynomial(parse(right))


COEFFICIENTS = [
    ("3 * a + b", "3"),
    ("a * (b + 2) - b * a", "2"),
    ("b + c", "0"),
    ("a * b * c + a", "b * c + 1"),
    ("a * a", None),
    ("a // 2", None),
    ("min(a, b)", None),
    ("(16 * a + b) // 16", "1"),
    ("a - (a // 4) * 0", "1"),
]


@pytest.mark.parametrize(("text", "expected"), COEFFICIENTS)
def test_linear_coefficients(text: str, expected: str | None) -> None:
    found = coefficient(parse(text), "a")
    assert (None if found is None else print_expr(found)) == expected


def test_a_linear_form_is_coefficient_and_rest() -> None:
    found = linear(parse("a * b + c - 3 + a"), "a")
    assert found is not None
    assert [print_expr(part) for part in found] == ["b + 1", "c - 3"]


@pytest.mark.parametrize("seed", range(30))
def test_the_normal_form_has_the_value_of_the_expression(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(20):
        e = random_integer(rng, list("abcde"), 4)
        normal = expression(polynomial(e))
        assert polynomial(normal) == polynomial(e), f"seed {seed}: {print_expr(e)}"
        for _ in range(5):
            values = {name: rng.randint(-20, 20) for name in "abcde"}
            assert value(normal, values) == value(e, values), f"seed {seed}: {print_expr(e)} at {values}"
