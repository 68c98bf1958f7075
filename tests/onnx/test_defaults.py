"""Defaults of attributes: ONNX has them in float32."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

import opgen
from tests.onnx.models import model


@pytest.mark.parametrize("given", [{}, {"epsilon": 1e-5}])
def test_an_absent_epsilon_is_the_same_number_as_a_given_one(given: dict[str, float]) -> None:
    """The default 1e-5 is float32's, which is 2.5e-13 off: seen in float64."""
    x = np.random.default_rng(3).standard_normal((4, 6))
    node = helper.make_node("LayerNormalization", ["x", "s"], ["y"], **given)
    scale = helper.make_tensor_value_info("s", TensorProto.DOUBLE, (6,))
    built = model([node], inputs=[helper.make_tensor_value_info("x", TensorProto.DOUBLE, (4, 6)), scale])
    deviation = x - x.mean(axis=1, keepdims=True)
    wanted = deviation / np.sqrt((deviation**2).mean(axis=1, keepdims=True) + float(np.float32(1e-5)))
    found = opgen.compile(built.SerializeToString())(x, np.ones(6))
    # Means of 6 numbers, a root and a division: at most 16 units roundoff.
    np.testing.assert_allclose(found, wanted, rtol=16 * 2.0**-53, atol=16 * 2.0**-53)
