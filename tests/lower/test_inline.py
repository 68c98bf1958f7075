"""Intermediates that their one reader reads several times: no memory, each reduction once, the same bits."""

from __future__ import annotations

import random

import numpy as np
import pytest

from opgen.loop.interpret import Counters, interpret
from opgen.loop.nodes import Kernel
from opgen.loop.walk import allocs_in
from opgen.lower import Variant, inline, lower
from opgen.spec import load_text

SEEDS = range(24)
SPEC = """
op Table {{
  type T in {{float32}}
  input x: T[m, k]
  input w: T[k, n]
  input b: T[n]
  attr slope: float
  output y: T[m, n]
  let p[i, j] = {first}
  let q[i, j] = {second}
  y[i, j] = ({third}) + slope * b[j]
}}
"""
FIRST = ("sum[l](x[i, l] * w[l, j])", "max[l](x[i, l] + w[l, j])", "sum[l](x[i, l] * w[l, j]) * b[j]")
VALUE = (
    "{0} + b[j]",
    "max({0}, 0)",
    "if {0} < 0 then slope * {0} else {0}",
    "if b[j] < 0 then {0} else 2 * {0}",
    "if b[j] < 0 and {0} > 0.25 then {0} else 1",
    "{0} / (1 + exp(-{0}))",
    "{0} * {0} - {0}",
)


def kernel(first: str, second: str, third: str) -> Kernel:
    module = load_text(SPEC.format(first=first, second=second, third=third))
    return lower(module, module.ops[0], Variant({"T": "float32"}, {})).kernel


def heap(kernel: Kernel) -> int:
    return sum(a.space == "heap" for a in allocs_in(kernel.body))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_bits_as_with_memory(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = random.Random(seed)
    values = [drawn.choice(FIRST), drawn.choice(VALUE).format("p[i, j]"), drawn.choice(VALUE).format("q[i, j]")]
    rng = np.random.default_rng(seed)
    arrays = {
        name: rng.uniform(-1, 1, shape).astype(np.float32)
        for name, shape in {"x": (3, 5), "w": (5, 4), "b": (4,)}.items()
    }
    numbers = {"m": 3, "k": 5, "n": 4, "slope": 0.3}
    inlined = kernel(*values)
    monkeypatch.setattr(inline, "LARGEST", 0)
    apart = kernel(*values)
    assert heap(inlined) <= heap(apart)
    np.testing.assert_array_equal(interpret(inlined, arrays, numbers)["y"], interpret(apart, arrays, numbers)["y"])


def test_a_reduction_is_computed_once() -> None:
    found = kernel("sum[l](x[i, l] * w[l, j])", VALUE[2].format("p[i, j]"), VALUE[5].format("q[i, j]"))
    assert not heap(found)
    counters = Counters()
    arrays = {"x": np.ones((3, 5), np.float32), "w": np.ones((5, 4), np.float32), "b": np.ones(4, np.float32)}
    interpret(found, arrays, {"m": 3, "k": 5, "n": 4, "slope": 0.3}, counters=counters)
    assert counters.iterations == 3 + 3 * 4 + 3 * 4 * 5


def test_what_is_taken_on_one_side_only_stays_apart() -> None:
    """Its reduction would stand on both sides."""
    assert heap(kernel("sum[l](x[i, l] * w[l, j])", VALUE[3].format("p[i, j]"), "q[i, j]")) == 1


def test_places_may_be_told_by_composites() -> None:
    module = load_text(
        """
        op Grouped {
          type T in {float32}
          input x: T[rows, groups * width]
          input w: T[groups * width, groups]
          input b: T[groups * width]
          output y: T[rows, groups * width]
          let moved[i, c] = x[i, c] + b[c]
          let grown[i, c] = 2 * x[i, c]
          y[i, g * width + k] = sum[r < groups](w[g * width + k, r]) + moved[i, g * width + k] + grown[i, k * 1 + 0]
        }
        """
    )
    lowered = lower(module, module.ops[0], Variant({"T": "float32"}, {})).kernel
    assert [a.buffers[0].name for a in allocs_in(lowered.body) if a.space == "heap"] == ["grown"]
    rng = np.random.default_rng(3)
    x, w, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, 6), (6, 2), (6,)))
    numbers = {"rows": 2, "groups": 2, "width": 3}
    y = interpret(lowered, {"x": x, "w": w, "b": b}, {p.name: numbers[p.name] for p in lowered.parameters})["y"]
    expected = np.zeros(6, np.float32)
    for r in range(2):
        expected = expected + w[:, r]
    assert np.array_equal(y, expected + (x + b) + np.tile(2 * x[:, :3], 2))
