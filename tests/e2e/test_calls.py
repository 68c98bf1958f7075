"""Calls of generated modules from end to end: every kind of tensor, `out`, examples, threads, sizes that change."""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from opgen.bindings.generate import generate
from opgen.diagnostics.calls import ArgumentError, ArgumentValueError
from opgen.runtime.call import specialize
from tests.bindings.modules import OPS, ROOT, SAMPLES, generated, imported

Array = npt.NDArray[Any]
RNG = np.random.default_rng(20)
X = RNG.integers(-4, 5, (2, 5, 6, 4)).astype(np.float32)
F = RNG.integers(-4, 5, (3, 2, 2, 6)).astype(np.float32)
ONES = [1, 1, 1, 1]


def _reference(x: Array, f: Array, stride: int = 1, pad: tuple[int, int, int, int] = (0, 0, 0, 0)) -> Array:
    """A grouped convolution in float64 by plain loops: whole numbers, so every type must give it exactly."""
    x = np.pad(x.astype(np.float64), ((0, 0), pad[:2], pad[2:], (0, 0)))
    f = f.astype(np.float64)
    height, width, depth, count = f.shape
    groups = x.shape[3] // depth
    rows, columns = (x.shape[1] - height) // stride + 1, (x.shape[2] - width) // stride + 1
    result = np.zeros((x.shape[0], rows, columns, count))
    each = count // groups
    for y in range(rows):
        for z in range(columns):
            window = x[:, y * stride : y * stride + height, z * stride : z * stride + width]
            for g in range(groups):
                taps, outs = slice(g * depth, (g + 1) * depth), slice(g * each, (g + 1) * each)
                result[:, y, z, outs] = np.einsum("nrsc,rsck->nk", window[..., taps], f[..., outs])
    return result


EXPECTED = _reference(X, F)


@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16, "float32", "float64", "int32"])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_every_type_and_layout(dtype: Any, layout: str) -> None:
    x, expected = X.astype(dtype), _reference(X, F, 2, (1, 1, 0, 1))
    pads, strides = [0, 0, 1, 1, 0, 1, 0, 0], [1, 2, 2, 1]
    if layout == "NCHW":
        x, expected = x.transpose(0, 3, 1, 2), expected.transpose(0, 3, 1, 2)
        pads, strides = [0, 0, 0, 0, 1, 1, 0, 1], [1, 1, 2, 2]
    found = generated(OPS).conv2d(x, F.astype(dtype), strides, "EXPLICIT", True, pads, layout)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.astype(np.float64), expected)


VIEWS: dict[str, Any] = {
    "negative": X[::-1, :, ::-1][::-1, :, ::-1],
    "stepped": np.repeat(X, 2, axis=2)[:, :, ::2],
    "fortran": np.asfortranarray(X),
    "swapped": X.astype(">f4"),
    "readonly": np.frombuffer(X.tobytes(), np.float32).reshape(X.shape),
    "unaligned": np.frombuffer(b"\0" + X.tobytes(), np.uint8)[1:].view(np.float32).reshape(X.shape),
    "list": X.tolist(),
    "nested tuples": tuple(map(tuple, X.tolist())),
    "memoryview": memoryview(X),
}


@pytest.mark.parametrize("name", VIEWS)
def test_every_kind_of_tensor(name: str) -> None:
    for _ in range(2):
        np.testing.assert_array_equal(generated(OPS).conv2d(VIEWS[name], F, ONES, "VALID"), EXPECTED)
        np.testing.assert_array_equal(generated(OPS).conv2d(VIEWS[name], F.tolist(), ONES, "VALID"), EXPECTED)


def test_broadcast_input() -> None:
    x = np.broadcast_to(X[:1], X.shape)
    np.testing.assert_array_equal(generated(OPS).conv2d(x, F, ONES, "VALID"), _reference(x, F))


def test_tensors_of_other_libraries() -> None:
    torch = pytest.importorskip("torch")
    found = generated(OPS).conv2d(torch.from_numpy(X), torch.from_numpy(F), ONES, "VALID")
    np.testing.assert_array_equal(found, EXPECTED)


def test_out_is_written_and_returned() -> None:
    for _ in range(2):
        out = np.full(EXPECTED.shape, np.nan, np.float32)
        assert generated(OPS).conv2d(X, F, ONES, "VALID", out=out) is out
        np.testing.assert_array_equal(out, EXPECTED)


@pytest.mark.parametrize("reach", [0, 4, -4])
def test_out_may_not_overlap_an_input(reach: int) -> None:
    memory = np.zeros(4000, np.float32)
    x = memory[100 : 100 + X.size].reshape(X.shape)
    x[...] = X
    before = memory.copy()
    out = memory[100 + reach : 100 + reach + EXPECTED.size].reshape(EXPECTED.shape)
    for _ in range(2):
        with pytest.raises(
            ArgumentValueError, match="argument 'out': expected memory that no input or other result uses"
        ):
            generated(OPS).conv2d(x, F, ONES, "VALID", out=out)
    np.testing.assert_array_equal(memory, before)


def test_inputs_are_left_alone() -> None:
    x, f = X.copy(), F.copy()
    generated(OPS).conv2d(x, f, ONES, "SAME")
    assert x.tobytes() == X.tobytes()
    assert f.tobytes() == F.tobytes()


def test_none_means_the_default() -> None:
    ops = generated(OPS)
    found = ops.conv2d(X, F, ONES, "VALID", None, None, None, None, None, out=None)
    np.testing.assert_array_equal(found, EXPECTED)
    x, f = X, F[:, :, :1].repeat(4, 2)
    plain = ops.depthwise_conv2d(x, f, ONES, "SAME")
    np.testing.assert_array_equal(ops.depthwise_conv2d(x, f, ONES, "SAME", None, None, None, None), plain)
    np.testing.assert_array_equal(ops.depthwise_conv2d(x, f, ONES, "SAME", [1, 1]), plain)
    np.testing.assert_array_equal(ops.depthwise_conv2d(x, f, ONES, "SAME", dilations=[1, 1]), plain)
    with pytest.raises(ArgumentValueError) as caught:
        ops.depthwise_conv2d(x, f, ONES, "SAME", [1, 1], dilations=[1, 1])
    message = "depthwise_conv2d: argument 'dilations': expected only one of 'rate' and 'dilations', given both"
    assert str(caught.value) == message


def test_padding_as_a_list() -> None:
    ops = generated(OPS)
    f = F[:, :, :1].repeat(4, 2)
    pairs = [[0, 0], [2, 1], [0, 3], [0, 0]]
    expected = ops.depthwise_conv2d_native(X, f, ONES, "EXPLICIT", [0, 0, 2, 1, 0, 3, 0, 0])
    np.testing.assert_array_equal(ops.depthwise_conv2d(X, f, ONES, pairs), expected)
    np.testing.assert_array_equal(ops.depthwise_conv2d(X, f, ONES, np.array(pairs)), expected)
    with pytest.raises(ArgumentValueError, match="expected 0 for the batch and channel dimensions, given") as caught:
        ops.depthwise_conv2d(X, f, ONES, [[1, 0], [2, 1], [0, 3], [0, 0]])
    assert caught.value.given == "[[1, 0], [2, 1], [0, 3], [0, 0]]"


@pytest.mark.parametrize("shapes", [((0, 5, 6, 4), (3, 2, 2, 6)), ((2, 5, 6, 0), (3, 2, 0, 6)), ((2, 5, 6, 4), (3, 2,
2, 0)), ((2, 5, 6, 4), (0, 2, 2, 6))])  # fmt: skip
def test_sums_over_nothing_are_zero(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    found = generated(OPS).conv2d(np.ones(shapes[0], np.float32), np.ones(shapes[1], np.float32), ONES, "SAME")
    assert found.shape == (shapes[0][0], 5, 6, shapes[1][3])
    assert not found.any()


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_gradients_by_nothing_are_zero(dtype: npt.DTypeLike) -> None:
    """Rows of no places, of types that are converted before they are used."""
    grad, filter_ = np.ones((1, 2, 2, 0), dtype), np.ones((1, 4, 2, 2), dtype)
    found = generated(OPS).conv2d_backprop_input([1, 4, 4, 2], filter_, grad, [1, 1, 2, 2], "VALID", data_format="NCHW")
    assert found.shape == (1, 4, 4, 2)
    assert not found.any()


def test_absurd_sizes_are_refused() -> None:
    most = 2**31 - 1
    for pads in ([0, 0, most, most, most, most, 0, 0], [0, 0, most, 0, 2**20, 0, 0, 0]):
        with pytest.raises(ArgumentError) as caught:
            generated(OPS).conv2d(X, F, ONES, "EXPLICIT", explicit_paddings=pads)
        assert isinstance(caught.value, ValueError | MemoryError)


@pytest.mark.parametrize("path", [OPS, SAMPLES], ids=lambda p: p.stem)
def test_examples(path: Path) -> None:
    module = generated(path)
    tests = [t for t in doctest.DocTestFinder().find(module, module.__name__, module) if t.examples]
    for test in tests:
        output: list[str] = []
        runner = doctest.DocTestRunner(verbose=False)
        runner.run(test, out=output.append)
        assert runner.summarize(verbose=False).failed == 0, "".join(output)
    assert tests or path == SAMPLES


def test_the_sample_ops() -> None:
    ops = generated(SAMPLES)
    a, b = RNG.standard_normal((5, 7)), RNG.standard_normal((7, 3))
    np.testing.assert_allclose(ops.mat_mul(a, b), a @ b, rtol=1e-12, atol=1e-12)
    e = np.exp(a - a.max(1, keepdims=True))
    np.testing.assert_allclose(ops.softmax(a), e / e.sum(1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(ops.scaled_add(a[:, :1], a[:1], 0.5), 0.5 * a[:, :1] + a[:1], rtol=1e-12)
    np.testing.assert_array_equal(ops.shift(np.arange(5, dtype=np.int32), 2, -1), [-1, -1, 0, 1, 2])
    np.testing.assert_array_equal(ops.clamp(np.array([[1.0, -2.0, 3.0]]), mode="PRODUCT"), [0.0])
    normal = (a - a.mean(1, keepdims=True)) / np.sqrt(a.var(1, keepdims=True) + 0.001)
    np.testing.assert_allclose(ops.layer_norm(a, np.ones(7), np.zeros(7)), normal, rtol=1e-10, atol=1e-12)


def test_many_threads_at_once() -> None:
    wrong: list[str] = []

    def work(stride: int) -> None:
        for _ in range(20):
            found = generated(OPS).conv2d(X, F, [1, stride, stride, 1], "VALID")
            if not np.array_equal(found, _reference(X, F, stride)):
                wrong.append(f"stride {stride}")

    workers = [threading.Thread(target=work, args=(1 + i % 3,)) for i in range(6)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert wrong == []


@pytest.mark.parametrize("policy", ["auto", "always", "never"])
def test_policies(policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPGEN_CACHE_DIR", str(tmp_path / "cache"))  # kernels of earlier runs count as found
    monkeypatch.setenv("OPGEN_SPECIALIZE", policy)
    monkeypatch.setattr(specialize, "SPECIALIZATIONS", 2)
    ops = imported(SAMPLES, tmp_path)
    for n in range(1, 6):
        a, b = RNG.standard_normal((n, 3)), RNG.standard_normal((3, n))
        np.testing.assert_allclose(ops.mat_mul(a, b), a @ b, rtol=1e-12, atol=1e-12)
    counters = ops._library.kernels["MatMul"].counters
    expected = {"auto": (2, 1, 2, 3), "always": (5, 0, 5, 0), "never": (0, 1, 0, 5)}[policy]
    found = (counters.specialized, counters.generic, counters.specialized_plans, counters.generic_plans)
    assert found == expected


def test_an_unknown_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPGEN_SPECIALIZE", "allways")
    with pytest.raises(specialize.UserError) as caught:
        specialize.policy()
    message = "OPGEN_SPECIALIZE is 'allways', expected auto, always or never; did you mean 'always'?"
    assert str(caught.value) == message


def test_import_is_light(tmp_path: Path) -> None:
    """Importing a generated module brings numpy and a few small files: no parser, no templates, no LLVM."""
    generate([OPS], tmp_path)
    heavy = ("lark", "jinja2", "llvmlite", "ml_dtypes", "click", "opgen.spec.syntax.parse", "opgen.lower")
    script = f"import sys, nn_ops; print([m for m in {heavy} if m in sys.modules])"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    command = [sys.executable, "-c", script]
    assert subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout == "[]\n"
