"""Where calls run, and what a CUDA device lends and borrows by DLPack."""

import ctypes
import gc
import os
import subprocess
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import opgen
from opgen.compiler.cuda import ptx
from opgen.diagnostics import UserError
from opgen.diagnostics.calls import ArgumentError
from opgen.diagnostics.devices import DeviceUnavailableError
from opgen.dtypes import DTYPES, FLOAT32
from opgen.runtime.call import placement
from opgen.runtime.devices import cuda_driver, emulation
from opgen.runtime.devices.arrays import DeviceArray
from opgen.runtime.devices.borrowed import is_device_array
from opgen.runtime.devices.export import capsule_of
from tests.bindings.modules import ROOT, SAMPLES, generated
from tests.codegen.cuda.fake import Foreign, Shared

pytestmark = pytest.mark.skipif(emulation.compiler() is None, reason="there is no C++ compiler")

A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.arange(12, dtype=np.float32).reshape(3, 4) - 5


# Placement -------------------------------------------------------------------------------------------------------


def test_calls_are_placed(samples: Any, fake: ctypes.CDLL) -> None:
    def launches() -> int:
        count = fake.fake_log().decode().count("cuLaunchKernel")
        fake.fake_clear()
        return count

    expected = samples.mat_mul(A, B)
    out = np.empty((2, 4), np.float32)
    with opgen.device("cuda:0"):
        np.testing.assert_array_equal(samples.mat_mul(A, B), expected)
        np.testing.assert_array_equal(samples.mat_mul(np.asfortranarray(A), B.tolist()), expected)
        assert samples.mat_mul(A, B, out=out) is out
        assert launches() == 3
        with opgen.device("cpu"):
            samples.mat_mul(A, B)
        assert launches() == 0
        other = threading.Thread(target=samples.mat_mul, args=(A, B))
        other.start()
        other.join()
        assert launches() == 0
        samples.mat_mul(A, B)
        assert launches() == 1
    samples.mat_mul(A, B)
    assert launches() == 0
    np.testing.assert_array_equal(out, expected)


def test_out_is_checked_where_calls_are_placed(samples: Any, fake: ctypes.CDLL) -> None:
    with opgen.device("cuda"):
        for out, message in (
            (np.empty((4, 2), np.float32), "expected float32[2, 4], given float32[4, 2]"),
            (
                opgen.to_device(np.zeros((2, 4), np.float32)),
                "expected a numpy array, given an object of type DeviceArray",
            ),
        ):
            with pytest.raises(ArgumentError) as caught:
                samples.mat_mul(A, B, out=out)
            assert str(caught.value) == f"MatMul: argument 'out': {message}"
    assert "cuLaunchKernel" not in fake.fake_log().decode()


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("gpu", "opgen.device: expected cpu, cuda or cuda:N, given 'gpu'; did you mean 'cpu'?"),
        ("Cuda", "opgen.device: expected cpu, cuda or cuda:N, given 'Cuda'; did you mean 'cuda'?"),
        ("cuda:", "opgen.device: expected cpu, cuda or cuda:N, given 'cuda:'; did you mean 'cuda'?"),
        (0, "opgen.device: expected cpu, cuda or cuda:N, given 0"),
    ],
)
def test_an_unknown_place(word: Any, message: str) -> None:
    with pytest.raises(UserError) as caught, opgen.device(word):
        pass
    assert str(caught.value) == message
    assert placement.chosen() is None


def test_a_device_that_is_not_there(fake: ctypes.CDLL) -> None:
    with pytest.raises(DeviceUnavailableError, match=r"^there is no CUDA device 3: 1 found$"), opgen.device("cuda:3"):
        pass
    with pytest.raises(DeviceUnavailableError, match=r"^there is no CUDA device 3: 1 found$"):
        opgen.to_device(A, "cuda:3")


def test_a_machine_without_a_driver_or_compiler(samples: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ptx, "nvrtc", lambda: None)
    monkeypatch.setattr(ptx.nvcc_tool, "nvcc", lambda: None)
    monkeypatch.setattr(ptx, "binary", lambda source, capability: ptx._compiled(source, "sm_90"))
    with opgen.device("cuda"), pytest.raises(DeviceUnavailableError) as caught:
        samples.mat_mul(A[:1], B)
    message = "there is no CUDA compiler on this machine: neither NVRTC (libnvrtc.so) nor nvcc was found"
    assert str(caught.value) == message
    monkeypatch.setattr(cuda_driver, "driver", lambda: None)
    cuda_driver.device.cache_clear()
    with pytest.raises(DeviceUnavailableError) as caught, opgen.device("cuda"):
        pass
    assert str(caught.value) == "there is no CUDA driver on this machine (libcuda.so.1 does not load or start)"


SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import numpy as np
from tests.bindings.modules import SAMPLES, generated
try:
    print(generated(SAMPLES).mat_mul(np.ones((1, 2)), np.ones((2, 1))).tolist())
except Exception as error:
    print(f"{type(error).__name__}: {error}")
"""


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("cpu", "[[2.0]]"),
        ("", "[[2.0]]"),
        ("cuda:99", "DeviceUnavailableError: there is no CUDA d"),
        ("cudda", "UserError: OPGEN_DEVICE: expected cpu, cuda or cuda:N, given 'cudda'; did you mean 'cuda'?"),
    ],
)
def test_the_environment_variable(word: str, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(ROOT)],
        env={**os.environ, "OPGEN_DEVICE": word},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(said)


def test_to_device(fake: ctypes.CDLL) -> None:
    assert opgen.to_device([[1.0, 2.0]]).to_numpy().tolist() == [[1.0, 2.0]]
    np.testing.assert_array_equal(opgen.to_device(A.T).to_numpy(), A.T)
    with pytest.raises(UserError) as caught:
        opgen.to_device(np.zeros(2, np.complex64))
    assert str(caught.value) == f"opgen.to_device: expected one of {', '.join(DTYPES)}, given complex64[2]"
    with pytest.raises(UserError, match=r"^opgen\.to_device: expected cuda or cuda:N, given 'cpu'$"):
        opgen.to_device(A, "cpu")


# DLPack ----------------------------------------------------------------------------------------------------------


def test_results_are_lent_by_dlpack(samples: Any, fake: ctypes.CDLL) -> None:
    """A capsule that is read keeps the memory until it is given back; one that nobody reads, until it is dropped."""
    from opgen.runtime.memory import dlpack

    array = opgen.to_device(A)
    assert array.__dlpack_device__() == (2, 0)
    shared = dlpack.take(array, (2, 0), 0)
    assert (shared.address, shared.shape, shared.strides, shared.dtype) == (array.address, (2, 3), (12, 4), np.float32)
    del array
    gc.collect()
    assert fake.fake_allocations() == 1
    shared.release()
    del shared
    assert fake.fake_allocations() == 0
    array = opgen.to_device(A)
    capsule = array.__dlpack__(stream=1, max_version=(1, 0))
    del array
    assert fake.fake_allocations() == 1
    del capsule
    assert fake.fake_allocations() == 0


def test_numpy_reads_our_capsules() -> None:
    """A consumer that is not ours, over memory of this machine: what it reads, and when it gives it back."""

    class Owner:
        def __init__(self) -> None:
            self.memory = A.copy()

        def __dlpack__(self, **_: object) -> object:
            return capsule_of(self, self.memory.ctypes.data, FLOAT32, (2, 3), (1, 0))

        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

    owner = Owner()
    alive = weakref.ref(owner)
    read = np.from_dlpack(owner)
    del owner
    np.testing.assert_array_equal(read, A)
    assert alive() is not None
    del read
    assert alive() is None


def test_a_dropped_capsule_leaves_a_pending_error_alone(fake: ctypes.CDLL) -> None:
    def fail() -> None:
        capsule = opgen.to_device(A).__dlpack__()
        raise LookupError(type(capsule).__name__)

    for _ in range(3):
        with pytest.raises(LookupError, match=r"^PyCapsule$"):
            fail()


def test_a_lender_waits_for_its_own_stream(fake: ctypes.CDLL) -> None:
    array = DeviceArray(cuda_driver.device(0), (2,), FLOAT32, stream=5)
    for stream, waits in ((5, 0), (-1, 0), (None, 1), (1, 1), (9, 1)):
        fake.fake_clear()
        array.__dlpack__(stream=stream)
        assert fake.fake_log().decode().count("cuStreamSynchronize 5") == waits
    for wrong in ({"copy": True}, {"dl_device": (1, 0)}):
        with pytest.raises(BufferError, match=r"^a DeviceArray lends its own memory only"):
            array.__dlpack__(**wrong)


def test_what_is_a_device_array(fake: ctypes.CDLL) -> None:
    class Raising:
        def __dlpack__(self) -> object:
            return None

        def __dlpack_device__(self) -> tuple[int, int]:
            raise ValueError("no device")

    device = opgen.to_device(A)
    assert [is_device_array(v) for v in (device, Foreign(device), Shared(0, (1,), 2, 32))] == [True] * 3
    assert [is_device_array(v) for v in (None, 1, "a", [1], A, np.float32(1), Raising(), object())] == [False] * 8


def test_the_cpu_is_what_it_was(samples: Any) -> None:
    np.testing.assert_array_equal(generated(SAMPLES).mat_mul(A, B), A @ B)
