"""The generated functions have TensorFlow's names and argument order."""

from __future__ import annotations

import inspect
import json
from typing import Any

import pytest

from tests.bindings.modules import OPS, generated
from tests.golden.load import DATA

DEFS = json.loads((DATA / "opdefs.json").read_text())


def _signature(function: Any) -> inspect.Signature:
    """Without annotations, and without `out`, which TensorFlow does not have."""
    found = inspect.signature(function)
    assert found.parameters["out"].kind is inspect.Parameter.KEYWORD_ONLY
    assert found.parameters["out"].default is None
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values() if p.name != "out"]
    return inspect.Signature(plain)


OPS_AND_FUNCTIONS = {
    "Conv2D": "conv2d",
    "Conv2DBackpropInput": "conv2d_backprop_input",
    "Conv2DBackpropInputV2": "conv2d_backprop_input_v2",
    "Conv2DBackpropFilter": "conv2d_backprop_filter",
    "Conv2DBackpropFilterV2": "conv2d_backprop_filter_v2",
    "DepthwiseConv2dNative": "depthwise_conv2d_native",
    "DepthwiseConv2dNativeBackpropInput": "depthwise_conv2d_native_backprop_input",
    "DepthwiseConv2dNativeBackpropFilter": "depthwise_conv2d_native_backprop_filter",
}


def test_no_op_is_missing() -> None:
    assert set(OPS_AND_FUNCTIONS) == set(DEFS["ops"])


@pytest.mark.parametrize(("name", "function"), OPS_AND_FUNCTIONS.items())
def test_registered_ops(name: str, function: str) -> None:
    ops = generated(OPS)
    assert str(_signature(getattr(ops, function))) == DEFS["ops"][name]["raw_ops_signature"]
    raw = _signature(getattr(ops.raw_ops, name))
    assert {p.kind for p in raw.parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}
    expected = [(p, d) for p, _, d in DEFS["ops"][name]["raw_ops_params"]]
    found = [(p.name, None if p.default is p.empty else repr(p.default)) for p in raw.parameters.values()]
    assert found == expected


def test_public_function() -> None:
    """Names and order are those of the first version; a default that is None there may be spelt out here."""
    expected = DEFS["public_api"]["tf.compat.v1.nn.depthwise_conv2d"]["signature"]
    found = str(_signature(generated(OPS).depthwise_conv2d))
    assert found.replace("data_format='NHWC'", "data_format=None") == expected


@pytest.mark.parametrize("name", OPS_AND_FUNCTIONS)
def test_types_and_words(name: str) -> None:
    """The types and words that TensorFlow's registry allows are those of the spec."""
    from tests.bindings.modules import spec

    op = spec(OPS).op(name)
    for attr in DEFS["ops"][name]["attrs"]:
        if attr["name"] == "T":
            variable = op.type_variable("T")
            assert variable is not None
            assert [t.name for t in variable.allowed] == attr["allowed"]
        elif attr["allowed"] is not None:
            assert list(op.attr(attr["name"]).values) == attr["allowed"]
