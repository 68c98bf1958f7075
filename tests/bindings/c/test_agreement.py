"""C says the same of every call as the spec's own evaluator (and so as Python): the shapes, or the message."""

from __future__ import annotations

import random
from typing import Any

import pytest

from opgen.spec.model.model import OpSpec
from tests.bindings.c.library import Library, built, inputs_of
from tests.bindings.modules import OPS, SAMPLES, SIZES, spec
from tests.support.random_calls import by_solve, random_arguments

CASES = [(path, op.name) for path in (OPS, SAMPLES, SIZES) for op in spec(path).ops]


def _expressible(op: OpSpec, name: str, value: Any) -> bool:
    """Whether a value can be given in C: of the right kind, with a list's length and the integers' range free."""
    attr = op.attr(name)
    if isinstance(value, list):
        flat = [v for item in value for v in (item if isinstance(item, list) else [item])]
        if attr.payload is not None:
            return all(type(v) is int for v in flat) and all(isinstance(r, list) and len(r) == 2 for r in value)
        kinds = (int, float) if attr.kind == "float" else (int,)
        return bool(attr.shape) and all(type(v) in kinds for v in flat) and not any(isinstance(i, list) for i in value)
    if attr.kind in ("enum", "layout"):
        return isinstance(value, str) or value is None
    if attr.shape:
        return value is None
    return type(value) is {"int": int, "float": float, "bool": bool}[attr.kind]


@pytest.mark.parametrize(("path", "name"), CASES, ids=[name for _, name in CASES])
@pytest.mark.parametrize("seed", range(2))
def test_shapes_and_messages(path: Any, name: str, seed: int) -> None:
    op = spec(path).op(name)
    library = Library(spec(path), built(path))
    rng = random.Random(f"{name} {seed}")
    compared = wrong = 0
    for _ in range(300):
        shapes, vectors, attrs = random_arguments(rng, op)
        if not all(_expressible(op, n, v) for n, v in attrs.items()):
            continue
        given = {n: v for n, v in attrs.items() if v is not None}
        expected = by_solve(path, op, shapes, vectors, given)
        found = library.shape(op, inputs_of(op, shapes, vectors), given)
        assert found == expected, (seed, shapes, vectors, attrs)
        compared += 1
        wrong += "expected" in expected
    assert compared > 100
    assert wrong > 0 or not op.attrs
