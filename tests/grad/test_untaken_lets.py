"""Intermediates that are not taken, or not used, have no part in a gradient; those that are finite stay plain."""

from __future__ import annotations

import numpy as np
import pytest

from opgen.grad import gradient, load_text
from opgen.spec.model.model import Conditional, Operation
from opgen.spec.model.walk import reads, subexpressions
from tests.grad.cases import Array, Case, cotangent, derivative, run

HEAD = "op A {\n  type T in {float64}\n  input x: T[n]\n  output y: T[n]\n"
ZERO_FOUR = np.array([0.0, 4.0])


def _case(body: str) -> Case:
    lines = "".join(f"  {line}\n" for line in body.split("; "))
    return Case(load_text(f"{HEAD}{lines}}}"), "A", {"x": (2,)})


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("let s[i] = sqrt(x[i]); y[i] = if x[i] > 0 then s[i] else 0", [0, 0.25]),
        ("let s[i] = sqrt(x[i]); let t[i] = 3 * s[i]; y[i] = if x[i] > 0 then t[i] else 0", [0, 0.75]),
        ("let s[i] = sqrt(x[i]); y[i] = if x[i] > 0 then sum[r < 1](s[i + r] * 2) else 0", [0, 0.5]),
        ("let d[i] = 1 / (x[i] - x[i]); y[i] = 2 * x[i]", [2, 2]),
        ("let d[i] = log(x[i]); let e[i] = 1 / d[i] where i < n; y[i] = 2 * x[i]", [2, 2]),
        ("let d[i] = 1 / x[i]; y[i] = if d[i] > 1 then 3 * x[i] else x[i]", [3, 1]),
        ("let r[i] = 1 / x[i]; let s[i] = x[i] * r[i]; y[i] = if x[i] > 0 then s[i] + x[i] else 0", [0, 1]),
        ("let s[i] = sqrt(x[i]); y[i] = s[i * 2 + 1] else 0", [0, 0.25]),
        ("let s[i] = sqrt(x[i]); y[i] = if x[i] > 0 then max[j](s[j]) else 0", [0, 0.25]),
        ("let e[i] = exp(1000 * x[i]); y[i] = if x[i] < 1 then e[i] else x[i]", [1000, 1]),
        ("let p[i] = pow(x[i], 0.5); let q[] = sum[j if x[j] > 1](p[j]); y[i] = q[] * T(i)", [0, 0.25]),
        ("let s[i] = max[r < 2](x[i + r + 1]) where i < n; let t[i] = s[i] * x[i];"
         " y[i] = if x[i] < 1 then t[i] else 0", [4, 0]),
        ("let s[i] = min[r < n - 2](x[r]) where i < n; let t[i] = s[i] * x[i];"
         " y[i] = if x[i] < 1 then x[i] else (if x[i] < 2 then t[i] else 0)", [1, 0]),
        ("let p[i] = prod[r < 2](sqrt(x[i]) + T(r)); y[i] = if x[i] > 0 then p[i] else 0", [0, 1.25]),
    ],
)  # fmt: skip
def test_no_part(body: str, expected: list[float]) -> None:
    case = _case(body)
    backward = derivative(case, "x")
    found = run(backward, {"x": ZERO_FOUR, cotangent(backward): np.ones(2)})
    np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_by_what_it_is_multiplied_with() -> None:
    """A mean over no more than what counts, where nothing does."""
    text = """op Mean {
      type T in {float64}
      input x: T[n, m]
      input count: T[n]
      output y: T[n]
      let inverse[i] = 1 / count[i]
      let mean[i] = sum[j](x[i, j] * inverse[i])
      y[i] = if count[i] > 0 then mean[i] else 0
    }"""
    arrays: dict[str, Array] = {"x": np.arange(6.0).reshape(2, 3), "count": np.array([0.0, 2.0])}
    case = Case(load_text(text), "Mean", {"x": (2, 3), "count": (2,)})
    for wrt, expected in (("x", [[0, 0, 0], [0.5, 0.5, 0.5]]), ("count", [0, -3])):
        backward = derivative(case, wrt)
        found = run(backward, {**arrays, cotangent(backward): np.ones(2)})
        assert found.tolist() == expected


def test_a_gradient_of_0_differs_from_what_is_not_taken() -> None:
    """The gradient is linear in what it is given: so its derivative by that is there where that is 0."""
    once = derivative(_case("let s[i] = sqrt(x[i]); y[i] = if x[i] > 0 then s[i] else 0"), "x")
    twice = derivative(once, cotangent(once))
    given = {"x": ZERO_FOUR, cotangent(once): np.zeros(2), cotangent(twice): np.ones(2)}
    assert run(twice, given).tolist() == [0, 0.25]


@pytest.mark.parametrize("wrt", ["x", "w"])
def test_products_stay_plain(wrt: str) -> None:
    """A rectified product of matrices: what is not taken is chosen once, the sums are of products alone."""
    text = """op Layer {
      type T in {float32}
      input x: T[n, k]
      input w: T[k, m]
      output y: T[n, m]
      let t[i, j] = sum[r](x[i, r] * w[r, j])
      y[i, j] = max(t[i, j], 0)
    }"""
    module = load_text(text)
    *_, final = gradient(module, module.op("Layer"), wrt).definitions
    assert not any(isinstance(e, Conditional) for e in subexpressions(final.value))
    assert not any(isinstance(e, Operation) and e.op != "*" for e in subexpressions(final.value))


def test_an_extreme_of_nothing_is_infinite() -> None:
    """A condition may leave a `max` without a term: where that is not taken it has no part."""
    lines = (
        "let s[i] = max[r < 2 if r < i](x[i] - T(r)) where i < n",
        "y[i] = if i > 0 then sum[r < 1](s[i + r] * x[i]) else x[i]",
    )
    backward = derivative(_case("; ".join(lines)), "x")
    found = run(backward, {"x": ZERO_FOUR, cotangent(backward): np.ones(2)})
    assert found.tolist() == [1, 8]


WEIGHED = """op Weighed {{
  type T in {{float64}}
  input x: T[n, k]
  input v: T[k, m]
  input c: bool[n]
  output y: T[n, m]
  let s[i, j] = 1 / x[i, j]
  let o[i, z] = sum[j](s[i, j] * v[j, z])
  y[i, z] = {taken}
}}
"""


@pytest.mark.parametrize(("seed", "sizes"), [(0, (2, 3, 2)), (1, (7, 5, 1)), (2, (17, 33, 40)), (3, (1, 9, 16))])
@pytest.mark.parametrize("taken", ["if c[i] then o[i, z] else 0", "if c[i] and o[i, z] > 0 then o[i, z] else 0"])
def test_products_of_matrices(taken: str, seed: int, sizes: tuple[int, int, int]) -> None:
    """Rows of an infinite factor that nothing takes are left out of a product, those that are taken are not."""
    n, k, m = sizes
    rng = np.random.default_rng(seed)
    module = load_text(WEIGHED.format(taken=taken))
    case = Case(module, "Weighed", {"x": (n, k), "v": (k, m), "c": (n,)})
    x, v, g = rng.uniform(1, 2, (n, k)), rng.standard_normal((k, m)), rng.standard_normal((n, m))
    c = rng.random(n) < 0.5
    backward = derivative(case, "v")
    for infinite in ([], [(0, 0)], [(n - 1, k - 1), (0, k // 2)]):
        for place in infinite:
            x[place] = 0
        with np.errstate(all="ignore"):
            s = 1 / x
            reached = np.where(c[:, None] & ((s @ v > 0) if "and" in taken else True), g, 0)
            terms = np.where(reached[:, None, :] == 0, 0, s[:, :, None] * reached[:, None, :])
            expected = terms.sum(0)
        found = run(backward, {"x": x, "v": v, "c": c, cotangent(backward): g})
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12, err_msg=f"seed {seed}, {infinite}")


def test_products_of_matrices_are_choices_of_no_term() -> None:
    """What is summed most of the time are plain products; the choice is made where they come to NaN."""
    module = load_text(WEIGHED.format(taken="if c[i] then max(o[i, z], 0) else 0"))
    backward = gradient(module, module.op("Weighed"), "v")
    products = {d.tensor: d.value for d in backward.definitions}
    plain = products["grad_v_plain"]
    assert not any(isinstance(e, Conditional) for e in subexpressions(plain))
    row, element = [e.condition for e in subexpressions(products["grad_v"]) if isinstance(e, Conditional)][:2]
    for test, tensor in ((row, "grad_v_row"), (element, "grad_v_plain")):
        assert isinstance(test, Operation)
        assert test.op == "!="
        assert {r.tensor for r in reads(test)} == {tensor}
