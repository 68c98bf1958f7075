"""Tensors by DLPack and CUDA's array interface: read where they lie, given back once, refused if they make no sense."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from opgen.diagnostics.calls import ArgumentError, ArgumentMemoryError, ArgumentTypeError
from opgen.dtypes import DTYPES
from opgen.runtime.call.tensors import TensorChecks, contiguous
from opgen.runtime.devices.borrowed import Loans, is_device_array
from tests.support.lenders import Flagged, Lender, Wrapper

check = TensorChecks("Op")
VALUES = np.array([[1.0, -2.5, 3.0], [0.5, 1e30, -0.0]], np.float32)
TYPES = tuple(d.name for d in DTYPES.values() if not d.is_bits)
SEED = 20


def read(value: object) -> Any:
    return check.as_array("x", value)


def numpy_type(name: str) -> Any:
    return ml_dtypes.bfloat16 if name == "bfloat16" else np.dtype(name)


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("view", [np.s_[:], np.s_[::-1, :], np.s_[:, ::-2], np.s_[1], np.s_[:0], np.s_[0, 0]], ids=str)
def test_a_tensor_is_read_where_it_lies(name: str, view: Any, versioned: bool) -> None:
    whole = np.nan_to_num(VALUES, posinf=1.0).clip(-100, 100).astype(numpy_type(name))
    values = whole[view] if whole[view].ndim else whole[:1, :1].reshape(())
    lender = Lender(values, versioned=versioned)
    found = read(lender)
    assert found.dtype == numpy_type(name)
    assert found.tobytes() == values.tobytes()
    if values.size:
        assert found.ctypes.data == values.ctypes.data
        assert (lender.lent, lender.returned) == (1, 0)
    assert found.flags.writeable == (versioned or not values.size)
    del found
    assert (lender.lent, lender.returned) == (1, 1)


def test_what_is_read_only_stays_so() -> None:
    assert not read(Lender(VALUES, flags=1)).flags.writeable


def test_without_strides_rows_lie_one_after_the_other() -> None:
    np.testing.assert_array_equal(read(Lender(VALUES, strides=None)), VALUES)


def test_memory_that_is_not_aligned() -> None:
    raw = np.frombuffer(b"\0" + VALUES.tobytes(), np.uint8)
    lender = Lender(VALUES, data=raw.ctypes.data, byte_offset=1)
    found = read(lender)
    assert not found.flags.aligned
    np.testing.assert_array_equal(contiguous(found), VALUES)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "lanes": ({"lanes": 4}, "elements of DLPack's type 2, 32 bits, 4 lanes"),
    "code": ({"code": 7}, "elements of DLPack's type 7, 32 bits, 1 lanes"),
    "bits": ({"bits": 33}, "elements of DLPack's type 2, 33 bits, 1 lanes"),
    "wide floats": ({"bits": 72}, "elements of DLPack's type 2, 72 bits, 1 lanes"),
    "negative": ({"shape": (2, -3)}, "shape [2, -3]"),
    "product": ({"shape": (2**40, 2**40)}, "shape [1099511627776, 1099511627776], which no memory holds"),
    "strides": ({"strides": (2**62, 2**62)},
     "strides of [18446744073709551616, 18446744073709551616] bytes, which no memory holds"),
    "null": ({"data": None}, "no memory"),
    "rank": ({"ndim": -1}, "-1 dimensions"),
    "high rank": ({"ndim": 65}, "65 dimensions"),
    "no shape": ({"shape": None}, "no shape"),
    "device": ({"device": (2, 0)}, "its capsule is of device (2, 0), but it says that it lies on (1, 0)"),
    "version": ({"major": 2}, "a capsule of DLPack 2, which is not known"),
    "announced": ({"announced": (1,)}, "its __dlpack_device__ gives no device"),
    "announced words": ({"announced": ("cpu", 0)}, "its __dlpack_device__ gives no device"),
    "announced nothing": ({"announced": None}, "'NoneType' object is not iterable"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_makes_no_sense(name: str) -> None:
    changes, why = WRONG[name]
    lender = Lender(VALUES, **changes)
    with pytest.raises(ArgumentTypeError) as caught:
        read(lender)
    assert str(caught.value) == f"Op: argument 'x': expected a readable tensor, given an object of type Lender ({why})"
    assert lender.lent == lender.returned


def test_memory_of_a_device_that_is_announced_as_ours_and_the_other_way() -> None:
    for announced, device in (
        ((1, 0), (2, 0)),
        ((1, 0), (10, 0)),
        ((2, 0), (1, 0)),
        ((2, 0), (2, 1)),
        ((13, 1), (4, 1)),
    ):
        lender = Lender(VALUES, announced=announced, device=device)
        with pytest.raises(ArgumentTypeError, match="but it says that it lies on"), Loans() as loans:
            loans.take("Op", "x", lender) if is_device_array(lender) else read(lender)
        assert lender.lent == lender.returned == 1


def test_a_capsule_is_read_once() -> None:
    capsule = Lender(VALUES).__dlpack__()

    class Again(Lender):
        def __dlpack__(self, **_: Any) -> Any:
            return capsule

    np.testing.assert_array_equal(read(Again(VALUES)), VALUES)
    with pytest.raises(ArgumentTypeError, match=r"gives no DLPack capsule, or one that was read before\)$"):
        read(Again(VALUES))


@pytest.mark.parametrize(
    ("make", "expected", "given"),
    [
        (lambda: _with(Flagged(VALUES), negative=True),
         "a tensor without the negative bit (.resolve_neg() makes one)", "one that has it"),
        (lambda: _with(Flagged(VALUES), conjugate=True),
         "a tensor without the conjugate bit (.resolve_conj() makes one)", "one that has it"),
        (lambda: _with(Flagged(VALUES), requires_grad=True),
         "a tensor that requires no gradient (.detach() makes one)", "one that does"),
        (lambda: Wrapper(VALUES), "a plain tensor", "an object of type Wrapper, whose memory is not what it means"),
    ],
)  # fmt: skip
def test_tensors_that_mean_more_than_their_memory(make: Callable[[], Lender], expected: str, given: str) -> None:
    lender = make()
    with pytest.raises(ArgumentTypeError) as caught:
        read(lender)
    assert str(caught.value) == f"Op: argument 'x': expected {expected}, given {given}"
    lender.announced = (2, 0)
    with pytest.raises(ArgumentTypeError) as caught, Loans() as loans:
        loans.take("Op", "x", lender)
    assert str(caught.value) == f"Op: argument 'x': expected {expected}, given {given}"
    assert lender.lent == 0


def _with(lender: Lender, **bits: bool) -> Lender:
    for name, value in bits.items():
        setattr(lender, name, value)
    return lender


# Crafted objects -------------------------------------------------------------------------------------------------

_NUMBERS = (0, 1, 2, 3, -1, 7, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63))
_ERRORS = (ValueError, KeyError, IndexError, MemoryError, ZeroDivisionError, AttributeError, RuntimeError, BufferError)
_ODD = (None, "x", 1.5, (), [], {}, b"", object(), 2**70, (1, 2, 3), ((1,), 2), float("nan"))


class Crafted:
    """An object whose attributes give what a test wants, or raise."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.__dict__["_found"] = found

    def __getattr__(self, name: str) -> Any:
        value = self.__dict__["_found"].get(name, AttributeError(name))
        if isinstance(value, Exception):
            raise value
        return value


def _interface(r: random.Random) -> Any:
    rank = r.randrange(4)

    def sizes() -> tuple[int, ...]:
        return tuple(r.choice(_NUMBERS) for _ in range(r.choice((rank, rank, rank, rank + 1))))

    fields = {
        "shape": r.choice((sizes(), list(sizes()), r.choice(_ODD))),
        "typestr": r.choice(("<f4", "<V2", ">f8", "|O", "nonsense", r.choice(_ODD))),
        "data": r.choice(((r.choice(_NUMBERS), False), (0, True), r.choice(_ODD))),
        "strides": r.choice((None, sizes(), r.choice(_ODD))),
        "version": r.choice((3, 2, r.choice(_ODD))),
        "stream": r.choice((None, 1, r.choice(_ODD))),
        "mask": r.choice((None, None, r.choice(_ODD))),
    }
    for name in list(fields):
        if r.random() < 0.1:
            del fields[name]
    return r.choice((fields, fields, fields, r.choice(_ODD), r.choice(_ERRORS)("crafted")))


def _method(r: random.Random) -> Any:
    """A method that gives or raises something odd."""
    outcome: Any = r.choice(
        (r.choice(_ODD), r.choice(_ERRORS)("crafted"), np.ones(3), [[1], [2, 3]], (r.choice(_NUMBERS), 0))
    )

    def method(*_: Any, **__: Any) -> Any:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return r.choice((method, method, method, outcome))


def _crafted(r: random.Random) -> Any:
    if r.random() < 0.5:
        changes: dict[str, Any] = {}
        options: tuple[tuple[str, Callable[[], Any]], ...] = (
            ("shape", lambda: tuple(r.choice(_NUMBERS) for _ in range(2))),
            ("strides", lambda: r.choice((None, tuple(r.choice(_NUMBERS) for _ in range(2))))),
            ("ndim", lambda: r.choice((-1, 65, 2**31 - 1, -(2**31)))),
            ("device", lambda: (r.choice((0, 1, 2, 3, 13, 99)), r.choice((0, 1)))),
            ("announced", lambda: r.choice(((1, 0), (2, 0), (3, 0), (99, 0), r.choice(_ODD)))),
            ("code", lambda: r.randrange(256)),
            ("bits", lambda: r.randrange(256)),
            ("lanes", lambda: r.choice((0, 2, 65535))),
            ("data", lambda: None),
            ("major", lambda: r.choice((0, 2))),
            ("versioned", lambda: False),
        )
        for name, value in r.sample(options, r.choice((1, 1, 2, 3))):
            changes[name] = value()
        return Lender(VALUES, **changes)
    protocols: tuple[tuple[str, Callable[[random.Random], Any]], ...] = (
        ("__cuda_array_interface__", _interface),
        ("__array_interface__", _interface),
        ("__dlpack__", _method),
        ("__dlpack_device__", _method),
        ("__array__", _method),
        ("is_neg", _method),
        ("requires_grad", lambda r: r.choice((True, *_ERRORS))),
    )
    return Crafted({name: make(r) for name, make in r.sample(protocols, r.choice((1, 2, 3)))})


def _error_of(value: object) -> ArgumentError | None:
    try:
        with Loans() as loans:
            loans.take("Op", "x", value) if is_device_array(value) else check.common_type(TYPES, {"x": value})
    except ArgumentError as error:
        return error
    return None


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_crafted_tensors_end_in_typed_errors() -> None:
    r = random.Random(SEED)
    refused = 0
    for k in range(6000):
        value = _crafted(r)
        error = _error_of(value)
        if error is not None:
            refused += 1
            assert (error.op, error.argument) == ("Op", "x"), f"seed {SEED}, {k}"
            assert isinstance(error, ArgumentTypeError | ArgumentMemoryError), f"seed {SEED}, {k}"
            assert len(str(error)) < 500, f"seed {SEED}, {k}"
            assert "\n" not in str(error), f"seed {SEED}, {k}"
        if isinstance(value, Lender):
            assert value.lent == value.returned, f"seed {SEED}, {k}"
    assert refused > 4000
