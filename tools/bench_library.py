"""The kernels of a built library for any size, compared with kernels of each size: `python -m tools.bench_library DIR`.

Every layer of `tools/layers.json` runs in three directions, float32.  One call goes through the library's C functions
(DIR is the output of `opgen build specs/nn_ops.op -o DIR`), the other through the kernel of a call from Python.  Both
run in turns in one process, and give the same result.  Prints the ratio of the best times row by row, worst first, and
the geometric mean.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from ctypes import c_int64
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

from opgen.cli.options import GivenPath
from opgen.compiler import toolchain
from opgen.compiler.make import artifact
from opgen.compiler.request import Compilation, OpVariant
from opgen.grad.load import load
from opgen.lower import Variant
from opgen.runtime.kernels.kernel import compile_kernel
from opgen.runtime.threads import set_num_threads
from opgen.spec.call.shapes import solve
from opgen.spec.model.model import Module, Sizes
from tools.bench.layers import LAYERS, Case, Choice, read_cases
from tools.c_library import Library

SPEC = Path(__file__).resolve().parent.parent / "specs" / "nn_ops.op"
OPS = {
    "dense": ("Conv2D", "Conv2DBackpropInputV2", "Conv2DBackpropFilterV2"),
    "depthwise": (
        "DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter",
    ),
}  # fmt: skip
"""The ops of the three directions: forward, with respect to the input, with respect to the filter."""
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Row:
    """One layer and direction; seconds of a call, the best of all turns."""

    name: str
    flops: int
    generic: float
    specialised: float

    @property
    def ratio(self) -> float:
        """Return the speed of the library's kernel in that of the one made for the size."""
        return self.specialised / self.generic

    def __str__(self) -> str:
        speeds = f"{self.flops / self.generic / 1e9:8.1f} {self.flops / self.specialised / 1e9:8.1f}"
        return f"{self.name:<52} {speeds}   {self.ratio:5.2f}"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("folder", type=GivenPath(exists=True, file_okay=False))
@click.option("--layer", "names", multiple=True, help="Only this layer (may be given several times).")
@click.option("--batch", type=click.IntRange(1), default=1, show_default=True)
@click.option("--threads", type=click.IntRange(1), default=1, show_default=True)
@click.option("--seconds", type=float, default=0.2, show_default=True, help="How long each row is measured.")
@click.option("--least", type=float, default=0.0, help="Exit with 1 if the geometric mean is below.")
def main(folder: Path, names: tuple[str, ...], batch: int, threads: int, seconds: float, least: float) -> None:
    """Compares the library in FOLDER with kernels made for each size."""
    module = load(SPEC)
    library = Library(module, folder, module.name)
    library.set_threads(threads)
    set_num_threads(threads)
    rows = [
        row for case in read_cases(LAYERS, Choice((batch,)), names) for row in _rows(module, library, case, seconds)
    ]
    click.echo(f"{'worst first (' + library.level + ')':<52} {'generic':>8} {'own':>8}   ratio   (GFLOP/s)")
    for row in sorted(rows, key=lambda r: r.ratio):
        click.echo(str(row))
    mean = math.exp(sum(math.log(r.ratio) for r in rows) / len(rows))
    click.echo(f"geometric mean of {len(rows)} rows: {mean:.3f}")
    if mean < least:
        raise SystemExit(1)


def _rows(module: Module, library: Library, case: Case, seconds: float) -> Iterator[Row]:
    for name in OPS[case.kind]:
        generic, specialised = _calls(module, library, name, case)
        times = _measure((generic, specialised), seconds)
        yield Row(f"{case.layer} {name}", case.flops, *times)


def _calls(module: Module, library: Library, name: str, case: Case) -> tuple[Callable[[], None], Callable[[], None]]:
    """Return the two calls of one op, whose results were compared."""
    op = module.op(name)
    shapes = {
        "input": case.input_shape, "filter": case.filter_shape, "out_backprop": case.output_shape,
        "input_sizes": case.input_shape, "filter_sizes": case.filter_shape,
    }  # fmt: skip
    random = np.random.default_rng(0)
    inputs = [
        np.array(shapes[i.name], np.int64) if isinstance(i, Sizes) else random.standard_normal(shapes[i.name], "f4")
        for i in op.inputs
    ]
    result = case.output_shape if op.gradient is None else shapes[op.gradient.wrt]
    outputs = np.empty(result, "f4"), np.empty(result, "f4")
    attrs = {"strides": (1, case.stride, case.stride, 1), "padding": case.padding, "data_format": "NHWC"}
    generic = library.call(op, inputs, attrs, outputs[0])
    tensors = {i.name: shapes[i.name] for i in op.inputs if not isinstance(i, Sizes)}
    sizes = {i.name: shapes[i.name] for i in op.inputs if isinstance(i, Sizes)}
    call = solve(op, module, tensors, sizes, attrs)
    source = OpVariant(module, op, Variant({"T": "float32"}, {"data_format": "NHWC"}))
    kernel = compile_kernel(artifact(Compilation(source, toolchain.host(), call, algorithms="off")).legal)
    given = dict(zip((i.name for i in op.inputs), inputs, strict=True))
    places: list[c_int64 | int] = [*(given[b.name].ctypes.data for b in kernel.kernel.inputs), outputs[1].ctypes.data]
    bound = kernel.bind([])

    def specialised(kept: object = (given, outputs)) -> None:
        bound(places)

    generic()
    specialised()
    error = np.abs(outputs[0] - outputs[1]).max() / max(1e-30, float(np.abs(outputs[1]).max()))
    if not error <= TOLERANCE:
        raise SystemExit(f"{name} on {case.layer}: the two results differ by {error:.1e} of the greatest")
    return generic, specialised


def _measure(calls: tuple[Callable[[], None], ...], seconds: float) -> list[float]:
    """Return the best time of each call, in turns; each runs once more before it is timed, to warm its data."""
    times: list[list[float]] = [[] for _ in calls]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 5:
        for call, found in zip(calls, times, strict=True):
            call()
            start = time.perf_counter()
            call()
            found.append(time.perf_counter() - start)
    return [min(t) for t in times]


if __name__ == "__main__":
    main()
