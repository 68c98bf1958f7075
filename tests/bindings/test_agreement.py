"""A generated check and the spec's own evaluator say the same of every call: the shapes, or the message word for
word.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest

from opgen.diagnostics import UserError
from opgen.diagnostics.calls import ArgumentError
from opgen.spec.call.arguments import CallError
from tests.bindings.modules import OPS, SAMPLES, SIZES, generated, spec
from tests.support.random_calls import by_check, by_solve, random_arguments

OPS_OF = [(path, op.name) for path in (OPS, SAMPLES, SIZES) for op in spec(path).ops]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("path", "name"), OPS_OF, ids=[n for _, n in OPS_OF])
def test_same_answer(path: Any, name: str, seed: int) -> None:
    op = spec(path).op(name)
    module = generated(path)
    rng = random.Random(f"{name} {seed}")
    answers: list[str] = []
    for _ in range(200):
        shapes, vectors, attrs = random_arguments(rng, op)
        expected = by_solve(path, op, shapes, vectors, attrs)
        if (follows := re.search(r"argument '(\w+)': expected shape (\[.*?\])", expected)) and rng.random() < 0.8:
            shapes[follows[1]] = tuple(json.loads(follows[2]))
            expected = by_solve(path, op, shapes, vectors, attrs)
        found = by_check(module, op, shapes, vectors, attrs)
        where = f"seed {seed}: {name} with {shapes}, {vectors} and {attrs}"
        if "given an object" in found:  # of an object only the class is shown here
            assert found.split(", given")[0] == expected.split(", given")[0], where
        elif "or a list of integers: " in expected:  # what a list in place of a word must be is said shorter here
            assert found.split(": a list")[0] == expected.split(": a list")[0], where
        else:
            assert found == expected, where
        answers.append(found)
    assert any(a.startswith("{") for a in answers), "no call was right: the test shows nothing"
    assert any("expected" in a for a in answers), "no call was wrong: the test shows nothing"


def test_both_are_user_errors() -> None:
    assert issubclass(ArgumentError, UserError)
    assert issubclass(CallError, UserError)
