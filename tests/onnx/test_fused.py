"""Nodes that fusion makes one op of, whose reads cannot all be proved to stay inside."""

from __future__ import annotations

import numpy as np
import onnx

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
