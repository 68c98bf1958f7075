"""Functions of generic ops: forms found from arguments, messages, documentation; libraries and stages refuse them."""

from __future__ import annotations

import doctest
import inspect
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import opgen
from generated import onnx_ops
from opgen.bindings.c.build import chosen
from opgen.bindings.docs.support import support_page
from opgen.bindings.generate import generate
from opgen.bindings.python import generic
from opgen.diagnostics import UserError
from opgen.diagnostics.calls import ArgumentError
from opgen.grad import load
from tests.bindings.modules import execute

SPEC = Path(__file__).parents[1] / "specs/generic.op"


@pytest.fixture(scope="module")
def ops() -> ModuleType:
    return opgen.load(SPEC)


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_ranks_are_found_from_arguments(ops: ModuleType) -> None:
    for x in (X, X[0], X.reshape(1, 2, 3)):
        for axis in range(-x.ndim, x.ndim):
            e = np.exp(x - x.max(axis, keepdims=True))
            np.testing.assert_allclose(ops.softmax(x, axis=axis), e / e.sum(axis, keepdims=True), rtol=1e-6)


def test_lists_take_the_type_of_arrays(ops: ModuleType) -> None:
    found = ops.add(X.astype(np.int32), [[1], [2]])
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, X + np.array([[1], [2]]))
    assert ops.add([1], [2]).dtype == np.float32


def test_lists_of_conditions_are_of_bool() -> None:
    found = onnx_ops.where([True, False], [[True], [False]], False)
    assert found.dtype == np.bool_
    np.testing.assert_array_equal(found, [[True, False], [False, False]])
    assert onnx_ops.cast_like([0, 2], [True]).dtype == np.bool_
    with pytest.raises(ArgumentError, match=r"'A': expected a tensor of type int8 .* float64, given type bool"):
        onnx_ops.add([True], [1])


def test_examples_of_several_results_and_of_types_by_attributes_are_shown_as_they_are() -> None:
    lines = str(onnx_ops.dynamic_quantize_linear.__doc__).splitlines()
    at = next(n for n, line in enumerate(lines) if ">>>" in line)
    assert lines[at].strip() == ">>> [y.tolist() for y in dynamic_quantize_linear(x=[-55, 0, 200])]"
    assert lines[at + 1].strip() == "[[0, 55, 255], 1.0, 55]"
    assert "[[1.0, 0.0], [0.0, 1.0]]" in str(onnx_ops.eye_like.__doc__)


def test_several_inputs_and_results(ops: ModuleType) -> None:
    np.testing.assert_array_equal(ops.concat([X, X, X], axis=0), np.concatenate([X, X, X]))
    for one, other in zip(ops.split(X, axis=1, results=3), np.split(X, 3, 1), strict=True):
        np.testing.assert_array_equal(one, other)
    one, two = ops.split(X, np.array([1, 2]), axis=1, results=2)
    np.testing.assert_array_equal(np.concatenate([one, two], 1), X)
    (whole,) = ops.split(X, axis=1)
    np.testing.assert_array_equal(whole, X)


def test_results_are_written_where_the_caller_says(ops: ModuleType) -> None:
    out = np.empty((2, 3), np.float32)
    assert ops.add(X, X, out=out) is out
    parts = (np.empty((2, 1), np.float32), np.empty((2, 2), np.float32))
    assert ops.split(X, [1, 2], axis=1, results=2, out=parts)[1] is parts[1]
    np.testing.assert_array_equal(np.concatenate(parts, 1), X)


def test_optional_inputs_static_inputs_and_types(ops: ModuleType) -> None:
    np.testing.assert_array_equal(ops.clip(X, None, np.float32(2)), np.minimum(X, 2))
    np.testing.assert_array_equal(ops.reshape(X, (3, -1)), X.reshape(3, 2))
    assert ops.cast(X, to="double").dtype == np.float64
    assert ops.cast(X, to=np.int32).dtype == np.int32
    np.testing.assert_array_equal(ops.raw_ops.Gemm(A=X, B=X, C=None, transB=True), X @ X.T)


def test_a_call_of_a_known_form_makes_nothing(ops: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    ops.softmax(X, axis=0)
    ops.reduce_mean(X, [0])
    made: list[object] = []
    monkeypatch.setattr(generic.Generic, "_function", lambda self, module, instance: made.append(instance))
    ops.softmax(X + 1, axis=0)
    ops.reduce_mean(X + 1, [0])
    assert not made


def test_numbers_whose_values_count_are_looked_at_once(ops: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for axes in ([0], [1], np.array([1], np.int64)):
        ops.reduce_mean(X, axes)
    monkeypatch.setattr(generic.Generic, "_found", lambda *_: pytest.fail("the op is looked at again"))
    for axes, axis in (([0], 0), ([1], 1), (np.array([1], np.int64), 1)):
        np.testing.assert_allclose(np.ravel(ops.reduce_mean(X, axes)), X.mean(axis), rtol=1e-6)


def test_prepared_calls(ops: ModuleType) -> None:
    e = np.exp(X - X.max(0))
    run = ops.prepare.softmax(X, axis=0)
    np.testing.assert_allclose(run(X), e / e.sum(0), rtol=1e-6)
    out = np.empty_like(X)
    assert run(X, out=out) is out
    np.testing.assert_allclose(out, e / e.sum(0), rtol=1e-6)
    np.testing.assert_array_equal(ops.prepare.concat([X, X], axis=0)(X, X + 1), np.concatenate([X, X + 1]))
    one, two = ops.prepare.split(X, [1, 2], axis=1, results=2)(X)  # the sizes are a part of it
    np.testing.assert_array_equal(np.concatenate([one, two], 1), X)
    highest = np.float32(2)
    np.testing.assert_array_equal(ops.prepare.clip(X, None, highest)(X, highest), np.minimum(X, 2))
    with pytest.raises(ArgumentError, match=r"Softmax: argument 'input': expected float32\[2, 3\]"):
        run(X[0])
    with pytest.raises(ArgumentError, match="'axis': expected an axis from -2 to 1, given 2"):
        ops.prepare.softmax(X, axis=2)


def test_values_of_attributes_share_a_function(ops: ModuleType) -> None:
    x, w = np.ones((1, 1, 5), np.float32), np.ones((1, 1, 2), np.float32)
    for stride in (1, 2, 3):
        assert ops.conv(x, w, strides=[stride]).shape == (1, 1, (5 - 2) // stride + 1)
    assert len(ops._conv._functions) == 1


MESSAGES = {
    "softmax(X, axis=2)": "'axis': expected an axis from -2 to 1, given 2",
    "softmax(X[0, 0])": "'axis': expected no axis, 'input' having none, given -1",
    "softmax(X > 1)": "'input': expected a tensor of type float32, given type bool",
    "concat([], axis=0)": "'inputs': expected one tensor or more, given nothing",
    "concat([X, X[0]], axis=0)": "'inputs': expected a tensor of rank 2, given rank 1",
    "add(X, X[:, :2])": "'B': expected dimension 1 to be 3 or 1 (dims_1), given shape [2, 2]",
    "mat_mul(X, X[0, 0])": "'B': expected a tensor of rank at least 1, given rank 0",
    "conv([[[1]]], [[[1]]], pads=[1])": "'pads': expected a list of 2, each a 32-bit integer >= 0, given [1]",
    'cast(X, to="bool")': "'to': expected one of float32, int32, float64, given 'bool'",
    "transpose(X, perm=[0, 0])": "'perm': expected different axes from -2 to 1, given [0, 0]",
    "transpose(X, perm=[0])": "'perm': expected as many as the tensor has dimensions, given [0]",
    "reshape(X, [1.5])": "'shape': expected integers, given [1.5]",
    "reduce_mean(X, [5])": "'axes': expected different axes from -2 to 1, given [5]",
    "split(X, [1], results=2)": "'split': expected values that fit (there is no element 1 of 1), given [1]",
}
"""Calls, and what their errors say after the op: the values that are wrong; types, where the error is TypeError."""


@pytest.mark.parametrize("call", MESSAGES)
def test_messages(ops: ModuleType, call: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        eval(f"ops.{call}", {"ops": ops, "X": X})
    assert str(caught.value).partition(": argument ")[2] == MESSAGES[call]
    of_type = any(word in MESSAGES[call] for word in ("of type", "given nothing", "integers, given"))
    assert isinstance(caught.value, TypeError) == of_type


def test_functions_are_documented(ops: ModuleType) -> None:
    assert str(inspect.signature(ops.softmax)) == (
        "(input: 'TensorLike', *, axis: 'int | None' = -1, out: 'Array | None' = None) -> 'Array'"
    )
    assert str(inspect.signature(ops.concat)).startswith("(inputs: 'Sequence[TensorLike]', *, axis: 'int'")
    text = ops.mat_mul.__doc__
    assert "A: T[batch... | 1, rows..., depth]." in text
    assert "Y[b..., i..., j...] = sum[k](A[b..., i..., k] * B[b..., k, j...])" in text


def test_a_generated_module_is_the_same(tmp_path: Path) -> None:
    generate([SPEC], tmp_path)
    module = execute("generic", (tmp_path / "generic.py").read_text(encoding="utf-8"), tmp_path)
    np.testing.assert_array_equal(module.add(X, X[0]), X + X[0])
    assert "| Softmax | `softmax` |" in (tmp_path / "generic.md").read_text(encoding="utf-8")
    assert not generate([SPEC], tmp_path)


def test_examples_are_doctests(tmp_path: Path) -> None:
    spec = tmp_path / "joined.op"
    spec.write_text(
        'op Joined {\n  """Tensors in a row."""\n  type T in {float32}\n  inputs parts: T[each n] one or more\n'
        "  let start... = starts(n)...\n  output joined: T[sum(n...)]\n"
        "  joined[j] = if j < start + n then (parts[j - start] else 0)...\n"
        '  example "two" {\n    parts = [[1], [2, 3]]\n    joined = [1, 2, 3]\n  }\n}\n',
        encoding="utf-8",
    )
    module = opgen.load(spec)
    tests = [t for t in doctest.DocTestFinder().find(module, "joined", module) if t.examples]
    results = [doctest.DocTestRunner(verbose=False).run(t) for t in tests]
    assert [(r.attempted, r.failed) for r in results] == [(1, 0)]


def test_capture_records_the_plain_op(ops: ModuleType) -> None:
    def block(x, y):  # types are told when it is called
        return ops.softmax(ops.add(x, y), axis=0)

    compiled = opgen.compile(block)
    expected = np.exp(X + 1) / np.exp(X + 1).sum(0)
    np.testing.assert_allclose(compiled(X, np.ones(3, np.float32)), expected, rtol=1e-5)


def test_zeros_of_either_sign_and_nan_are_attributes_of_their_own(tmp_path: Path) -> None:
    """Called, and within a captured function."""
    path = tmp_path / "over.op"
    path.write_text("""
op Over {
  type T in {float32}
  input x: T[dims...]
  attr by: float = 1.0
  output y: T[dims...]
  y[i...] = x[i...] / T(by)
}
""")
    over = opgen.load(path).over
    one = np.ones(2, np.float32)

    @opgen.compile
    def both(x: object) -> object:
        return over(x, by=0.0), over(x, by=-0.0), over(x, by=float("nan"))

    with np.errstate(divide="ignore"):
        for by in (0.0, -0.0, float("nan"), 0.0, -2.0):
            np.testing.assert_array_equal(over(one, by=by), one / np.float32(by))
        for found, by in zip(both(one), (0.0, -0.0, float("nan")), strict=True):
            np.testing.assert_array_equal(found, one / np.float32(by))


def test_libraries_refuse_generic_ops() -> None:
    module = load(SPEC)
    with pytest.raises(UserError, match="all ops of 'generic' are generic: a library has forms of fixed ranks"):
        chosen(module, None)
    with pytest.raises(UserError, match="'softmax' is generic: a library has forms of fixed ranks"):
        chosen(module, ("softmax",))


def test_the_gradient_of_a_generic_op_is_of_its_calls(ops: ModuleType) -> None:
    with pytest.raises(UserError, match="softmax is generic: it has a gradient where its ranks are known"):
        opgen.gradient(ops.softmax, "input")


def test_versions_are_listed() -> None:
    page = support_page(load(SPEC), "generic.op")
    assert "| Add | `add` | 14 | float32, int32 | Elementwise sums, the smaller operand stretched. |" in page
