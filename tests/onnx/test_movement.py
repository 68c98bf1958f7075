"""Movement whose shape depends on which sizes are 1."""

from __future__ import annotations

import numpy as np
import onnx

import opgen
from generated import onnx_ops


def test_squeeze_without_axes_leaves_out_all_of_size_1() -> None:
    """A function, and a model whose sizes are open: its runs have different forms."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> m (float[n, 1, k] x) => (float[?] y) {y = Squeeze(x)}'
    )
    compiled = opgen.compile(model)
    for shape in ((2, 1, 3), (1, 1, 3), (2, 1, 3)):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        for found in (onnx_ops.squeeze(x), compiled(x)):
            np.testing.assert_array_equal(found, np.squeeze(x), strict=True)
