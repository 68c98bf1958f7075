"""TopK of every version, axis and type against numpy; and what is refused.

Values are drawn from OPGEN_TEST_SEED (0).
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import opgen
from opgen.diagnostics import UserError

onnx = pytest.importorskip("onnx")
SEED = int(os.environ.get("OPGEN_TEST_SEED", "0"))
Array = npt.NDArray[np.generic]


def _model(x: Array, opset: int, k: int | None = None, **attributes: object) -> Any:
    """A model of one TopK; `k` is an attribute, or an input that comes at run time."""
    helper = onnx.helper
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    inputs = [helper.make_tensor_value_info("x", kind, x.shape)]
    if k is None:
        inputs.append(helper.make_tensor_value_info("k", onnx.TensorProto.INT64, [1]))
    else:
        attributes["k"] = k
    node = helper.make_node("TopK", [i.name for i in inputs], ["values", "places"], **attributes)
    outputs = [
        helper.make_tensor_value_info("values", kind, None),
        helper.make_tensor_value_info("places", onnx.TensorProto.INT64, None),
    ]
    graph = helper.make_graph([node], "sorting", inputs, outputs)
    return opgen.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]))


def _right(x: Array, k: int, axis: int, largest: bool) -> tuple[Array, Array]:
    places = np.argsort(x, axis=axis, kind="stable")
    if largest:
        turned = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
        places = x.shape[axis] - 1 - np.flip(turned, axis)
    places = places.take(range(k), axis)
    return np.take_along_axis(x, places, axis), places


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize(("shape", "axis"), [((7,), 0), ((3, 30), -1), ((4, 5, 6), 1), ((19, 2, 3), 0)])
def test_axes_and_directions(shape: tuple[int, ...], axis: int, largest: bool) -> None:
    print(f"OPGEN_TEST_SEED={SEED}")
    rng = np.random.default_rng([SEED, *shape])
    x = rng.integers(-5, 5, shape).astype(np.float32)
    x[rng.random(shape) < 0.1] = np.nan
    model = _model(x, 24, axis=axis, largest=int(largest), sorted=0)
    for k in (0, 1, 3, shape[axis]):
        for found, right in zip(model(x, np.array([k])), _right(x, k, axis, largest), strict=True):
            np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "uint64", "float16", "float64"])
def test_types(dtype: str) -> None:
    x = np.random.default_rng(SEED).integers(0, 100, (2, 40)).astype(dtype)
    for found, right in zip(_model(x, 11)(x, np.array([30])), _right(x, 30, 1, True), strict=True):
        np.testing.assert_array_equal(found, right)
        assert found.dtype == right.dtype


def test_versions() -> None:
    x = np.array([[1, 4, 2, 4]], np.float32)
    for model, given in ((_model(x, 9, 3), (x,)), (_model(x, 10), (x, np.array([3])))):
        values, places = model(*given)
        np.testing.assert_array_equal(values, [[4, 4, 2]])
        np.testing.assert_array_equal(places, [[1, 3, 2]])


@pytest.mark.parametrize(("k", "expected"), [(5, "at least 5 elements"), (-1, "0 elements to be wanted, -1 are")])
def test_refused(k: int, expected: str) -> None:
    x = np.zeros((1, 4), np.float32)
    with pytest.raises(UserError, match=f"TopK.*'X'.*{expected}"):
        _model(x, 11)(x, np.array([k]))
