"""Kernels compiled and launched on the GPU, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from opgen.codegen.cuda import emit
from opgen.compiler.cuda import nvcc, ptx
from opgen.compiler.cuda.nvrtc import nvrtc
from opgen.diagnostics.calls import ArgumentTypeError
from opgen.dtypes import BFLOAT16, DTYPES, FLOAT16, FLOAT32
from opgen.loop.interpret import interpret
from opgen.runtime.devices.arrays import DeviceArray
from opgen.runtime.devices.cuda_driver import Device, device
from opgen.runtime.devices.device import CudaKernel
from tests.codegen.cuda.kernels import CASES, PRODUCT, Array, Case, conversions

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def gpu() -> Device:
    return device(0)


def same(found: Array, expected: Array, exact: bool) -> None:
    """Equal to the bit, but that any NaN equals any other; or within the last bits that the functions may differ in."""
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    if found.dtype.kind in "bi":
        np.testing.assert_array_equal(found, expected)
        return
    with np.errstate(invalid="ignore"):
        wide, other = found.astype(np.float64), expected.astype(np.float64)
    if exact:
        np.testing.assert_array_equal(wide, other)
        np.testing.assert_array_equal(np.signbit(wide) & ~np.isnan(wide), np.signbit(other) & ~np.isnan(other))
    else:  # CUDA's tables of maximum errors: at most 9 units in the last place for pow, fewer for the others
        np.testing.assert_allclose(wide, other, rtol=16 * np.finfo(found.dtype).eps, atol=np.finfo(found.dtype).tiny)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
def test_the_interpreter_agrees(case: Case, seed: int, gpu: Device) -> None:
    arrays = case.arrays(seed)
    expected = interpret(case.kernel, arrays, case.parameters)
    found = CudaKernel(case.kernel, gpu)(arrays, case.parameters)
    for name, value in expected.items():
        got = found[name]
        assert isinstance(got, np.ndarray)
        same(got, value, case.exact)


def test_every_pattern_of_the_16_bit_types_converts(gpu: Device) -> None:
    bits = np.arange(65536, dtype=np.uint16)
    case = Case(conversions(), {"n": 65536})
    arrays = case.arrays(0)
    for dtype in (FLOAT16, BFLOAT16):
        arrays[f"x_{dtype}"] = bits.view(arrays[f"x_{dtype}"].dtype)
    found, expected = CudaKernel(case.kernel, gpu)(arrays, {"n": 65536}), interpret(case.kernel, arrays, {"n": 65536})
    for name in [f"y_{s}_{t}" for s in ("float16", "bfloat16") for t in DTYPES if not DTYPES[t].is_bits]:
        got = found[name]
        assert isinstance(got, np.ndarray)
        same(got, expected[name], exact=True)


def test_device_arrays_stay_on_the_device(gpu: Device) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-9, 10, (40, 40)).astype(np.float32) for _ in range(2))
    on_device = {name: DeviceArray.from_numpy(gpu, x, FLOAT32) for name, x in (("a", a), ("b", b))}
    out = DeviceArray(gpu, (40, 40), FLOAT32)
    run = CudaKernel(PRODUCT, gpu)
    sizes = {"m": 40, "n": 40, "k": 40}
    assert run(on_device, sizes, out={"c": out})["c"] is out
    np.testing.assert_array_equal(out.to_numpy(), a @ b)
    made = run(on_device, sizes)["c"]
    assert isinstance(made, DeviceArray)
    np.testing.assert_array_equal(made.to_numpy(), a @ b)


def test_a_wrong_call_leaves_the_device_usable(gpu: Device) -> None:
    run = CudaKernel(PRODUCT, gpu)
    a = np.ones((3, 3), np.float32)
    with pytest.raises(ArgumentTypeError):
        run({"a": a.astype(np.float64), "b": a}, {"m": 3, "n": 3, "k": 3})
    np.testing.assert_array_equal(run({"a": a, "b": a}, {"m": 3, "n": 3, "k": 3})["c"], a @ a)


def test_ptx_runs_as_well(gpu: Device) -> None:
    case = CASES[0]
    run = CudaKernel(case.kernel, gpu, compiler=lambda source, capability: ptx.ptx(source, (8, 0)).encode())
    arrays = case.arrays(0)
    got = run(arrays, case.parameters)["c"]
    assert isinstance(got, np.ndarray)
    same(got, interpret(case.kernel, arrays, case.parameters)["c"], exact=True)


def test_nvcc_and_nvrtc_compile_for_this_device(gpu: Device) -> None:
    source = emit(PRODUCT).source
    library, tool = nvrtc(), nvcc.nvcc()
    assert library is not None or tool is not None
    if library is not None and gpu.capability in library.capabilities:
        assert library.compile(source, f"sm_{gpu.capability[0]}{gpu.capability[1]}").startswith(b"\x7fELF")
    if tool is not None:
        assert nvcc.compile_nvcc(tool, source, "compute_80")
