"""The malformed calls that TensorFlow was given: each raises a typed error here, or is accepted for a stated reason."""

from __future__ import annotations

import inspect
import json
from typing import Any

import ml_dtypes  # noqa: F401  registers bfloat16 with numpy
import numpy as np
import pytest

from opgen.diagnostics.calls import ArgumentError, UnknownArgumentError
from tests.bindings.modules import OPS, generated
from tests.golden.load import DATA

CALLS = json.loads((DATA / "invalid.json").read_text())["calls"]

ACCEPTED = {
    "nn_depthwise_conv2d-593": "nested lists are tensors",
    "nn_depthwise_conv2d-566": "a valid call",
    "nn_depthwise_conv2d-570": "rates and strides may be combined",
    "nn_depthwise_conv2d-571": "`rate` is a keyword of this signature (that of the first version of the interface)",
    "nn_depthwise_conv2d-574": "unequal strides are supported",
    "Conv2D-009": "unequal strides are supported",
    "Conv2D-017": "a tuple is as good as a list",
    "Conv2D-024": "a valid call",
    "Conv2D-534": "a valid call with groups",
    "DepthwiseConv2dNative-271": "a valid call",
    "DepthwiseConv2dNative-280": "unequal strides are supported",
    "DepthwiseConv2dNative-288": "a tuple is as good as a list",
    "DepthwiseConv2dNative-302": "bytes spell a word as well as a string does",
    "DepthwiseConv2dNative-318": "None means the default",
    "DepthwiseConv2dNative-320": "a name is accepted",
    "DepthwiseConv2dNative-345": "by TensorFlow's formula it fits 0 times: an empty result, as TensorFlow gives",
    "DepthwiseConv2dNative-546": "NCHW is supported",
    "Conv2DBackpropInput-081": "a valid call",
    "Conv2DBackpropInput-098": "a tuple is as good as a list",
    "Conv2DBackpropInput-128": "None means the default",
    "Conv2DBackpropInput-130": "a name is accepted",
    "Conv2DBackpropInput-141": "nested lists are tensors",
    "Conv2DBackpropInput-158": "sizes may be int64",
    "Conv2DBackpropInput-166": "height and width alone are enough",
    "Conv2DBackpropInput-542": "groups are supported in every direction",
    "Conv2DBackpropFilter-195": "a tuple is as good as a list",
    "Conv2DBackpropFilter-209": "bytes spell a word as well as a string does",
    "Conv2DBackpropFilter-227": "a name is accepted",
    "Conv2DBackpropFilter-230": "accepted, without effect",
    "Conv2DBackpropFilter-251": "sizes may be int64",
    "Conv2DBackpropFilter-267": "this window fits 0 times: nothing to add up, so zeros, as TensorFlow gives",
    "Conv2DBackpropFilter-545": "NCHW is supported",
    "DepthwiseConv2dNativeBackpropInput-396": "None means the default",
    "DepthwiseConv2dNativeBackpropInput-407": "a filter of no rows: nothing to add up, so zeros, as TensorFlow gives",
    "DepthwiseConv2dNativeBackpropInput-423": "sizes may be int64",
    "DepthwiseConv2dNativeBackpropInput-424": "sizes may be a list",
    "DepthwiseConv2dNativeBackpropInput-547": "NCHW is supported",
    "DepthwiseConv2dNativeBackpropFilter-443": "a valid call",
    "DepthwiseConv2dNativeBackpropFilter-460": "a tuple is as good as a list",
    "DepthwiseConv2dNativeBackpropFilter-490": "None means the default",
    "DepthwiseConv2dNativeBackpropFilter-552": "dilations are supported in every direction",
}
"""The calls that are accepted here, and why."""

REFUSED = {
    "Conv2D-012": "integral floats: `n / 2` where `n // 2` was meant must not pass where the number happens to be even",
    "DepthwiseConv2dNative-283": "integral floats, as above",
    "DepthwiseConv2dNative-284": "fractions: TensorFlow cuts them off silently",
    "Conv2D-057": "arrays of two types: TensorFlow narrows the numpy one to the tensor's type; here both are arrays, "
    "and none is narrowed silently",
    "Conv2DBackpropInput-094": "fractions: TensorFlow cuts them off silently",
    "Conv2DBackpropInput-138": "arrays of two types, as above",
    "Conv2DBackpropFilter-190": "integral floats, as above",
    "Conv2DBackpropFilter-191": "fractions, as above",
    "DepthwiseConv2dNativeBackpropInput-362": "fractions, as above",
    "DepthwiseConv2dNativeBackpropInput-368": "two dilations where four are due: TensorFlow never looks at them",
    "DepthwiseConv2dNativeBackpropInput-369": "a dilation of the batch: TensorFlow never looks at it",
    "DepthwiseConv2dNativeBackpropInput-371": "a dilation of 0: TensorFlow never looks at it",
    "DepthwiseConv2dNativeBackpropInput-372": "a negative dilation: TensorFlow never looks at it",
    "DepthwiseConv2dNativeBackpropInput-403": "arrays of two types, as above",
    "DepthwiseConv2dNativeBackpropFilter-456": "fractions, as above",
    "DepthwiseConv2dNativeBackpropFilter-462": "two dilations where four are due: TensorFlow never looks at them",
    "DepthwiseConv2dNativeBackpropFilter-463": "a dilation of the batch: TensorFlow never looks at it",
    "DepthwiseConv2dNativeBackpropFilter-465": "a dilation of 0: TensorFlow never looks at it",
    "DepthwiseConv2dNativeBackpropFilter-466": "a negative dilation: TensorFlow never looks at it",
}
"""The calls that TensorFlow accepts and that are refused here, and why."""

UNKNOWN = {"Conv2D-048", "DepthwiseConv2dNative-319"}
"""An unknown keyword: the error names it."""


def _argument(value: Any) -> Any:
    """An argument as the file spells it."""
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        return np.ones(value["tensor"], value["dtype"])
    if "numpy" in value:
        return np.ones(value["numpy"], value["dtype"])
    if "list" in value:
        return np.ones(value["list"]).tolist()
    if "const" in value:
        return np.array(value["const"], None if value["dtype"] == "string" else value["dtype"])
    return tuple(value["tuple"]) if "tuple" in value else value["bytes"].encode()


def _run(call: dict[str, Any]) -> Any:
    ops = generated(OPS)
    arguments = {name: _argument(value) for name, value in call["args"].items()}
    return getattr(ops.raw_ops, call["op"].removeprefix("tf.nn."))(**arguments)


@pytest.mark.parametrize("call", CALLS, ids=[f"{c['id']} {c['what']}" for c in CALLS])
def test_call(call: dict[str, Any]) -> None:
    if call["id"] in ACCEPTED:
        result = _run(call)
        assert result.ndim == 4
        assert np.isfinite(result).all()
        return
    with pytest.raises((ValueError, TypeError)) as caught:
        _run(call)
    error = caught.value
    assert isinstance(error, ArgumentError)
    assert error.op == call["op"].removeprefix("tf.nn.")
    assert error.expected
    assert error.given
    if call["id"] in UNKNOWN:
        assert isinstance(error, UnknownArgumentError)
        assert str(error).startswith(f"{error.op}: unknown argument '{error.argument}'; it takes input, ")
        assert error.argument in call["args"]
    else:
        assert error.argument in inspect.signature(getattr(generated(OPS).raw_ops, error.op)).parameters


def test_the_tables_are_about_calls_of_the_file() -> None:
    known = {c["id"]: c for c in CALLS}
    assert len(CALLS) == 300
    assert set(ACCEPTED) <= set(known)
    assert set(REFUSED) | UNKNOWN <= set(known)
    assert not set(ACCEPTED) & (set(REFUSED) | UNKNOWN)
    for name in known:
        accepted_there = known[name]["eager"]["status"] == "accepted"
        assert accepted_there <= (name in ACCEPTED or name in REFUSED), f"{name} is accepted by TensorFlow: decide"
