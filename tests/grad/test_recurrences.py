"""What is computed step by step has gradients that are computed step by step, from the step that was the last."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opgen
from generated import onnx_ops
from opgen.grad import gradient, load_text
from opgen.spec.model.model import Reduce
from opgen.spec.model.walk import subexpressions
from opgen.spec.resolve.recurrences import recurrences
from tests.grad.cases import Case, assert_gradient, derivative, differentiable

SPEC = """op Stepwise {{
  type T in {{float64}}
  input x: T[n, m]
  input w: T[m]
  {}
}}
"""
LAST = "output y: T[m]\n  y[i] = (h[n - 1, i] else w[i]) * w[i]"
ALL = "output y: T[n, m]\n  y[t, i] = h[t, i] * x[t, i]"
CASES = {
    "sums": f"let h[t, i] = x[t, i] + (h[t - 1, i] else w[i])\n  {ALL}",
    "backward": f"let h[t, i] = tanh(x[t, i] + w[i] * (h[t + 1, i] else w[0]))\n  {ALL}",
    "of all others": f"let h[t, i] = tanh(x[t, i] + sum[k < m]((h[t - 1, k] else w[k]) * w[(i + k) % m]))\n  {LAST}",
    "two steps back": f"let h[t, i] = x[t, i] * (h[t - 2, i] else 1) + w[i] * (h[t - 1, i] else x[0, i])\n  {ALL}",
    "several": "let g[t, i] = 1 / (1 + exp(-x[t, i] - (h[t - 1, i] else 0)))\n"
               "  let c[t, i] = g[t, i] * (c[t - 1, i] else w[i]) + (1 - g[t, i]) * x[t, i]\n"
               f"  let h[t, i] = tanh(c[t, i]) * g[t, i]\n  {ALL}",
    "the largest so far": f"let h[t, i] = max(x[t, i], h[t - 1, i] else w[i])\n  {ALL}",
    "the largest of all others": f"let h[t, i] = x[t, i] + max[k < m]((h[t - 1, k] else w[k]) * w[i])\n  {ALL}",
    "by a choice": f"let h[t, i] = if t % 2 == 0 then x[t, i] else w[i] * (h[t - 1, i] else 0)\n  {LAST}",
    "one after another": "let a[t, i] = x[t, i] * (a[t - 1, i] else w[i])\n"
                         f"  let h[t, i] = a[t, i] + w[i] * (h[t + 1, i] else 0)\n  {ALL}",
    "an unused one": f"let h[t, i] = x[t, i] * w[i] + (h[t - 1, i] else 0)\n"
                     "  let u[t, i] = h[t, i] + (u[t - 1, i] else 0)\n"
                     f"  let v[t, i] = if u[t, i] > 0 then h[t, i] else 0\n  {ALL.replace('x[t, i]', 'v[t, i]')}",
}  # fmt: skip
"""Definitions, after those of the inputs x and w."""


def case_of(name: str, steps: int = 4) -> Case:
    return Case(load_text(SPEC.format(CASES[name])), "Stepwise", {"x": (steps, 3), "w": (3,)})


@pytest.mark.parametrize("name", CASES)
def test_first(name: str) -> None:
    case = case_of(name)
    for wrt in differentiable(case.op):
        derived = derivative(case, wrt)
        assert any(r.backward for r in recurrences(derived.op.definitions)) or name in ("backward", "one after another")
        assert_gradient(case, wrt, seed=3)
        assert_gradient(case_of(name, 1), wrt, seed=3)


@pytest.mark.parametrize("name", ["sums", "of all others"])
def test_second(name: str) -> None:
    case = case_of(name, 3)
    for wrt in differentiable(case.op):
        first = derivative(case, wrt)
        for again in differentiable(first.op):
            assert_gradient(first, again, seed=4)


def test_steps_on_which_the_argument_has_no_part() -> None:
    formula = "let h[t, i] = x[t, i] + (h[t - 1, i] else 0)\n  output y: T[n, m]\n  y[t, i] = h[t, i] * w[i] * w[i]"
    assert_gradient(Case(load_text(SPEC.format(formula)), "Stepwise", {"x": (4, 3), "w": (3,)}), "w", seed=3)


def test_no_steps() -> None:
    case = case_of("of all others", 0)
    derived = derivative(case, "w")
    arrays = {"x": np.zeros((0, 3)), "w": np.array([1.0, 2.0, 3.0]), "grad_y": np.array([1.0, 1.0, 2.0])}
    np.testing.assert_array_equal(derived.call().run(arrays)["grad_w"], [2.0, 4.0, 12.0])


def test_a_step_reads_the_step_behind_it_and_looks_for_no_others() -> None:
    case = case_of("sums")
    (group,) = (r for r in recurrences(gradient(case.module, case.op, "x").definitions) if r.backward)
    (adjoint,) = group.members
    assert not any(e.indices for e in subexpressions(adjoint.value) if isinstance(e, Reduce))


# Networks ---------------------------------------------------------------------------------------

NETWORKS: dict[str, tuple[int, dict[str, Any]]] = {
    "gru": (3, {"direction": "bidirectional", "linear_before_reset": True}),
    "lstm": (4, {"direction": "bidirectional"}),
}
"""Gates, and attributes."""


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_of_recurrent_networks(name: str) -> None:
    gates, attributes = NETWORKS[name]
    rng, steps, batch, inputs, hidden = np.random.default_rng(6), 4, 2, 3, 2
    directions = 2 if attributes["direction"] == "bidirectional" else 1
    shapes = {"x": (steps, batch, inputs), "w": (directions, gates * hidden, inputs),
              "r": (directions, gates * hidden, hidden), "b": (directions, 2 * gates * hidden),
              "h": (directions, batch, hidden)}  # fmt: skip
    if name == "lstm":
        shapes |= {"c": (directions, batch, hidden), "p": (directions, 3 * hidden)}
    arguments = {n: rng.standard_normal(s) / 2 for n, s in shapes.items()}
    lengths = np.array([4, 2], np.int32)

    def network(x: Any, w: Any, r: Any, b: Any, h: Any, c: Any = None, p: Any = None) -> Any:
        states = (x, w, r, b, lengths, h) + ((c, p) if name == "lstm" else ())
        y, last = getattr(onnx_ops, name)(*states, hidden_size=hidden, results=2, **attributes)
        return onnx_ops.reduce_sum(y * y, keepdims=False) + onnx_ops.reduce_sum(last, keepdims=False)

    compiled = opgen.compile(network)
    found = opgen.gradient(compiled, wrt=tuple(shapes))(**arguments)
    for argument, grad in zip(shapes, found, strict=True):
        along = rng.standard_normal(shapes[argument])
        ahead, behind = (compiled(**arguments | {argument: arguments[argument] + s * along}) for s in (1e-6, -1e-6))
        expected = float(ahead - behind) / 2e-6
        assert abs(float(np.sum(grad * along)) - expected) <= 1e-6 * (1 + abs(expected)), (
            f"{name} by {argument}, seed 6"
        )
