"""Movement whose shape depends on which sizes are 1."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import opgen
from generated import onnx_ops
from opgen.diagnostics.calls import ArgumentValueError


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


def test_slices_by_attributes() -> None:
    """Slice before version 10: a model, and what has no meaning."""
    x = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 9]> m (float[3, 4, 5] x) => (float[?, ?, ?] y)'
        "{y = Slice <axes = [-1, 0], starts = [-3, 1], ends = [9223372036854775807, -1]> (x)}"
    )
    np.testing.assert_array_equal(opgen.compile(model)(x), x[1:-1, :, -3:], strict=True)
    np.testing.assert_array_equal(onnx_ops.slice_by_attributes(x, starts=[3], ends=[1]), x[3:1], strict=True)
    for wrong, given in (
        ("'ends': expected as many as 'starts'", {"starts": [0], "ends": [1, 2]}),
        ("'axes': expected as many as 'starts'", {"starts": [0], "ends": [1], "axes": [0, 1]}),
        ("'axes': expected different axes from -3 to 2", {"starts": [0], "ends": [1], "axes": [3]}),
        ("'starts': expected no more places than dimensions", {"starts": [0] * 4, "ends": [1] * 4}),
    ):
        with pytest.raises(ArgumentValueError, match=f"SliceByAttributes: argument {wrong}"):
            onnx_ops.slice_by_attributes(x, **given)
