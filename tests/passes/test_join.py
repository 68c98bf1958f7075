"""Neighbours under one condition: joined where nothing changes what they depend on."""

from __future__ import annotations

import pytest

from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_stmt
from opgen.passes.join import join
from tests.schedule.differential import assert_same

HEAD = "kernel case(n: int64 in [0, 4], x: float32[4]) -> (y: float32[4]):\n  for i in 0 .. 4:\n    y[i] = 0.0f32\n"

CASES = {
    "both without": ("if n < 2:\n  y[0] = x[1]\nif n < 2:\n  y[1] = x[2]", 1),
    "both with": ("if n < 2:\n  y[0] = x[1]\nelse:\n  y[0] = x[2]\nif n < 2:\n  y[1] = x[2]\nelse:\n  y[1] = x[3]", 1),
    "one with": ("if n < 2:\n  y[0] = x[1]\nif n < 2:\n  y[1] = x[2]\nelse:\n  y[1] = x[3]", 1),
    "the other with": ("if n < 2:\n  y[0] = x[1]\nelse:\n  y[0] = x[3]\nif n < 2:\n  y[1] = x[2]", 1),
    "other conditions": ("if n < 2:\n  y[0] = x[1]\nif n < 3:\n  y[1] = x[2]", 2),
    "changed": ("if y[0] < x[0]:\n  y[0] = x[1]\nif y[0] < x[0]:\n  y[1] = x[2]", 2),
    "changed by the other branch": (
        "if y[0] < x[0]:\n  y[2] = x[1]\nelse:\n  y[0] = x[1]\nif y[0] < x[0]:\n  y[1] = x[2]",
        2,
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("n", [0, 3])
def test_joined_and_the_same(name: str, n: int) -> None:
    body, conditions = CASES[name]
    kernel = parse_kernel(HEAD + "".join(f"  {line}\n" for line in body.split("\n")))
    after = join(kernel)
    assert print_stmt(after.body).count("if ") == conditions
    assert_same(kernel, after, {"n": n}, n, name)
