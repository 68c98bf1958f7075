"""Calls with tensors of other libraries: remembered as numpy's are, read in place, given back, written to."""

from __future__ import annotations

import gc
import random
import sys
import threading
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from opgen.diagnostics.calls import ArgumentError, ArgumentTypeError, ArgumentValueError
from opgen.runtime.call import views
from opgen.runtime.call.operator import Operator
from opgen.runtime.call.tensors import TensorChecks
from opgen.runtime.memory.lending import LentArray
from tests.bindings.modules import OPS, generated
from tests.support.lenders import Buffer, Exchanger, Flagged, Lender

X = np.random.default_rng(5).standard_normal((1, 5, 4, 3), np.float32)
F = np.random.default_rng(6).standard_normal((3, 3, 3, 2), np.float32)
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
KINDS = (Lender, Flagged, Buffer, Exchanger)
SEED = 7


def call(x: Any, f: Any, **more: Any) -> Any:
    return generated(OPS).conv2d(x, f, strides=[1, 1, 1, 1], padding="SAME", **more)


@pytest.fixture(autouse=True)
def op() -> Iterator[Operator]:
    """The operator of a convolution without plans, and no class of tensors known."""
    found: Operator = generated(OPS)._conv2d
    for state in (found._plans, found._last, views._views):
        state.clear()
    yield found
    for state in (found._plans, found._last, views._views):
        state.clear()


@pytest.fixture
def checks(op: Operator, monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One element for each call that is checked in full."""
    counted: list[None] = []
    check = op._check

    def counting(*arguments: object) -> Any:
        counted.append(None)
        return check(*arguments)

    monkeypatch.setattr(op, "_check", counting)
    return counted


@pytest.mark.parametrize("dtype", [np.dtype(np.float32), BFLOAT16], ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("prepared", [False, True])
def test_a_repeated_call_is_not_checked_again(
    kind: type[Lender], dtype: np.dtype[Any], prepared: bool, checks: list[None]
) -> None:
    a, b = X.astype(dtype), F.astype(dtype)
    expected = np.asarray(call(a, b))
    x, f = kind(a), kind(b)
    run = call
    if prepared:
        run = generated(OPS).prepare.conv2d(x, f, strides=[1, 1, 1, 1], padding="SAME")
    run(x, f)
    checks.clear()
    for _ in range(3):
        result = run(x, f)
        assert result.tobytes() == expected.tobytes()
        assert isinstance(result, LentArray) == (dtype == BFLOAT16)
    assert checks == []
    gc.collect()
    assert (x.lent, f.lent) == (x.returned, f.returned)


@pytest.mark.parametrize("kind", [Lender, Flagged, Exchanger])
def test_results_are_written_to_other_libraries_tensors(kind: type[Lender], checks: list[None]) -> None:
    expected = call(X, F)
    for _ in range(3):
        memory = np.zeros_like(expected)
        out = kind(memory)
        assert call(kind(X), kind(F), out=out) is out
        np.testing.assert_array_equal(memory, expected)
        assert call(X, F, out=kind(memory)) is not out
        run = generated(OPS).prepare.conv2d(X, F, strides=[1, 1, 1, 1], padding="SAME")
        assert run(X, kind(F), out=out) is out
    memory = np.zeros_like(expected)
    checks.clear()
    call(kind(X), kind(F), out=kind(memory))
    assert checks == []
    np.testing.assert_array_equal(memory, expected)


def test_outs_that_cannot_be_written() -> None:
    whole = np.zeros((2, 1, 5, 4, 2), np.float32)
    good, shared = whole[0], np.zeros(X.size + 40, np.float32)
    wrong: list[tuple[Any, str]] = [
        (Lender(good, flags=1), "expected a writeable array, given a read-only one"),
        (Lender(good, versioned=False), "expected a writeable array, given a read-only one"),
        (Buffer(good, flags=1), "expected a writeable array, given a read-only one"),
        (Lender(good.astype(np.float64)), "expected float32[1, 5, 4, 2], given float64[1, 5, 4, 2]"),
        (Lender(whole[1:, 0]), "expected float32[1, 5, 4, 2], given float32[1, 5, 4, 2]"),
        (Lender(whole.transpose(0, 1, 3, 2, 4)[0]), "expected float32[1, 5, 4, 2], given float32[1, 4, 5, 2]"),
        (Lender(good[..., ::-1]), "expected an aligned C-contiguous array, given strides [160, 32, 8, -4]"),
        (Lender(good, device=(2, 0)), "(its capsule is of device (2, 0), but it says that it lies on (1, 0))"),
    ]
    del wrong[4]
    for _ in range(2):
        for out, why in wrong:
            with pytest.raises(ArgumentError) as caught:
                call(Lender(X), F, out=out)
            assert str(caught.value).endswith(why)
            assert str(caught.value).startswith("Conv2D: argument 'out': ")
        negative = Flagged(good)
        negative.negative = True
        with pytest.raises(ArgumentTypeError, match=r"'out': expected a tensor without the negative bit"):
            call(X, F, out=negative)
        x = shared[: X.size].reshape(X.shape)
        x[...] = X
        overlapping = Exchanger(shared[4 : 4 + good.size].reshape(good.shape))
        with pytest.raises(ArgumentValueError, match=r"'out': expected memory that no input or other result uses"):
            call(Exchanger(x), F, out=overlapping)
        call(Exchanger(X), F, out=Exchanger(good.copy()))
    assert not whole.any()


@pytest.mark.parametrize("kind", [Flagged, Exchanger])
@pytest.mark.parametrize("bit", ["negative", "conjugate", "requires_grad"])
def test_what_a_tensor_means_is_asked_each_time(kind: type[Flagged], bit: str) -> None:
    x = kind(X)
    call(x, F)
    call(x, F)
    setattr(x, bit, True)
    with pytest.raises(ArgumentTypeError, match="makes one"):
        call(x, F)
    setattr(x, bit, False)
    np.testing.assert_array_equal(call(x, F), call(X, F))


@pytest.mark.parametrize("kind", KINDS)
def test_tensors_of_a_known_class_that_are_otherwise(kind: type[Lender], checks: list[None]) -> None:
    """Other shapes, strides, types; and such as make no sense, at random."""
    call(kind(X), kind(F))
    larger = np.random.default_rng(8).standard_normal((2, 7, 6, 3), np.float32)
    expected = call(larger, F)
    for a in (larger, np.asfortranarray(larger), larger[:, ::-1][:, ::-1], larger.repeat(2, 1)[:, ::2]):
        np.testing.assert_array_equal(call(kind(a), F), expected)
    double = larger.astype(np.float64)
    np.testing.assert_array_equal(call(kind(double), kind(F.astype(np.float64))), call(double, F.astype(np.float64)))
    r = random.Random(SEED)
    sizes = (0, 1, -1, 5, 2**31, 2**46, 2**62, 2**63 - 1, -(2**63))
    for k in range(300):
        changes: dict[str, Any] = r.choice(
            (
                {"shape": tuple(r.choice(sizes) for _ in range(4))},
                {"ndim": r.choice((-1, 3, 17, 65, 2**31 - 1))},
                {"device": (r.choice((0, 2, 13, 99)), 0)},
                {"code": r.choice((1, 3, 5, 9, 255))},
                {"lanes": r.choice((0, 2))},
                {"data": None},
                {"strides": tuple(r.choice((2**60, -(2**60), 2**63 - 1)) for _ in range(4))},
                {"major": 3},
            )
        )
        x = kind(X, **changes)
        if 0 in changes.get("shape", ()) or (kind is Buffer and "shape" in changes):
            continue
        blamed = _blamed(x)
        what = f"seed {SEED}, {k}: {changes}"
        if blamed is None:
            assert "major" in changes or changes.get("ndim") == 3 or "device" in changes, what
        else:
            assert blamed in (("Conv2D", "input"), ("Conv2D", "filter"), ("Conv2D", "output")), what
        assert x.lent == x.returned, what


def _blamed(x: Lender) -> tuple[str, str] | None:
    """The op and the argument that a call's error names."""
    try:
        call(x, F)
    except ArgumentError as error:
        return error.op, error.argument
    return None


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_kept(kind: type[Lender]) -> None:
    x, f = kind(X), kind(F)
    for _ in range(10):
        call(x, f)
    gc.collect()
    counts = [sys.getrefcount(v) for v in (x, f, x.array, None, BFLOAT16, np.dtype(np.float32))]
    for _ in range(500):
        call(x, f)
    gc.collect()
    after = [sys.getrefcount(v) for v in (x, f, x.array, None, BFLOAT16, np.dtype(np.float32))]
    assert max(abs(a - b) for a, b in zip(counts, after, strict=True)) < 50
    assert x.lent == x.returned


def test_an_error_that_is_pending_when_memory_goes_back() -> None:
    lender = Lender(X)
    views.learn(lender)

    def fail() -> None:
        a = views.view(lender)
        raise LookupError(type(a).__name__)

    for _ in range(3):
        with pytest.raises(LookupError, match="ndarray"):
            fail()
    gc.collect()
    assert lender.lent == lender.returned > 1


def test_threads_share_what_is_known() -> None:
    expected = call(X, F).tobytes()
    wrong: list[object] = []

    def work(kind: type[Lender]) -> None:
        x, f = kind(X), kind(F)
        for _ in range(200):
            if call(x, f).tobytes() != expected:
                wrong.append(kind)

    threads = [threading.Thread(target=work, args=(kind,)) for kind in KINDS]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


@pytest.mark.parametrize("options", [{}, {"max_version": (1, 0)}])
def test_results_of_bfloat16_are_lent(options: dict[str, Any]) -> None:
    result = call(Lender(X.astype(BFLOAT16)), Lender(F.astype(BFLOAT16)))
    assert isinstance(result, LentArray)

    class Plain:  # not numpy's, so that it is read by DLPack
        __dlpack_device__ = staticmethod(result.__dlpack_device__)

        def __dlpack__(self, **more: Any) -> Any:
            return result.__dlpack__(**options)

    found = TensorChecks("Op").as_array("x", Plain())
    assert found is not None
    assert (found.dtype, found.ctypes.data) == (BFLOAT16, result.ctypes.data)
    assert call(result[..., :1], F.astype(BFLOAT16)[..., :1, :1]).dtype == BFLOAT16
    assert np.from_dlpack(result.astype(np.float32)).dtype == np.float32


def test_without_machine_code_it_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "_load", lambda: None)
    expected = call(X, F)
    for kind in KINDS:
        for _ in range(2):
            np.testing.assert_array_equal(call(kind(X), kind(F)), expected)
    assert views._views == {}


def test_pytorch() -> None:
    torch = pytest.importorskip("torch")
    x, f = torch.from_numpy(X), torch.from_numpy(F)
    for t in (torch.float32, torch.bfloat16):
        out = torch.zeros(1, 5, 4, 2, dtype=t)
        for _ in range(3):
            result = call(x.to(t), f.to(t))
            assert torch.equal(torch.from_dlpack(result), call(x.to(t), f.to(t), out=out))
        assert torch.equal(out, torch.from_dlpack(result))
    z = torch.complex(x, x)
    for _ in range(2):
        with pytest.raises(ArgumentTypeError, match=r"resolve_neg"):
            call(z.conj().imag, f)
    np.testing.assert_array_equal(call(z.conj().imag.resolve_neg(), f), call(-X, F))
