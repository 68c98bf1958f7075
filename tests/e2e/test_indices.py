"""Reads at rounded, clamped and turned indices, which need no `else`: as numpy has them, with their gradients.

The ops are linear in x, so a gradient is the transposed op, column by column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import opgen
from opgen.diagnostics.calls import ArgumentError
from opgen.loop.interpret import interpret
from opgen.passes.legalize import legalize
from opgen.runtime.devices import emulation
from opgen.runtime.devices.emulation import run_emulated
from opgen.schedule.default import scheduled
from tests.bindings.modules import ROOT, generated, spec
from tests.harness import Call

Array = npt.NDArray[Any]
INDICES = ROOT / "tests" / "specs" / "indices.op"
N = 7
W = np.array([1.0, -2, 3, 0.5])


def _lagged(x: Array, lag: int) -> Array:
    at = np.arange(len(x))
    return x - x[np.where(at >= lag, at - lag, 0)]


def _circular(x: Array, w: Array) -> Array:
    total: Array = sum((np.roll(x, r) * w[r] for r in range(len(w))), np.zeros_like(x))
    return total


CALLS: list[tuple[str, Callable[..., Array], Mapping[str, Any]]] = [
    *(("Roll", lambda x, down, right: np.roll(x, (down, right), (0, 1)), {"down": d, "right": 1 - d}) for d in (0, -9)),
    *(
        ("Replicate", lambda x, before, after: np.pad(x, (before, after), mode="edge"), {"before": a, "after": b})
        for a, b in ((0, 0), (2, 1), (9, 12))
    ),
    *(
        ("Reflect", lambda x, before, after: np.pad(x, (before, after), mode="reflect"), {"before": a, "after": b})
        for a, b in ((0, 0), (2, 1), (19, 12))
    ),
    *(("Repeat", lambda x, times: np.repeat(x, times), {"times": t}) for t in (1, 3)),
    *(("Nearest", lambda x, size: x[np.arange(size) * len(x) // size], {"size": s}) for s in (1, 3, 20)),
    ("Circular", _circular, {"w": W}),
    *(("Lagged", _lagged, {"lag": lag}) for lag in (0, 3, 9)),
]
NAMES = [f"{op}-{','.join(map(str, given.values()))}" for op, _, given in CALLS]


def _shape(op: str) -> tuple[int, ...]:
    return (3, N) if op == "Roll" else (N,)


@pytest.mark.parametrize(("op", "expected", "given"), CALLS, ids=NAMES)
def test_like_numpy(op: str, expected: Callable[..., Array], given: Mapping[str, Any]) -> None:
    x = np.random.default_rng(1).standard_normal(_shape(op))
    want = expected(x, **given)
    arrays = {"x": x} | {k: v for k, v in given.items() if isinstance(v, np.ndarray)}
    attrs = {k: v for k, v in given.items() if k not in arrays}
    call = Call(spec(INDICES), spec(INDICES).op(op), {k: a.shape for k, a in arrays.items()}, attrs, dtype="float64")
    kernel, parameters = call.kernel()
    runs = [getattr(generated(INDICES), op.lower())(**arrays, **attrs), interpret(kernel, arrays, parameters)["y"]]
    if emulation.compiler() is not None:
        runs.append(run_emulated(legalize(scheduled(kernel, "cuda")[1]), arrays, parameters)["y"])
    for found in runs:
        np.testing.assert_allclose(found, want, rtol=1e-14)


@pytest.mark.parametrize(("op", "expected", "given"), CALLS, ids=NAMES)
def test_gradients(op: str, expected: Callable[..., Array], given: Mapping[str, Any]) -> None:
    shape = _shape(op)
    units = np.eye(int(np.prod(shape))).reshape(-1, *shape)
    columns = [expected(unit, **given) for unit in units]
    seed = np.random.default_rng(2).standard_normal(columns[0].shape)
    want = np.array([(column * seed).sum() for column in columns]).reshape(shape)
    gradient = opgen.gradient(getattr(generated(INDICES), op.lower()), wrt="x")
    np.testing.assert_allclose(gradient(np.zeros(shape), grad_y=seed, **given), want, rtol=1e-13, atol=1e-13)


def test_nothing_is_read_of_nothing() -> None:
    ops, none = generated(INDICES), np.zeros(0)
    for found in (ops.roll(np.zeros((0, 0))), ops.repeat(none), ops.lagged(none)):
        assert found.size == 0
    with pytest.raises(ArgumentError, match="expected at least one element"):
        ops.replicate(none)


LONG = 200_000
AT = np.arange(LONG)


@pytest.mark.parametrize(
    ("op", "given", "at"),
    [
        ("roll", {"right": 5, "down": 0}, (AT - 5) % LONG),
        ("replicate", {"before": 0, "after": 0}, AT),
        ("lagged", {"lag": LONG}, AT),
        ("nearest", {"size": LONG}, AT),
    ],
)
def test_gradients_of_many_elements(op: str, given: Mapping[str, int], at: npt.NDArray[np.int64]) -> None:
    """In time proportional to them, not to their square: what is read is added up where it is read."""
    seed = np.random.default_rng(3).integers(0, 9, LONG).astype(np.float64)
    want = np.bincount(at, seed, LONG)
    if op == "lagged":
        want[0] -= seed.sum()
    shape = (1, LONG) if op == "roll" else (LONG,)
    gradient = opgen.gradient(getattr(generated(INDICES), op), wrt="x")
    found = gradient(np.zeros(shape), grad_y=seed.reshape(shape), **given)
    assert np.array_equal(found.reshape(-1), want)
