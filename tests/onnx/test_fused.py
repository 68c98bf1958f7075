"""Nodes that fusion makes one op of, whose reads cannot all be proved to stay inside."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import opgen

TEXT = """<ir_version: 8, opset_import: ["" : 11]>
spread (float[batch, 2, rows, columns] x, float[2, 3, 2, 2] w, float[1, 3, 1, 1] b)
    => (float[batch, 3, high, wide] y) {
  spread = ConvTranspose <strides = [2, 2]> (x, w)
  sum = Add(spread, b)
  y = Relu(sum)
}"""


def test_channels_in_groups_that_follow_from_an_attribute() -> None:
    model = opgen.compile(onnx.parser.parse_model(TEXT))
    rng = np.random.default_rng(0)
    w, b = rng.standard_normal((2, 3, 2, 2), np.float32), rng.standard_normal((1, 3, 1, 1), np.float32)
    for batch, rows, columns in ((1, 3, 4), (2, 1, 5)):
        x = rng.standard_normal((batch, 2, rows, columns), np.float32)
        taps = np.einsum("ncij,ckrs->nkirjs", x, w).reshape(batch, 3, 2 * rows, 2 * columns)
        np.testing.assert_allclose(model(x, w, b), np.maximum(taps + b, 0), rtol=1e-5, atol=1e-6)


def test_what_is_beside_an_image_is_left_out_of_its_windows() -> None:
    """A maximum over windows of tiles whose numbers are all below 0: what is outside is no 0."""
    text = """<ir_version: 8, opset_import: ["" : 19]>
    tiled (float[1, 2, 100] x) => (float[1, 2, n] y)
      <int64[3] repeats = {1, 1, 3}> {
      t = Tile(x, repeats)
      y = MaxPool <kernel_shape = [3], pads = [2, 2], strides = [2]> (t)
    }"""
    x = -1 - np.random.default_rng(0).random((1, 2, 100), np.float32)
    padded = np.pad(np.tile(x, (1, 1, 3)), ((0, 0), (0, 0), (2, 2)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, 3, axis=2)[:, :, ::2]
    model = opgen.compile(onnx.parser.parse_model(text))
    np.testing.assert_array_equal(model(x), windows.max(-1))
    assert "is one op of" in model.explain()


@pytest.mark.parametrize("axis", range(4))
def test_running_sums_of_a_convolution(axis: int) -> None:
    """The channels that it gives are composed of groups and channels in them."""
    text = f"""<ir_version: 8, opset_import: ["" : 19]>
    running (float[2, 4, 5, 6] x, float[6, 2, 1, 1] w) => (float[2, 6, 5, 6] y)
      <int64 axis = {{{axis}}}> {{
      t = Conv <group = 2> (x, w)
      y = CumSum(t, axis)
    }}"""
    rng = np.random.default_rng(axis)
    x, w = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((2, 4, 5, 6), (6, 2, 1, 1)))
    taps = np.einsum("ngchw,gkc->ngkhw", x.reshape(2, 2, 2, 5, 6), w.reshape(2, 3, 2)).reshape(2, 6, 5, 6)
    model = opgen.compile(onnx.parser.parse_model(text))
    np.testing.assert_array_equal(model(x, w), taps.cumsum(axis))
