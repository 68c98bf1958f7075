"""The kernel that a case gets, as a request."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from opgen.compiler import toolchain
from opgen.compiler.algorithms import mode
from opgen.compiler.request import Compilation, OpVariant
from opgen.grad import load
from opgen.lower import variant_of
from opgen.spec import solve
from opgen.spec.call.shapes import AttrArgument
from opgen.spec.model.model import Module
from tools.bench.contestants import ROOT
from tools.bench.layers import Case, Direction, Kind

SPECS = ROOT / "specs" / "nn_ops.op"
OPS: dict[tuple[Kind, Direction], str] = {
    ("dense", "forward"): "Conv2D",
    ("dense", "input"): "Conv2DBackpropInput",
    ("dense", "filter"): "Conv2DBackpropFilter",
    ("depthwise", "forward"): "DepthwiseConv2dNative",
    ("depthwise", "input"): "DepthwiseConv2dNativeBackpropInput",
    ("depthwise", "filter"): "DepthwiseConv2dNativeBackpropFilter",
}


@cache
def _module(specs: Path) -> Module:
    return load(specs)


def request_of(case: Case, specs: Path = SPECS) -> Compilation:
    """Return the request for the kernel that the case's call takes on this machine."""
    module = _module(specs)
    op = module.op(OPS[case.kind, case.direction])
    first = case.data_format == "NCHW"

    def images(shape: tuple[int, ...]) -> tuple[int, ...]:
        return (shape[0], shape[3], shape[1], shape[2]) if first else shape

    data, taps, outputs = images(case.input_shape), case.filter_shape, images(case.output_shape)
    shapes = {
        "forward": {"input": data, "filter": taps},
        "input": {"filter": taps, "out_backprop": outputs},
        "filter": {"input": data, "out_backprop": outputs},
    }[case.direction]
    sizes: dict[Direction, dict[str, tuple[int, ...]]] = {
        "forward": {},
        "input": {"input_sizes": data},
        "filter": {"filter_sizes": taps},
    }
    strides = (1, 1, case.stride, case.stride) if first else (1, case.stride, case.stride, 1)
    attrs: dict[str, AttrArgument] = {"strides": strides, "padding": case.padding, "data_format": case.data_format}
    call = solve(op, module, shapes, sizes[case.direction], attrs)
    words = {name: value for name, value in call.attrs.items() if isinstance(value, str)}
    source = OpVariant(module, op, variant_of(op, {"T": case.dtype}, words))
    return Compilation(source, toolchain.host(), call, algorithms=mode())
