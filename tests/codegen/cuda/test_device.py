"""The runtime of CUDA devices, over a driver made for the test: it runs kernels through the emulation header."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import numpy as np
import pytest

from opgen.diagnostics.calls import ArgumentTypeError, ArgumentValueError
from opgen.diagnostics.devices import DeviceError, DeviceMemoryError, DeviceUnavailableError
from opgen.dtypes import FLOAT32, INT32
from opgen.loop.nodes import Kernel
from opgen.loop.parse import parse_kernel
from opgen.runtime.devices import emulation
from opgen.runtime.devices.arrays import DeviceArray
from opgen.runtime.devices.cuda_driver import SIGNATURES, Device, Driver
from opgen.runtime.devices.device import CudaKernel
from tests.codegen.cuda.fake import Foreign, Shared, build, fake_library
from tests.codegen.cuda.kernels import CASES, STEPS, Case

needs_compiler = pytest.mark.skipif(emulation.compiler() is None, reason="there is no C++ compiler")
pytestmark = needs_compiler

DOUBLE = parse_kernel("""
kernel double(x: float32[n], n: int64 in [0, 1000]) -> (y: float32[n]):
    block.x for i in 0..n:
        y[i] = x[i] + x[i]
""")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return fake_library(tmp_path_factory.mktemp("fake"))


@pytest.fixture
def fake(library: ctypes.CDLL) -> ctypes.CDLL:
    gc.collect()
    library.fake_clear()
    return library


@pytest.fixture
def gpu(fake: ctypes.CDLL) -> Device:
    return Device(Driver(fake.path))


def kernel(program: Kernel, gpu: Device) -> CudaKernel:
    return CudaKernel(program, gpu, compiler=build)


@pytest.fixture(scope="module")
def emulated() -> dict[str, emulation.EmulatedKernel]:
    kernels = {case.kernel.name: case.kernel for case in CASES}
    return dict(zip(kernels, emulation.compile_emulated(list(kernels.values())), strict=True))


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
def test_every_case_runs_through_the_driver_as_in_the_emulation(
    case: Case, gpu: Device, fake: ctypes.CDLL, emulated: dict[str, emulation.EmulatedKernel]
) -> None:
    arrays = case.arrays(3)
    expected = emulated[case.kernel.name](arrays, case.parameters)
    found = kernel(case.kernel, gpu)(arrays, case.parameters)
    assert list(found) == list(expected)
    for name, value in expected.items():
        assert found[name].dtype == value.dtype
        assert found[name].tobytes() == value.tobytes(), name
    del found
    gc.collect()
    assert fake.fake_allocations() == 0
    assert fake.fake_context_depth() == 0


def test_device_arrays_are_used_in_place_and_come_back(gpu: Device, fake: ctypes.CDLL) -> None:
    x = DeviceArray.from_numpy(gpu, np.arange(5, dtype=np.float32), FLOAT32)
    y = DeviceArray(gpu, (5,), FLOAT32)
    run = kernel(DOUBLE, gpu)
    fake.fake_clear()
    result = run({"x": x}, {"n": 5}, out={"y": y}, stream=7)
    assert result["y"] is y
    assert fake.fake_log().decode().split("\n")[:2] == ["cuStreamSynchronize 1", "cuStreamSynchronize"]
    assert "cuMemAlloc_v2" not in fake.fake_log().decode()
    assert "cuMemcpy" not in fake.fake_log().decode()
    assert "on stream 7" in fake.fake_log().decode()
    np.testing.assert_array_equal(y.to_numpy(), np.arange(5, dtype=np.float32) * 2)
    made = run({"x": x}, {"n": 5})["y"]
    assert isinstance(made, DeviceArray)
    assert repr(made) == "DeviceArray(float32[5], device 0)"
    np.testing.assert_array_equal(made.to_numpy(), y.to_numpy())


def test_dlpack_memory_is_used_in_place_and_given_back(gpu: Device) -> None:
    x = DeviceArray.from_numpy(gpu, np.arange(6, dtype=np.float32), FLOAT32)
    shared = Shared(x.address, (6,), code=2, bits=32)
    result = kernel(DOUBLE, gpu)({"x": shared}, {"n": 6})["y"]
    np.testing.assert_array_equal(result.to_numpy(), np.arange(6, dtype=np.float32) * 2)
    assert shared.streams == [1]
    assert shared.released == 1


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"code": 0}, ArgumentTypeError, "double: argument 'x': expected float32, given int32"),
        (
            {"code": 9},
            ArgumentTypeError,
            "double: argument 'x': expected a readable tensor, "
            "given an object of type Shared (elements of DLPack's type 9, 32 bits, 1 lanes)",
        ),
        ({"shape": (5,)}, ArgumentValueError, "double: argument 'x': expected shape [6], given shape [5]"),
        (
            {"strides": (2,)},
            ArgumentValueError,
            "double: argument 'x': expected a C-contiguous array, given strides of [8] bytes",
        ),
    ],
)
def test_a_wrong_dlpack_tensor_is_refused_and_given_back(
    changes: dict[str, Any], error: type[Exception], message: str, gpu: Device
) -> None:
    x = DeviceArray.from_numpy(gpu, np.arange(6, dtype=np.float32), FLOAT32)
    shared = Shared(x.address, **{"shape": (6,), "code": 2, "bits": 32, **changes})
    with pytest.raises(error) as caught:
        kernel(DOUBLE, gpu)({"x": shared}, {"n": 6})
    assert str(caught.value) == message
    assert shared.released == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"typestr": "<f8"}, "double: argument 'x': expected float32, given float64"),
        ({"shape": (2, 3)}, "double: argument 'x': expected shape [6], given shape [2, 3]"),
        ({"strides": (-4,)}, "double: argument 'x': expected a C-contiguous array, given strides of [-4] bytes"),
        ({"data": (4096, False)}, "double: argument 'x': expected memory of device 0, given other memory"),
    ],
)
def test_a_wrong_device_array_is_refused_before_any_launch(
    changes: dict[str, object], message: str, gpu: Device, fake: ctypes.CDLL
) -> None:
    x = DeviceArray.from_numpy(gpu, np.arange(6, dtype=np.float32), FLOAT32)
    run = kernel(DOUBLE, gpu)
    fake.fake_clear()
    with pytest.raises((ArgumentTypeError, ArgumentValueError)) as caught:
        run({"x": Foreign(x, **changes)}, {"n": 6})
    assert str(caught.value) == message
    assert "cuLaunchKernel" not in fake.fake_log().decode()


def test_a_read_only_output_is_refused(gpu: Device) -> None:
    x = DeviceArray.from_numpy(gpu, np.arange(6, dtype=np.float32), FLOAT32)
    with pytest.raises(ArgumentValueError, match="argument 'y': expected a writeable array, given a read-only one"):
        kernel(DOUBLE, gpu)({"x": x}, {"n": 6}, out={"y": Foreign(x, data=(x.address, True))})


@pytest.mark.parametrize(
    ("arrays", "parameters", "message"),
    [
        ({}, {"n": 1}, "double: argument 'x': expected an array, given none"),
        ({"x": [1.0], "z": [1.0]}, {"n": 1}, "double: argument 'z': expected one of x, given an unknown array"),
        ({"x": np.ones(1)}, {"n": 1}, "double: argument 'x': expected float32, given float64[1]"),
        ({"x": np.ones(2, np.float32)}, {"n": 1}, "double: argument 'x': expected shape [1], given shape [2]"),
        ({"x": np.ones(1, np.float32)}, {}, "double: argument 'n': expected a value, given none"),
        ({"x": np.ones(1, np.float32)}, {"n": -1}, "double: argument 'n': expected a value from 0 to 1000, given -1"),
        (
            {"x": np.ones(1, np.float32)},
            {"n": 1, "m": 2},
            "double: argument 'm': expected one of n, given an unknown parameter",
        ),
    ],
)
def test_wrong_calls_name_the_argument(
    arrays: dict[str, object], parameters: dict[str, int], message: str, gpu: Device
) -> None:
    with pytest.raises((ArgumentTypeError, ArgumentValueError)) as caught:
        kernel(DOUBLE, gpu)(arrays, parameters)
    assert str(caught.value) == message


FAILING = ("cuMemAlloc_v2", "cuMemcpyHtoDAsync_v2", "cuLaunchKernel", "cuMemcpyDtoHAsync_v2", "cuStreamSynchronize")


@pytest.mark.parametrize("after", range(4))
@pytest.mark.parametrize("call", FAILING)
def test_nothing_leaks_when_a_call_of_the_driver_fails(call: str, after: int, gpu: Device, fake: ctypes.CDLL) -> None:
    case = Case(STEPS, {"n": 10, "rounds": 3, "scale": 0.75, "fancy": True})
    run, arrays = kernel(case.kernel, gpu), case.arrays(1)
    fake.fake_clear()
    run(arrays, case.parameters)
    if fake.fake_log().decode().count(f"{call}\n") <= after:
        return  # it is not called as often
    fake.fake_fail(call.encode(), after, 700)
    with pytest.raises(DeviceError) as caught:
        run(arrays, case.parameters)
    assert str(caught.value) == f"{call}: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered"
    del caught
    gc.collect()
    assert fake.fake_allocations() == 0
    assert fake.fake_context_depth() == 0


def test_no_memory_is_a_memory_error(gpu: Device, fake: ctypes.CDLL) -> None:
    fake.fake_fail(b"cuMemAlloc_v2", 0, 2)
    with pytest.raises(MemoryError) as caught:
        DeviceArray(gpu, (4,), INT32)
    assert isinstance(caught.value, DeviceMemoryError)
    assert str(caught.value) == "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory"


def test_an_error_without_a_name_still_has_its_number(gpu: Device, fake: ctypes.CDLL) -> None:
    fake.fake_fail(b"cuMemAlloc_v2", 0, 12345)
    with pytest.raises(DeviceError, match=r"^cuMemAlloc_v2: unknown error \(12345\): unknown error$"):
        DeviceArray(gpu, (4,), INT32)


def test_a_device_that_is_not_there(fake: ctypes.CDLL) -> None:
    with pytest.raises(DeviceUnavailableError, match=r"^there is no CUDA device 3: 1 found$"):
        Device(Driver(fake.path), 3)


def test_what_the_driver_says_of_itself(gpu: Device) -> None:
    assert gpu.driver.version() == (13, 1)
    assert gpu.name == "Fake"
    assert gpu.capability == (9, 0)


def test_the_fake_driver_has_every_function_of_the_table(library: ctypes.CDLL) -> None:
    for name in SIGNATURES:
        assert library[name]


def test_device_arrays_are_freed_once(gpu: Device, fake: ctypes.CDLL) -> None:
    array = DeviceArray(gpu, (4,), INT32)
    assert fake.fake_allocations() == 1
    array.free()
    array.free()
    del array
    gc.collect()
    assert fake.fake_allocations() == 0


def test_a_kernel_is_unloaded_with_its_object(gpu: Device, fake: ctypes.CDLL) -> None:
    run = kernel(DOUBLE, gpu)
    del run
    gc.collect()
    assert fake.fake_log().decode().split("\n")[-2] == "cuModuleUnload"
