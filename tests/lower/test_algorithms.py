"""Constants and algorithms as loop IR: what is written out, what is left out, and what becomes of Inf and NaN."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from opgen.grad import load, load_text
from opgen.loop.bind import bind
from opgen.loop.interpret import interpret
from opgen.loop.print import print_kernel
from opgen.loop.verify import verify
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.kernels.run import run_kernel
from opgen.schedule.default import scheduled
from tests.harness import Call, random_arrays

ROOT = Path(__file__).parents[2]
NN = load(ROOT / "specs" / "nn_ops.op")
PAGE = (ROOT / "specs" / "LANGUAGE.md").read_text(encoding="utf-8")
CORRELATE = load_text(next(t for t in re.findall(r"```op\n(.*?)```", PAGE, re.DOTALL) if "op Correlate" in t))

WEIGHTED = """
op Weighted {
  type T in {float32, int32}
  input x: T[rows, count]
  output y: T[rows, count]
  constant w[3] = [1, 0, -2]
  constant v[2, 2] = [[1, 2], [3, 4]]
  y[i, j] = sum[a](w[a] * x[i + a - 1, j]) + v[i % 2, 1] * x[i, j] + sum[a < rows](v[0, a % 2] * x[a, j])
}
"""


def weighted(x: np.ndarray) -> np.ndarray:
    padded = np.pad(x, ((1, 1), (0, 0)))
    rows = np.arange(len(x))[:, None]
    return padded[:-2] - 2 * padded[2:] + np.where(rows % 2, 4, 2) * x + np.sum(np.where(rows % 2, 2, 1) * x, 0)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("rows", [0, 1, 4, 5])
def test_constants_are_numbers(dtype: str, rows: int) -> None:
    module = load_text(WEIGHTED)
    call = Call(module, module.op("Weighted"), {"x": (rows, 3)}, dtype=dtype)
    x = np.random.default_rng(rows).integers(-8, 9, (rows, 3)).astype(dtype)
    assert np.array_equal(call.run({"x": x})["y"], weighted(x))


def test_a_term_with_the_factor_0_is_left_out() -> None:
    module = load_text(WEIGHTED)
    call = Call(module, module.op("Weighted"), {"x": (3, 1)}, dtype="float32")
    assert "* 0.0f32" not in print_kernel(call.kernel()[0])
    text = "op Middle { type T in {float32} input x: T[n] output y: T[n] constant w[3] = [1, 0, 1] y[i] = BODY }"
    middle = load_text(text.replace("BODY", "sum[a](w[a] * x[i + a - 1])"))
    x = np.array([1, np.inf, 2], np.float32)
    assert Call(middle, middle.ops[0], {"x": (3,)}, dtype="float32").run({"x": x})["y"].tolist() == [np.inf, 3, np.inf]


def test_elements_of_constants_are_integers_among_integers() -> None:
    text = """
    op Moved {
      type T in {float32}
      input x: T[n, 3]
      output taken: T[n, 3]
      output apart: T[n, 3]
      output added: T[n]
      output chosen: T[n, 3]
      output halves: T[n, 3]
      constant p[3] = [2, 0, 1]
      constant q[3] = [1, -1, 5]
      taken[i, k] = x[i, p[k]] else 0
      apart[i, k] = x[i * p[k] - q[k], p[q[k] % 3]] else 7
      added[i] = sum[k < 2 if i != p[k]](x[i, p[k]])
      chosen[i, k] = if i < p[k] or p[k] < q[k] then x[i, k] else T(i // p[k])
      halves[i, k] = x[i, k] * T((p[k] + 1) // 2)
    }
    """
    module = load_text(text)
    x = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    given = Call(module, module.ops[0], {"x": (5, 3)}, dtype="float32").run({"x": x})
    p, q, i = np.array([2, 0, 1]), np.array([1, -1, 5]), np.arange(5)[:, None]
    row = i * p - q
    assert np.array_equal(given["taken"], x[:, p])
    assert np.array_equal(given["apart"], np.where((row >= 0) & (row < 5), x[row.clip(0, 4), p[q % 3]], 7))
    assert np.array_equal(given["added"], (x[:, p[:2]] * (i != p[:2])).sum(1))
    assert np.array_equal(given["chosen"], np.where((i < p) | (p < q), x, np.where(p, i // np.maximum(p, 1), 0)))
    assert np.array_equal(given["halves"], x * ((p + 1) // 2))


def test_products_of_constants_are_exact() -> None:
    text = "op Third { type T in {float32} input x: T[n] output y: T[n] constant w[1] = [1 / 3] y[i] = BODY }"
    module = load_text(text.replace("BODY", "sum[a](w[a] * 3 * x[i + a])"))
    assert "0.333" not in print_kernel(Call(module, module.ops[0], {"x": (3,)}, dtype="float32").kernel()[0])
    x = np.arange(3, dtype=np.float32)
    assert np.array_equal(Call(module, module.ops[0], {"x": (3,)}, dtype="float32").run({"x": x})["y"], x)


@pytest.mark.parametrize("count", [3, 4, 9, 10])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_algorithm_gives_the_results_of_the_definition(count: int, dtype: str) -> None:
    op = CORRELATE.op("Correlate")
    shapes = {"signal": (count,), "filter": (3,)}
    arrays = random_arrays(shapes, dtype, count)
    by_definition, by_pairs = (
        Call(CORRELATE, op, shapes, dtype=dtype, algorithm=name).run(arrays)["filtered"] for name in (None, "by_pairs")
    )
    unit = np.finfo(dtype).eps / 2
    largest = np.abs(arrays["signal"]).max() * np.abs(arrays["filter"]).max()
    # 3 * 2 * 1.5 is the product of the transforms' norms, 3 * 2 + 3 the roundings on the way of a value.
    assert np.abs(by_pairs - by_definition).max() <= 2 * 9 * 9 * unit * largest
    assert not np.array_equal(by_pairs, by_definition) or count < 9


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan, 3e38])
@pytest.mark.parametrize("where", ["signal", "filter"])
def test_results_that_are_not_finite_are_the_definitions(bad: float, where: str) -> None:
    op = CORRELATE.op("Correlate")
    shapes = {"signal": (9,), "filter": (3,)}
    arrays = random_arrays(shapes, "float32", 1)
    arrays[where][1:3] = bad
    with np.errstate(all="ignore"):
        kept, again = (
            Call(CORRELATE, op, shapes, dtype="float32", algorithm=name).run(arrays)["filtered"]
            for name in (None, "by_pairs")
        )
    assert not np.isfinite(kept).all()
    assert np.array_equal(kept.view(np.int32), again.view(np.int32))


SHAPES = [((1, 5, 4, 2, 3), "SAME", "NHWC"), ((2, 4, 7, 3, 2), "VALID", "NCHW"), ((0, 3, 3, 2, 2), "SAME", "NHWC")]
OPS = ["Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"]


def window_call(name: str, sizes: tuple[int, ...], padding: str, layout: str, algorithm: str | None) -> Call:
    """A call of one of the family, float64, with windows of 3 x 3."""
    n, h, w, c, k = sizes
    lost = 0 if padding == "SAME" else 2
    images = {"NHWC": (0, 1, 2, 3), "NCHW": (0, 3, 1, 2)}[layout]
    given = {
        "input": tuple((n, h, w, c)[i] for i in images),
        "filter": (3, 3, c, k),
        "out_backprop": tuple((n, h - lost, w - lost, k)[i] for i in images),
    }
    op = NN.op(name)
    vectors = {"input_sizes": given["input"], "filter_sizes": given["filter"]}
    attrs = {"strides": (1, 1, 1, 1), "padding": padding, "data_format": layout}
    asked = {i.name for i in op.inputs}
    shapes = {t.name: given[t.name] for t in op.tensors}
    return Call(NN, op, shapes, attrs, {v: s for v, s in vectors.items() if v in asked}, "float64", algorithm)


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("algorithm", ["minimal_filtering", "minimal_filtering_4"])
@pytest.mark.parametrize(("sizes", "padding", "layout"), SHAPES)
def test_the_family_by_algorithms(name: str, algorithm: str, sizes: tuple[int, ...], padding: str, layout: str) -> None:
    """Compiled from the default schedule, between guard pages, against the interpreted definition."""
    definition = window_call(name, sizes, padding, layout, None)
    call = window_call(name, sizes, padding, layout, algorithm)
    arrays = random_arrays(call.shapes, "float64", sum(sizes))
    expected = definition.run(arrays)["output"]
    generic, values = call.kernel()
    kernel = simplify(bind(generic, values))
    verify(kernel)
    given = {b.name: arrays[b.name] for b in kernel.inputs}
    fast = run_kernel(legalize(scheduled(kernel)[1]), given, {}, guarded=True)["output"]
    assert fast.shape == expected.shape
    if np.any(expected):
        assert np.abs(fast - interpret(kernel, given, {})["output"]).max() <= 1e-13 * max(1, np.abs(expected).max())
        error = np.linalg.norm(fast - expected) / np.linalg.norm(expected)
        assert 0 < error <= 64 * 2.0**-53  # of some twenty units that were seen at most
    else:
        assert not np.any(fast)


def test_gradients_told_by_tensors_have_the_same_algorithms() -> None:
    for name in OPS[1:]:
        first, second = ({a.name: a.definitions for a in NN.op(n).algorithms} for n in (name, f"{name}V2"))
        assert first == second
        assert set(first) == {"minimal_filtering", "minimal_filtering_4"}
