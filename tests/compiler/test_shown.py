"""Artifacts that are shown run: equal object code for calls of the benchmark's tables and their artifacts."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pytest

import opgen
from opgen.compiler import toolchain
from opgen.compiler.algorithms import mode
from opgen.compiler.make import artifact
from opgen.compiler.request import Compilation, OpVariant
from opgen.dtypes import lookup
from opgen.lower import variant_of
from opgen.runtime.memory.buffers import AnyArray, numpy_dtype
from opgen.spec import solve
from tests.bindings.modules import OPS, generated, spec
from tools.bench.kernels import request_of
from tools.bench.layers import DIRECTIONS, DTYPES, FORMATS, LAYERS, Case, Choice, read_cases
from tools.bench.op_rows import CASES, SPEC

SEED = int(os.environ.get("OPGEN_SEED", random.randrange(1 << 32)))
SAMPLE = 3
"""Cases of each table that are tried without --all."""


@pytest.fixture
def sample(request: pytest.FixtureRequest) -> Callable[[Sequence[object]], Sequence[object]]:
    """A choice of a table's cases by chance; with --all every one."""
    every = request.config.getoption("--all", default=False)

    def chosen(table: Sequence[object]) -> Sequence[object]:
        return table if every else random.Random(SEED).sample(table, SAMPLE)

    return chosen


def ran(call: Callable[[], object]) -> tuple[str, str | None]:
    """The hash of the object code that a call runs, and its algorithm."""
    with opgen.record() as calls:
        call()
    (kernel,) = calls.kernels
    return kernel.code_hash, kernel.algorithm


def assert_shown(name: str, request: Compilation, call: Callable[[], object]) -> None:
    """Fail unless the stages of a request end in the object code that a call runs."""
    shown = artifact(request)
    again = f"{name}; OPGEN_SEED={SEED} repeats it"
    assert (shown.code_hash, shown.algorithm) == ran(call), again
    code = toolchain.object_code(shown.llvm, toolchain.host(), shown.legal.is_bound)
    assert code == shown.object_code.code, again


def layer_call(case: Case) -> Callable[[], object]:
    """The call of a layer."""
    ops = generated(OPS)
    dtype = numpy_dtype(lookup(case.dtype))
    first = case.data_format == "NCHW"

    def images(shape: tuple[int, ...]) -> AnyArray:
        return np.ones((shape[0], shape[3], shape[1], shape[2]) if first else shape, dtype)

    x, w, g = images(case.input_shape), np.ones(case.filter_shape, dtype), images(case.output_shape)
    strides = [1, 1, case.stride, case.stride] if first else [1, case.stride, case.stride, 1]
    named = {"strides": strides, "padding": case.padding, "data_format": case.data_format}
    name = "conv2d" if case.kind == "dense" else "depthwise_conv2d_native"
    if case.direction == "forward":
        return lambda: getattr(ops, name)(x, w, **named)
    function = getattr(ops, f"{name}_backprop_{case.direction}")
    if case.direction == "input":
        return lambda: function(np.array(x.shape, np.int32), w, g, **named)
    return lambda: function(x, np.array(w.shape, np.int32), g, **named)


def test_layers(sample: Callable[[Sequence[object]], Sequence[Case]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPGEN_SPECIALIZE", "always")
    table = read_cases(LAYERS, Choice((1,), DIRECTIONS, FORMATS, DTYPES))
    for case in sample(table):
        assert_shown(case.name, request_of(case), layer_call(case))


def test_the_algorithm_of_a_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A layer that is computed otherwise than by its definition."""
    monkeypatch.setenv("OPGEN_SPECIALIZE", "always")
    case = Case("r50_2_3x3", "dense", 1, 56, 56, 64, 64, 3, 3, 1, "SAME")
    request = request_of(case)
    assert artifact(request).algorithm == "minimal_filtering"
    assert_shown(case.name, request, layer_call(case))


def test_ops(sample: Callable[[Sequence[object]], Sequence[tuple[str, tuple[tuple[int, ...], ...]]]]) -> None:
    module, ops = spec(SPEC), generated(SPEC)
    for name, shapes in sample(CASES):
        op = next(o for o in module.ops if o.function_name == name)
        dtype = "int32" if name.endswith("int32") else "float32"
        call = solve(op, module, dict(zip((t.name for t in op.tensors), shapes, strict=False)), {}, {})
        source = OpVariant(module, op, variant_of(op, {"T": dtype}, {}))
        arrays = [np.ones(shape, dtype) for shape in shapes]
        request = Compilation(source, toolchain.host(), call, algorithms=mode())
        assert_shown(f"{name} {shapes}", request, partial(getattr(ops, name), *arrays))
