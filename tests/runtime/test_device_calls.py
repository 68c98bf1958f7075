"""Generated functions on a CUDA device, over a driver made for the test that runs kernels through the emulation header.

What they give must be, bit for bit, what they give on the CPU.
"""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  (registers bfloat16 with numpy)
import numpy as np
import pytest

import opgen
from opgen.diagnostics import UserError
from opgen.dtypes import DTYPES, FLOAT32
from opgen.runtime import placement, specialize
from opgen.runtime.devices import cuda_driver, emulation, ptx
from opgen.runtime.devices.arrays import DeviceArray
from opgen.runtime.devices.borrowed import is_device_array
from opgen.runtime.devices.cuda_driver import Driver
from opgen.runtime.devices.errors import DeviceError, DeviceUnavailableError
from opgen.runtime.devices.export import capsule_of
from opgen.runtime.errors import ArgumentError, ArgumentMemoryError, ArgumentTypeError, ArgumentValueError
from tests.bindings.modules import OPS, ROOT, SAMPLES, generated, imported, spec
from tests.codegen.cuda.fake import Foreign, Shared, build, fake_library
from tests.golden.load import Case, cases

pytestmark = pytest.mark.skipif(emulation.compiler() is None, reason="there is no C++ compiler")

A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.arange(12, dtype=np.float32).reshape(3, 4) - 5


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return fake_library(tmp_path_factory.mktemp("fake"))


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Any]:
    """The generated modules, for these tests alone: their kernels belong to the driver made for the tests."""
    folder = tmp_path_factory.mktemp("generated")
    return {path: imported(path, folder) for path in (OPS, SAMPLES)}


@pytest.fixture
def fake(library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> Iterator[ctypes.CDLL]:
    """A machine with a CUDA device and a compiler.  Nothing may be left on the device afterwards."""
    monkeypatch.setattr(ptx, "binary", build)
    monkeypatch.setattr(cuda_driver, "driver", lambda: Driver(library.path))
    cuda_driver.device.cache_clear()
    library.fake_clear()
    yield library
    gc.collect()
    cuda_driver.device.cache_clear()
    assert library.fake_allocations() == 0
    assert library.fake_context_depth() == 0


@pytest.fixture
def samples(modules: dict[Path, Any], fake: ctypes.CDLL) -> Any:
    return modules[SAMPLES]


def small_case(op: str) -> Case:
    """A small recorded call of an op, with values that every type can hold."""
    usable = [c for c in cases() if c.op == op and _size(c) > 60]
    return min((c for c in usable if 0.5 < np.abs(c.reference).max(initial=0) < 100), key=_size)


def _size(case: Case) -> int:
    return sum(a.size for a in case.tensors.values())


CALLS = [
    pytest.param(op.name, dtype, id=f"{op.name}-{dtype}")
    for op in spec(OPS).ops
    if any(c.op == op.name for c in cases())
    for dtype in map(str, op.type_variables[0].allowed)
]


@pytest.mark.parametrize(("op", "dtype"), CALLS)
def test_every_op_and_type(op: str, dtype: str, modules: dict[Path, Any], fake: ctypes.CDLL) -> None:
    case = small_case(op)
    sizes = {n: a for n, a in case.tensors.items() if n.endswith("_sizes")}
    with np.errstate(invalid="ignore"):  # a tensor of which only the shape counts is NaN
        tensors = {n: (4 * a).astype(dtype) for n, a in case.tensors.items() if n not in sizes}
    function = getattr(modules[OPS].raw_ops, op)
    expected = function(**tensors, **sizes, **case.attrs)
    assert expected.any()
    placed = {n: opgen.to_device(a) for n, a in tensors.items()}
    runs = [function(**placed, **sizes, **case.attrs) for _ in range(2)]
    fake.fake_clear()
    out = DeviceArray(cuda_driver.device(0), expected.shape, runs[0].dtype)
    assert function(**placed, **sizes, **case.attrs, out=out) is out
    assert "cuMemcpy" not in fake.fake_log().decode()
    with opgen.device("cuda"):
        copied = function(**tensors, **sizes, **case.attrs)
    for found in (*(r.to_numpy() for r in (*runs, out)), copied):
        assert (type(found), found.dtype, found.shape) == (np.ndarray, expected.dtype, expected.shape)
        assert found.tobytes() == expected.tobytes()


def test_the_specs_ops_are_all_there() -> None:
    assert {p.values[0] for p in CALLS} == {op.name for op in spec(OPS).ops if op.name[0].isupper()}


def test_sizes_and_policies(samples: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(specialize, "SPECIALIZATIONS", 2)
    for policy, kernels in (("auto", 3), ("always", 4), ("never", 1)):
        monkeypatch.setenv("OPGEN_SPECIALIZE", policy)
        ops = imported(SAMPLES, tmp_path)
        for n in (1, 2, 3, 4, 1):
            found = ops.mat_mul(opgen.to_device(A), opgen.to_device(B[:, :n].copy()))
            np.testing.assert_array_equal(found.to_numpy(), A @ B[:, :n])
        (variant,) = ops._library.kernels["MatMul"]._variants.values()
        assert len(variant.on_device) == kernels


def test_plans_are_remembered(samples: Any, fake: ctypes.CDLL) -> None:
    a, b = opgen.to_device(A), opgen.to_device(B)
    samples.mat_mul(a, b)
    fake.fake_clear()
    samples.mat_mul(a, b)
    calls = fake.fake_log().decode().split()
    assert "cuModuleLoadData" not in calls
    assert calls.count("cuLaunchKernel") == 1


def test_tensors_of_other_libraries(samples: Any) -> None:
    a, b = opgen.to_device(A), opgen.to_device(B)
    shared = Shared(a.address, (2, 3), code=2, bits=32)
    result = samples.mat_mul(shared, Foreign(b, stream=None))
    np.testing.assert_array_equal(result.to_numpy(), A @ B)
    assert (shared.streams, shared.released) == ([1], 1)
    assert repr(result) == "DeviceArray(float32[2, 4], device 0)"
    out = Shared(result.address, (2, 4), code=2, bits=32, strides=(4, 1))
    assert samples.mat_mul(a, b, out=out) is out
    assert out.released == 1


def test_streams(samples: Any, fake: ctypes.CDLL) -> None:
    """Work on another stream is waited for before and after; on the default stream nothing is."""
    a, b = opgen.to_device(A), opgen.to_device(B)
    samples.mat_mul(a, b)
    fake.fake_clear()
    samples.mat_mul(a, b)
    assert "cuStreamSynchronize" not in fake.fake_log().decode()
    samples.mat_mul(Foreign(a, stream=7), b)
    log = [line for line in fake.fake_log().decode().split("\n") if line.startswith("cuStreamSynchronize ")]
    assert log == ["cuStreamSynchronize 7", "cuStreamSynchronize 0"]


def test_one_number_may_come_from_the_host(samples: Any) -> None:
    a = opgen.to_device(A)
    np.testing.assert_array_equal(samples.scaled_add(a, a, 0.5).to_numpy(), samples.scaled_add(A, A, 0.5))


def test_an_interface_of_bfloat16(samples: Any) -> None:
    a, b = A.astype("bfloat16"), B.astype("bfloat16")
    found = samples.mat_mul(opgen.to_device(a), opgen.to_device(b))
    assert found.__cuda_array_interface__["typestr"] == "<V2"
    assert found.to_numpy().tobytes() == samples.mat_mul(a, b).tobytes()


TWO_RESULTS = '''"""An op."""

op Both {
  """Twice and one more."""
  type T in {float32}
  input x: T[count] """A row."""
  output twice: T[count] """2 * x."""
  output more: T[count] """x + 1."""
  twice[i] = 2 * x[i]
  more[i] = x[i] + 1
}
'''


def test_several_results(tmp_path: Path, fake: ctypes.CDLL) -> None:
    (tmp_path / "both.op").write_text(TWO_RESULTS)
    both = opgen.load(tmp_path / "both.op").both
    row = A[0].copy()
    x, outs = opgen.to_device(row), tuple(opgen.to_device(np.zeros(3, np.float32)) for _ in range(2))
    assert [a is b for a, b in zip(both(x, out=outs), outs, strict=True)] == [True, True]
    for twice, more in (both(x), outs):
        np.testing.assert_array_equal(twice.to_numpy(), 2 * row)
        np.testing.assert_array_equal(more.to_numpy(), row + 1)
    with opgen.device("cuda"):
        np.testing.assert_array_equal(both(row), [2 * row, row + 1])
    with pytest.raises(ArgumentTypeError, match="argument 'out': expected 2 device arrays, given"):
        both(x, out=outs[:1])
    with pytest.raises(ArgumentValueError, match="argument 'out': expected memory apart from the inputs'"):
        both(x, out=(outs[0], outs[0]))


def test_empty_tensors(samples: Any) -> None:
    a, b = opgen.to_device(A[:0]), opgen.to_device(B)
    assert samples.mat_mul(a, b).to_numpy().shape == (0, 4)
    assert samples.mat_mul(a, opgen.to_device(B[:, :0])).to_numpy().shape == (0, 0)
    nothing = samples.mat_mul(opgen.to_device(np.empty((2, 0), np.float32)), opgen.to_device(B[:0]))
    np.testing.assert_array_equal(nothing.to_numpy(), np.zeros((2, 4)))


# Errors ----------------------------------------------------------------------------------------------------------

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
        "'out': expected memory apart from the inputs', given an array that overlaps one of them",
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
    from opgen.runtime import dlpack

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
