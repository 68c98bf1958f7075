"""Wrong calls on a CUDA device: nothing runs, nothing leaks, and the messages name the argument."""

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opgen
from opgen.diagnostics.calls import ArgumentError, ArgumentMemoryError, ArgumentTypeError, ArgumentValueError
from opgen.diagnostics.devices import DeviceError
from opgen.runtime.devices import emulation
from tests.bindings.modules import OPS
from tests.codegen.cuda.fake import Foreign, Shared
from tests.support.recorded import small_case

pytestmark = pytest.mark.skipif(emulation.compiler() is None, reason="there is no C++ compiler")

A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.arange(12, dtype=np.float32).reshape(3, 4) - 5


Make = Callable[[], dict[str, Any]]
BESIDE = "expected a tensor on device 0 like 'a' (opgen.to_device copies one there), given"


def _placed(**changes: Any) -> dict[str, Any]:
    return {"a": opgen.to_device(A), "b": opgen.to_device(B), **changes}


def _overlapping() -> dict[str, Any]:
    whole = opgen.to_device(np.zeros(100, np.float32))
    a = Foreign(whole, shape=(2, 3))
    b = Foreign(whole, shape=(3, 4), data=(whole.address + 24, False))
    return {"a": a, "b": b, "out": Foreign(whole, shape=(2, 4), data=(whole.address + 20, False))}


WRONG: dict[str, tuple[Make, type[ArgumentError], str]] = {
    "array beside": (lambda: _placed(b=B), ArgumentTypeError, f"'b': {BESIDE} float32[3, 4] in this machine's memory"),
    "list beside": (
        lambda: _placed(b=B.tolist()),
        ArgumentTypeError,
        f"'b': {BESIDE} float32[3, 4] in this machine's memory",
    ),
    "type": (
        lambda: _placed(b=opgen.to_device(B.astype(np.float64))),
        ArgumentTypeError,
        "'b': expected float32, the type of 'a', given float64[3, 4]",
    ),
    "no type of the op's": (
        lambda: _placed(a=opgen.to_device(A.astype(np.int64))),
        ArgumentTypeError,
        "'a': expected float16, bfloat16, float32, float64 or int32, given int64[2, 3]",
    ),
    "no type of numpy's": (
        lambda: _placed(a=Shared(0, (2, 3), code=9, bits=4)),
        ArgumentTypeError,
        "'a': expected a readable tensor, "
        "given an object of type Shared (elements of DLPack's type 9, 4 bits, 1 lanes)",
    ),
    "rank": (
        lambda: _placed(a=opgen.to_device(A[0])),
        ArgumentValueError,
        "'a': expected a tensor of rank 2, given shape [3]",
    ),
    "sizes": (
        lambda: _placed(b=opgen.to_device(B[:2])),
        ArgumentValueError,
        "'b': expected dimension 0 to be 3 (depth), given shape [2, 4]",
    ),
    "strides": (
        lambda: _placed(a=Foreign(opgen.to_device(A), strides=(4, 8))),
        ArgumentValueError,
        "'a': expected a C-contiguous array, given strides of [4, 8] bytes",
    ),
    "memory": (
        lambda: _placed(b=Foreign(opgen.to_device(B), data=(4096, False))),
        ArgumentValueError,
        "'b': expected memory of device 0, given other memory",
    ),
    "mask": (
        lambda: _placed(b=Foreign(opgen.to_device(B), mask=object())),
        ArgumentTypeError,
        "'b': expected a readable tensor, given an object of type Foreign (it has a mask)",
    ),
    "out on the host": (
        lambda: _placed(out=np.empty((2, 4), np.float32)),
        ArgumentTypeError,
        "'out': expected a device array, because the inputs are on device 0, given float32[2, 4]",
    ),
    "out of another type": (
        lambda: _placed(out=opgen.to_device(np.zeros((2, 4)))),
        ArgumentTypeError,
        "'out': expected float32[2, 4], given float64[2, 4]",
    ),
    "out of another shape": (
        lambda: _placed(out=opgen.to_device(np.zeros((4, 2), np.float32))),
        ArgumentValueError,
        "'out': expected float32[2, 4], given float32[4, 2]",
    ),
    "out read-only": (
        lambda: _placed(out=Foreign(t := opgen.to_device(np.zeros((2, 4), np.float32)), data=(t.address, True))),
        ArgumentValueError,
        "'out': expected a writeable array, given a read-only one",
    ),
    "out overlaps": (
        _overlapping,
        ArgumentValueError,
        "'out': expected memory that no input or other result uses, given an array that overlaps one of them",
    ),
    "out on a device, inputs not": (
        lambda: {"a": A, "b": B, "out": opgen.to_device(np.zeros((2, 4), np.float32))},
        ArgumentTypeError,
        "'out': expected a numpy array, given an object of type DeviceArray",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls_run_nothing(name: str, samples: Any, fake: ctypes.CDLL) -> None:
    make, kind, message = WRONG[name]
    arguments = make()
    fake.fake_clear()
    with pytest.raises(kind) as caught:
        samples.mat_mul(**arguments)
    assert str(caught.value) == f"MatMul: argument {message}"
    assert "cuLaunchKernel" not in fake.fake_log().decode()
    for shared in (v for v in arguments.values() if isinstance(v, Shared)):
        assert shared.released == len(shared.streams) == 1


def test_a_wrong_call_gives_back_what_it_borrowed(samples: Any) -> None:
    a = opgen.to_device(A)
    shared = Shared(a.address, (2, 3), code=2, bits=32)
    with pytest.raises(ArgumentValueError):
        samples.mat_mul(shared, a)
    assert shared.released == 1


def test_a_vector_of_sizes_stays_in_this_machines_memory(modules: dict[Path, Any], fake: ctypes.CDLL) -> None:
    case = small_case("Conv2DBackpropInput")
    placed = {n: opgen.to_device(a) for n, a in case.tensors.items()}
    with pytest.raises(ArgumentTypeError) as caught:
        modules[OPS].raw_ops.Conv2DBackpropInput(**placed, **case.attrs)
    assert str(caught.value) == (
        "Conv2DBackpropInput: argument 'input_sizes': expected a tensor in this machine's memory, "
        "given an object of type DeviceArray on a device"
    )


@pytest.mark.parametrize("call", ["cuMemAlloc_v2", "cuModuleLoadData", "cuLaunchKernel"])
def test_nothing_leaks_when_the_driver_fails(call: str, samples: Any, fake: ctypes.CDLL) -> None:
    sizes = 6 + len(call)  # no other test's, so that the kernel is loaded here
    a, b = opgen.to_device(np.zeros((2, sizes), np.float32)), opgen.to_device(np.zeros((sizes, 2), np.float32))
    shared = Shared(a.address, (2, sizes), code=2, bits=32)
    fake.fake_fail(call.encode(), 0, 700)
    with pytest.raises(DeviceError, match=f"^{call}: CUDA_ERROR_ILLEGAL_ADDRESS"):
        samples.mat_mul(shared, b)
    assert shared.released == 1


def test_a_result_beyond_the_devices_memory(samples: Any, fake: ctypes.CDLL) -> None:
    a, b = opgen.to_device(A), opgen.to_device(B)
    fake.fake_fail(b"cuMemAlloc_v2", 0, 2)
    with pytest.raises(ArgumentMemoryError) as caught:
        samples.mat_mul(a, b)
    expected = "expected a result that fits into the memory of device 0, given float32[2, 4]"
    assert str(caught.value) == f"MatMul: argument 'product': {expected}"
