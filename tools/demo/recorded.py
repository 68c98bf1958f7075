"""The results that were recorded from TensorFlow (`tests/golden`), against the generated ops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console
from rich.progress import track

from tests.golden.load import cases, compare
from tools.demo.agreement import Agreement

FUNCTIONS = {
    "Conv2D": "conv2d",
    "DepthwiseConv2dNative": "depthwise_conv2d_native",
    "tf.nn.depthwise_conv2d": "depthwise_conv2d",
}
"""The generated function for each recorded op."""


def agreements(ops: Mapping[str, Callable[..., Any]]) -> list[Agreement]:
    """One row an op and type: how many cases, how many within the tight tolerance of the float64 reference."""
    rows: dict[tuple[str, str], Agreement] = {}
    for case in track(list(cases()), "recorded cases", console=Console(stderr=True), transient=True):
        name = FUNCTIONS[case.op]
        row = rows.setdefault((name, case.dtype), Agreement(name, case.dtype, "TensorFlow cases"))
        right, _ = compare(case, ops[name](**case.tensors, **case.attrs))
        row.add(right, None)
    return list(rows.values())
