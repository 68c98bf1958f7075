"""Sizes made of float arithmetic: as Python computes them, in every language, and refused where they are no integers.

Values are drawn from OPGEN_TEST_SEED (0).
"""

from __future__ import annotations

import math
import os
import random

import numpy as np
import numpy.typing as npt
import pytest

import opgen
from opgen.grad import load_text
from opgen.spec.call.shapes import solve
from opgen.spec.unparse import write_op
from tests.bindings.c.library import OK, Library, built, of, tensor
from tests.bindings.modules import ROOT, generated, spec

Array = npt.NDArray[np.generic]
SEED = int(os.environ.get("OPGEN_TEST_SEED", "0"))
SPEC = ROOT / "tests" / "specs" / "float_sizes.op"
OPS = generated(SPEC)


def _sizes(n: int, scale: float, shrink: float, factors: tuple[float, float]) -> list[int]:
    """What Python's own arithmetic gives."""
    moved = float(n) - (0.5 if scale > 1.0 else -0.5) / 0.1 * 0.1
    return [
        math.floor(scale * float(n)),
        math.ceil(float(n) / shrink),
        round(float(n) * factors[0] + factors[1]),
        int(moved),
        min(round(0.75 * float(n)), 5),
    ]


def _drawn(count: int) -> list[tuple[int, dict[str, object]]]:
    """Sizes and factors, among them those whose products are next to integers and halves."""
    print(f"OPGEN_TEST_SEED={SEED}")
    rng = random.Random(SEED)
    found: list[tuple[int, dict[str, object]]] = []
    for _ in range(count):
        n = rng.randrange(1, 40)
        exact = rng.randrange(1, 40) / n
        scale = rng.choice([exact, math.nextafter(exact, 0), math.nextafter(exact, 9), 0.1 * rng.randrange(1, 30)])
        shrink = rng.choice([0.1, 0.3, 0.7, 3.0, 1 / exact])
        found.append(
            (n, {"scale": scale, "shrink": shrink, "factors": [rng.choice([0.5, 0.1]), rng.choice([0.0, 0.5])]})
        )
    return found


def test_generated_code_and_the_spec_give_what_python_does() -> None:
    op = spec(SPEC).op("Resized")
    for n, given in _drawn(60):
        right = [(size,) for size in _sizes(n, **given)]
        x = np.arange(n, dtype=np.float32)
        assert [a.shape for a in OPS.resized(x, **given)] == right, (n, given)
        assert list(solve(op, spec(SPEC), {"x": (n,)}, {}, given).output_shapes.values()) == right, (n, given)


def test_c() -> None:
    library, op = Library(spec(SPEC), built(SPEC)), spec(SPEC).op("Resized")
    for n, given in _drawn(40):
        results = [np.zeros(size, np.float32) for size in _sizes(n, **given)]
        x = np.arange(n, dtype=np.float32)
        assert library.run(op, [of(x)], given, [of(r) for r in results]) == OK, (n, given, library.error())
        for found, right in zip(results, OPS.resized(x, **given), strict=True):
            np.testing.assert_array_equal(found, right)


WRONG = [
    ({"scale": math.nan}, "sizes that 'wanted' can be computed from (a float that does not fit in 64 bits)"),
    ({"scale": math.inf}, "sizes that 'wanted' can be computed from (a float that does not fit in 64 bits)"),
    ({"scale": 1e19}, "sizes that 'wanted' can be computed from (a float that does not fit in 64 bits)"),
    ({"shrink": 0.0}, "sizes that 'up' can be computed from (division by zero)"),
    ({"scale": -0.5}, "factors that are not negative"),
]


@pytest.mark.parametrize(("given", "expected"), WRONG)
def test_what_is_no_integer(given: dict[str, float], expected: str) -> None:
    library, op = Library(spec(SPEC), built(SPEC)), spec(SPEC).op("Resized")
    with pytest.raises(ValueError, match="expected") as caught:
        OPS.resized(np.zeros(4, np.float32), **given)
    assert f"expected {expected}, given" in str(caught.value)
    assert library.shape(op, [tensor((4,))], given) == str(caught.value)


def test_values() -> None:
    x = np.arange(1.0, 8.0)
    y, z, w, v, u = OPS.resized(x, scale=2.0, shrink=3.0)
    np.testing.assert_array_equal(y, np.repeat(x, 2))
    np.testing.assert_array_equal(z, x[:3])
    np.testing.assert_array_equal(w, x[:4])
    np.testing.assert_array_equal(v, x[:6])
    np.testing.assert_array_equal(u, x[:5])


def test_any_rank_and_gradient() -> None:
    x = np.random.default_rng(SEED).standard_normal((5, 4))
    np.testing.assert_array_equal(OPS.halved(x), x[::2, ::2])
    seeds = [np.ones(a.shape) for a in OPS.resized(x[0], scale=2.0)]
    right = np.sum([[2, 2, 2, 2], [1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 0]], 0)
    np.testing.assert_array_equal(opgen.gradient(OPS.resized, wrt="x")(x[0], *seeds, scale=2.0), right)


def test_model() -> None:
    op = spec(SPEC).op("Resized")
    again = load_text(write_op(spec(SPEC), op)).op("Resized")
    assert again.definitions == op.definitions
    assert again.checks == op.checks
    assert again.outputs == op.outputs
