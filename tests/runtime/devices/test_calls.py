"""Generated functions on a CUDA device, over a driver made for the test that runs kernels through the emulation header.

What they give must be, bit for bit, what they give on the CPU.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opgen
from opgen.diagnostics.calls import ArgumentTypeError, ArgumentValueError
from opgen.runtime.call import specialize
from opgen.runtime.devices import cuda_driver, emulation
from opgen.runtime.devices.arrays import DeviceArray
from tests.bindings.modules import OPS, SAMPLES, imported, spec
from tests.codegen.cuda.fake import Foreign, Shared
from tests.golden.load import cases
from tests.support.recorded import small_case

pytestmark = pytest.mark.skipif(emulation.compiler() is None, reason="there is no C++ compiler")

A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.arange(12, dtype=np.float32).reshape(3, 4) - 5


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


def test_calls_on_a_device_are_recorded(samples: Any, fake: ctypes.CDLL) -> None:
    a, b = opgen.to_device(A), opgen.to_device(B)
    with opgen.record() as calls:
        samples.mat_mul(a, b)
        with opgen.device("cuda"):
            samples.mat_mul(A, B)
    assert [(c.op, c.device, str(c.tensors[1])) for c in calls] == 2 * [("MatMul", "cuda:0", "float32[3, 4]")]
    assert all(k.seconds == c.seconds > 0 and len(k.code_hash) == 64 for c in calls for k in c.kernels)


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
    with pytest.raises(ArgumentValueError, match="argument 'out': expected memory that no input or other result uses"):
        both(x, out=(outs[0], outs[0]))


def test_empty_tensors(samples: Any) -> None:
    a, b = opgen.to_device(A[:0]), opgen.to_device(B)
    assert samples.mat_mul(a, b).to_numpy().shape == (0, 4)
    assert samples.mat_mul(a, opgen.to_device(B[:, :0])).to_numpy().shape == (0, 0)
    nothing = samples.mat_mul(opgen.to_device(np.empty((2, 0), np.float32)), opgen.to_device(B[:0]))
    np.testing.assert_array_equal(nothing.to_numpy(), np.zeros((2, 4)))
