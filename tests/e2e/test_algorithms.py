"""Algorithms as a user meets them: which one a call takes, how exact it is, and what Inf and NaN become."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import opgen
from opgen.compiler import choose
from opgen.compiler.algorithms import VARIABLE, Mode
from opgen.diagnostics import UserError
from opgen.machine import typical
from opgen.schedule.estimate import seconds

ROOT = Path(__file__).parents[2]
SIZE, CHANNELS, OUTPUTS = 28, 32, 48
U = 2.0**-24
NORMS = {"default": 3 * 2 * 1.5, "all": 19 * 10 * 1}
"""The product of the maximum norms of the three transforms of the algorithms that the modes choose here."""

nn_ops = opgen.load(ROOT / "specs" / "nn_ops.op")


def arrays(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = ((1, SIZE, SIZE, CHANNELS), (3, 3, CHANNELS, OUTPUTS), (1, SIZE, SIZE, OUTPUTS))
    x, w, dy = (rng.standard_normal(s).astype(np.float32) for s in shapes)
    return x, w, dy


def forward(x: np.ndarray, w: np.ndarray, dy: np.ndarray) -> np.ndarray:
    return nn_ops.conv2d(x, w, strides=[1, 1, 1, 1], padding="SAME")


def to_input(x: np.ndarray, w: np.ndarray, dy: np.ndarray) -> np.ndarray:
    return nn_ops.conv2d_backprop_input(list(x.shape), w, dy, strides=[1, 1, 1, 1], padding="SAME")


def to_filter(x: np.ndarray, w: np.ndarray, dy: np.ndarray) -> np.ndarray:
    return nn_ops.conv2d_backprop_filter(x, list(w.shape), dy, strides=[1, 1, 1, 1], padding="SAME")


@pytest.fixture(autouse=True)
def _same_choice_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which algorithm is taken depends neither on the machine that runs these tests nor on what ran before them."""
    monkeypatch.setenv("OPGEN_SPECIALIZE", "always")
    monkeypatch.setattr(choose, "seconds", lambda kernel, _machine: seconds(kernel, typical()))


Direction = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def by(mode: Mode, direction: Direction, given: tuple[np.ndarray, ...]) -> np.ndarray:
    with opgen.algorithms(mode):
        return direction(*given)


@pytest.mark.parametrize("direction", [forward, to_input, to_filter])
def test_errors(direction: Direction) -> None:
    """By norms: the default algorithm errs no more than the definition, the optional one a few times as much.

    Each element is within the bound of the theory: the norms of the transforms, squared for two dimensions, times what
    the sum of products itself may err.
    """
    given = arrays(3)
    with opgen.algorithms("off"):
        exact = direction(*(a.astype(np.float64) for a in given))
    errors = {m: by(m, direction, given) - exact for m in ("off", "default", "all")}
    relative = {m: np.linalg.norm(e) / np.linalg.norm(exact) for m, e in errors.items()}
    assert 0 < relative["default"] <= 1.2 * relative["off"]
    assert 0 < relative["all"] <= 8 * relative["off"]
    terms = {forward: 9 * CHANNELS, to_input: 9 * OUTPUTS, to_filter: SIZE * SIZE}[direction]
    used = [
        a for a, leaves_out in zip(given, (to_input, to_filter, forward), strict=True) if direction is not leaves_out
    ]
    products = float(np.prod([np.abs(a).max() for a in used]))
    for mode, norm in NORMS.items():
        assert np.abs(errors[mode]).max() <= U * (terms + 16) * norm**2 * terms * products


def test_each_mode_takes_its_algorithm() -> None:
    given = arrays(1)
    results = {m: by(m, forward, given).tobytes() for m in ("off", "default", "all")}
    assert len(set(results.values())) == 3
    assert forward(*given).tobytes() == results["default"]
    with opgen.algorithms("all"), opgen.algorithms("off"):
        assert forward(*given).tobytes() == results["off"]
    assert forward(*given).tobytes() == results["default"]


def test_small_calls_keep_the_definition() -> None:
    x, w, _ = arrays(2)
    x, w = x[:, :13, :13, :4], w[:, :, :4, :8]
    small = (np.ascontiguousarray(x), np.ascontiguousarray(w), np.empty(0))
    assert len({by(m, forward, small).tobytes() for m in ("off", "default", "all")}) == 1


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 3e38])
def test_what_is_not_finite_is_as_the_definition_has_it(bad: float) -> None:
    x, w, dy = arrays(4)
    x[0, 5, 5:7, 3] = bad
    w[1, 1, 3, :] = 4.0
    kept, again = by("off", forward, (x, w, dy)), by("default", forward, (x, w, dy))
    assert not np.isfinite(kept).all()
    assert np.isfinite(kept).any()
    assert kept.tobytes() == again.tobytes()


def test_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    given = arrays(5)
    off = by("off", forward, given)
    monkeypatch.setenv(VARIABLE, "off")
    fresh = opgen.load(ROOT / "specs" / "nn_ops.op")
    assert fresh.conv2d(*given[:2], strides=[1, 1, 1, 1], padding="SAME").tobytes() == off.tobytes()
    monkeypatch.setenv(VARIABLE, "of")
    with pytest.raises(UserError, match="OPGEN_ALGORITHMS is 'of', expected default, off or all; did you mean 'off'"):
        fresh.conv2d(given[0][:, :9], given[1], strides=[1, 1, 1, 1], padding="SAME")
    with pytest.raises(UserError, match=r"opgen\.algorithms is given 'fast', expected default, off or all"):
        by("fast", forward, given)
