"""ConvTranspose with a shape that is asked for: ONNX's equations, with no padding below 0, as ONNX Runtime has it."""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("onnx")
from tests.onnx.one_node import found_by, model_of

SEED = int(os.environ.get("OPGEN_TEST_SEED", "0"))


def spread(x: npt.NDArray[np.float32], w: npt.NDArray[np.float32], stride: int, more: int) -> npt.NDArray[np.float64]:
    """All places over which windows of one dimension spread, and `more` behind."""
    taps, count = w.shape[2], x.shape[2]
    y = np.zeros((len(x), w.shape[1], (count - 1) * stride + taps + more))
    for i in range(count):
        y[:, :, i * stride : i * stride + taps] += np.einsum("nc,cok->nok", x[:, :, i], w)
    return y


@pytest.mark.parametrize("beyond", [-3, -1, 0, 1, 2, 5])
@pytest.mark.parametrize("pad", ["NOTSET", "SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("stride", [1, 3])
def test_a_shape_that_is_asked_for(pad: str, beyond: int, stride: int) -> None:
    rng = np.random.default_rng([SEED, beyond + 3, stride])
    x, w = rng.standard_normal((2, 3, 4), np.float32), rng.standard_normal((3, 2, 3), np.float32)
    whole = spread(x, w, stride, max(beyond, 0))
    total = max(0, -beyond)
    head = total // 2 if pad == "SAME_UPPER" else total - total // 2
    kept = (4 - 1) * stride + 3 + beyond
    model = model_of("ConvTranspose", {"x": x, "w": w}, 11, strides=[stride], output_shape=[kept], auto_pad=pad)
    found = found_by(model, {"x": x, "w": w})
    np.testing.assert_allclose(found, whole[:, :, head : head + kept], rtol=1e-5, atol=1e-5)
