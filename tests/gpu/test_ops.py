"""The generated ops on the GPU: the recorded TensorFlow cases, and tensors of PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opgen
from opgen.diagnostics.calls import ArgumentTypeError, ArgumentValueError
from opgen.runtime.devices.arrays import DeviceArray
from tests.bindings.modules import OPS, SAMPLES, generated
from tests.golden.load import Case, cases, compare

pytestmark = pytest.mark.gpu

CASES = list(cases())
IDS = [f"{c.id}-{c.op.split('.')[-1]}-{c.dtype}-{c.category}" for c in CASES]


def run(case: Case, tensors: dict[str, Any], **more: object) -> Any:
    name = case.op.removeprefix("tf.nn.")
    return getattr(generated(OPS).raw_ops, name)(**tensors, **case.attrs, **more)


def placed(case: Case) -> dict[str, Any]:
    return {n: a if n.endswith("_sizes") else opgen.to_device(a) for n, a in case.tensors.items()}


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_golden(case: Case) -> None:
    """Within the tight tolerance, twice the same bits."""
    tensors = placed(case)
    first, second = run(case, tensors), run(case, tensors)
    assert isinstance(first, DeviceArray)
    found = first.to_numpy()
    ok, why = compare(case, found)
    assert ok, f"{case.id} {case.op} {case.attrs}: {why}"
    assert second.to_numpy().tobytes() == found.tobytes()


@pytest.mark.parametrize("case", CASES[::4], ids=IDS[::4])
def test_numpy_arrays_are_copied(case: Case) -> None:
    with opgen.device("cuda"):
        found = run(case, case.tensors)
    assert type(found) is np.ndarray
    ok, why = compare(case, found)
    assert ok, f"{case.id} {case.op} {case.attrs}: {why}"


def test_a_result_is_written_in_place() -> None:
    ops, (a, b) = generated(SAMPLES), _matrices()
    out = opgen.to_device(np.full((50, 30), np.nan, np.float32))
    assert ops.mat_mul(opgen.to_device(a), opgen.to_device(b), out=out) is out
    np.testing.assert_array_equal(out.to_numpy(), a @ b)
    np.testing.assert_array_equal(ops.mat_mul(out, opgen.to_device(b[:30])).to_numpy(), a @ b @ b[:30])


def _matrices() -> tuple[Any, Any]:
    """Whole numbers, whose products every order of summation gives exactly."""
    rng = np.random.default_rng(4)
    return rng.integers(-3, 4, (50, 70)).astype(np.float32), rng.integers(-3, 4, (70, 30)).astype(np.float32)


def test_a_wrong_call_leaves_the_device_usable() -> None:
    ops, (a, b) = generated(SAMPLES), _matrices()
    x, y = opgen.to_device(a), opgen.to_device(b)
    with pytest.raises(ArgumentTypeError, match="argument 'b': expected a tensor on device 0 like 'a'"):
        ops.mat_mul(x, b)
    with pytest.raises(ArgumentValueError, match="argument 'b': expected dimension 0 to be 70"):
        ops.mat_mul(x, x)
    np.testing.assert_array_equal(ops.mat_mul(x, y).to_numpy(), a @ b)


def test_memory_is_given_back() -> None:
    """Many more results than fit at once."""
    ops = generated(SAMPLES)
    x = opgen.to_device(np.ones((1 << 13, 1 << 13), np.float32))  # 256 MiB
    for _ in range(1000):
        last = ops.scaled_add(x, x, 0.5)
    assert (last.to_numpy()[::4096, ::4096] == 1.5).all()


# PyTorch ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def torch() -> Any:
    found = pytest.importorskip("torch")
    if not found.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    return found


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32"])
def test_tensors_of_pytorch_in_place(torch: Any, dtype: str) -> None:
    ops, (a, b) = generated(SAMPLES), _matrices()
    x, y = (torch.from_numpy(m).cuda().to(getattr(torch, dtype)) for m in (a, b))
    before = torch.cuda.memory_allocated()
    out = torch.full((50, 30), 9, dtype=x.dtype, device="cuda")
    assert ops.mat_mul(x, y, out=out) is out
    expected = torch.from_numpy(a @ b).to(x.dtype).double().numpy()
    np.testing.assert_array_equal(out.double().cpu().numpy(), expected)
    shared = torch.from_dlpack(ops.mat_mul(x, y))
    assert (shared.dtype, shared.device.type, tuple(shared.shape)) == (x.dtype, "cuda", (50, 30))
    np.testing.assert_array_equal(shared.double().cpu().numpy(), expected)
    del out
    assert torch.cuda.memory_allocated() == before


def test_streams_of_pytorch(torch: Any) -> None:
    """Inputs made, and results read, on another stream than the default one."""
    ops, (a, b) = generated(SAMPLES), _matrices()
    x, y = torch.from_numpy(a).cuda(), torch.from_numpy(b).cuda()
    big = torch.ones(4096, 4096, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(20):
            big = big @ big * 1e-4  # keeps the stream busy
        out = torch.zeros(50, 30, device="cuda")
        ops.mat_mul(x * 2, y, out=out)
        found = (out + 1).cpu().numpy()
    np.testing.assert_array_equal(found, a @ b * 2 + 1)


def test_what_pytorch_does_not_lend(torch: Any) -> None:
    ops, (a, b) = generated(SAMPLES), _matrices()
    x, y = torch.from_numpy(a).cuda(), torch.from_numpy(b).cuda()
    with pytest.raises(ArgumentTypeError, match="argument 'a': expected a tensor that requires no gradient"):
        ops.mat_mul(x.clone().requires_grad_(), y)
    with pytest.raises(ArgumentValueError, match="argument 'a': expected a C-contiguous array, given strides of"):
        ops.mat_mul(x.t(), x)
    with pytest.raises(ArgumentTypeError, match="argument 'b': expected a tensor on device 0 like 'a'"):
        ops.mat_mul(x, y.cpu())
