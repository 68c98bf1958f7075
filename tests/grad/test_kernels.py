"""Gradients as kernels: in bounds for every variant, the same on CPU and as CUDA C, with any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from opgen.codegen import cuda
from opgen.loop.interpret import interpret
from opgen.loop.verify import verify
from opgen.lower import lower, variants
from opgen.passes.legalize import legalize
from opgen.runtime.devices import emulation
from opgen.runtime.devices.emulation import run_emulated
from opgen.runtime.kernels.run import run_kernel
from opgen.schedule.default import scheduled
from tests.grad.cases import CASES, IDS, PAIRS, WINDOWS, Case, derivative
from tests.harness import random_arrays

FAMILY = tuple(dict.fromkeys((c.module.name, c.name) for c in CASES))
FLOATS = ("float16", "bfloat16", "float32", "float64")


def first_case(name: str) -> Case:
    return next(c for c in CASES if c.name == name)


@pytest.mark.parametrize("name", [name for _, name in FAMILY])
def test_every_variant_stays_in_bounds(name: str) -> None:
    """The op's own kernels, where it is a gradient, and those of all its gradients; proved for all sizes."""
    case = first_case(name)
    found = [case, *(derivative(c, wrt) for c, wrt in PAIRS if c is case)]
    for each in found:
        for variant in variants(each.op):
            verify(lower(each.module, each.op, variant).kernel, bounds=True)


@pytest.mark.parametrize(("case", "wrt"), PAIRS, ids=IDS)
def test_second_gradients_stay_in_bounds(case: Case, wrt: str) -> None:
    once = derivative(case, wrt)
    for again in [t.name for t in once.op.tensors if not t.shape_only]:
        twice = derivative(once, again)
        variant = next(v for v in variants(twice.op) if "float32" in v.types.values())
        verify(lower(twice.module, twice.op, variant).kernel, bounds=True)


GRADIENTS = [(c, w) for c, w in PAIRS if c.name in ("Conv2D", "DepthwiseConv2dNative", "MaxPool", "Softmax")]
GRADIENT_IDS = [f"{c}-{w}" for c, w in GRADIENTS]


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(("case", "wrt"), GRADIENTS, ids=GRADIENT_IDS)
def test_the_same_bits_with_any_number_of_threads(case: Case, wrt: str, threads: int) -> None:
    backward = derivative(case, wrt)
    kernel, parameters = backward.call("float32").kernel()
    arrays = random_arrays(backward.shapes, "float32", 7)
    after = scheduled(kernel)[1]
    expected = interpret(after, {b.name: arrays[b.name] for b in kernel.inputs}, parameters)
    legal = legalize(after)
    found = run_kernel(legal, arrays, parameters, threads, guarded=True)
    for name, right in expected.items():
        if case.name == "Softmax":  # exp is not the same on every machine
            np.testing.assert_allclose(found[name], right, rtol=1e-5, atol=1e-6)
        else:
            assert found[name].tobytes() == right.tobytes(), name


@pytest.mark.parametrize("name", [name for _, name in FAMILY if "Backprop" in name])
@pytest.mark.parametrize("dtype", FLOATS)
def test_cuda_has_no_atomics(name: str, dtype: str) -> None:
    kernel, _ = first_case(name).call(dtype).kernel()
    source = cuda.emit(legalize(scheduled(kernel, "cuda")[1])).source
    assert "atomic" not in source


@pytest.mark.skipif(emulation.compiler() is None, reason="there is no C++ compiler")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("case", [c for c in WINDOWS if "Backprop" in c.name], ids=str)
def test_emulated_cuda_gives_what_the_interpreter_does(case: Case, dtype: str) -> None:
    kernel, parameters = case.call(dtype).kernel()
    arrays = random_arrays(case.shapes, dtype, 11)
    given = {b.name: arrays[b.name] for b in kernel.inputs}
    expected = interpret(kernel, given, parameters)
    found = run_emulated(legalize(scheduled(kernel, "cuda")[1]), given, parameters)
    for name, right in expected.items():
        assert found[name].tobytes() == right.tobytes(), name
