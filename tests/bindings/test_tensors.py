"""What a caller may give as a tensor."""

from __future__ import annotations

import array
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from opgen.diagnostics.calls import ArgumentError, ArgumentTypeError, ArgumentValueError
from opgen.runtime.call.tensors import TensorChecks, check_out, contiguous, plain_vector

check = TensorChecks("Op")
FLOATS = ("float16", "bfloat16", "float32", "float64")
ALL = (*FLOATS, "int32")
X = np.arange(6, dtype=np.float32).reshape(2, 3)


class WithDLPack:
    """A tensor of another library that exports numpy's memory."""

    def __init__(self, a: npt.NDArray[Any], device: int = 1) -> None:
        self._array, self._device = a, device

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device, 0


class WithArray:
    """A tensor of another library that becomes an array; `refuse` stands for one that cannot."""

    def __init__(self, a: npt.NDArray[Any], refuse: bool = False) -> None:
        self._array, self._refuse = a, refuse

    def __array__(self, dtype: Any = None, copy: Any = None) -> npt.NDArray[Any]:
        if self._refuse:
            raise RuntimeError("requires grad")
        return self._array


class WithBoth(WithArray):
    """Exports by DLPack a type that numpy does not know there, and by `__array__`."""

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("bfloat16")

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


@pytest.mark.parametrize(
    "given",
    [X, WithDLPack(X), WithArray(X), WithBoth(X), memoryview(X), X.view(np.matrix)],
    ids=lambda g: type(g).__name__,
)
def test_read_where_it_lies(given: object) -> None:
    name, (found,) = check.common_type(ALL, {"x": given})
    assert name == "float32"
    assert type(found) is np.ndarray
    assert np.shares_memory(found, X)
    assert found.shape == (2, 3)


def test_bfloat16_is_that_of_ml_dtypes() -> None:
    name, (found, other) = check.common_type(FLOATS, {"x": X.astype(ml_dtypes.bfloat16), "y": [[1.0, 2.5]]})
    assert name == "bfloat16"
    assert found.dtype == other.dtype == ml_dtypes.bfloat16
    assert other.astype(float).tolist() == [[1.0, 2.5]]


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32"])
def test_lists_take_the_type_of_the_other_tensor(dtype: str) -> None:
    name, (left, right) = check.common_type(ALL, {"x": [[1, 2]], "y": np.ones(2, dtype)})
    assert name == dtype
    assert (left.dtype, right.dtype) == (dtype, dtype)


def test_lists_alone_are_float32() -> None:
    name, (found,) = check.common_type(ALL, {"x": [[1, 2], (3, 4)]})
    assert (name, found.dtype, found.tolist()) == ("float32", np.float32, [[1.0, 2.0], [3.0, 4.0]])
    assert check.common_type(("int32",), {"x": [1]})[0] == "int32"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"x": np.ones(2, np.int64)}, "'x': expected float16, bfloat16, float32, float64 or int32, given int64[2]"),
        ({"x": np.ones(2, bool)}, "'x': expected float16, bfloat16, float32, float64 or int32, given bool[2]"),
        ({"x": np.array(["a"])}, "'x': expected float16, bfloat16, float32, float64 or int32, given str32[1]"),
        ({"x": X, "y": np.ones(2)}, "'y': expected float32, the type of 'x', given float64[2]"),
        ({"x": None}, "'x': expected a tensor, given None"),
        ({"x": "abc"}, "'x': expected a tensor, given 'abc'"),
        ({"x": {}}, "'x': expected a tensor, given an object of type dict"),
        ({"x": np.ma.masked_array(X)}, "'x': expected a tensor without a mask, given float32[2, 3]"),
        ({"x": WithDLPack(X, device=2)},
         "'x': expected a tensor in this machine's memory, given an object of type WithDLPack on a device"),
        ({"x": WithArray(X, refuse=True)},
         "'x': expected a readable tensor, given an object of type WithArray (requires grad)"),
        ({"x": X, "y": [True]}, "'y': expected float32 elements, given [True]"),
        ({"x": X, "y": ["1"]}, "'y': expected float32 elements, given ['1']"),
        ({"x": X, "y": [None]}, "'y': expected float32 elements, given [None]"),
        ({"x": np.ones(1, np.int32), "y": [0.5]}, "'y': expected int32 elements, given [0.5]"),
        ({"x": True}, "'x': expected float32 elements, given True"),
    ],
)  # fmt: skip
def test_wrong_types(given: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentTypeError) as caught:
        check.common_type(ALL, given)
    assert str(caught.value) == f"Op: argument {message}"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"x": X, "y": [[1, 2], [3]]}, "'y': expected a nested list of equal lengths, given [[1, 2], [3]]"),
        ({"x": np.ones(1, np.int32), "y": [2**31]}, "'y': expected int32 elements, given [2147483648]"),
    ],
)
def test_wrong_values(given: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentValueError) as caught:
        check.common_type(ALL, given)
    assert str(caught.value) == f"Op: argument {message}"


@pytest.mark.parametrize(
    "given",
    [X[::-1], X.T, np.broadcast_to(X[0], (4, 3)), X.astype(">f4"), X[:, ::2],
     np.frombuffer(b"\0" + X.tobytes(), np.uint8)[1:].view(np.float32)],
    ids=["negative", "transposed", "broadcast", "swapped", "stepped", "unaligned"],
)  # fmt: skip
def test_any_strides_and_byte_order(given: npt.NDArray[Any]) -> None:
    _, (found,) = check.common_type(ALL, {"x": given})
    ready = contiguous(found)
    assert ready.flags.c_contiguous
    assert ready.flags.aligned
    assert ready.dtype.isnative
    np.testing.assert_array_equal(ready, given)


def test_a_scalar_stays_a_scalar() -> None:
    assert contiguous(np.array(2.0, ">f8")).shape == ()
    assert contiguous(X) is X


def test_vectors_of_sizes() -> None:
    assert check.vector("n", [1, 2], (2, 4)) == (1, 2)
    assert check.vector("n", np.array([1, 2, 3, 4], np.int64), (2, 4)) == (1, 2, 3, 4)
    assert plain_vector(np.array([1, 2], np.int32)) == [1, 2]
    assert isinstance(plain_vector(np.ones(2)), np.ndarray)
    with pytest.raises(ArgumentTypeError, match=r"expected 2 or 4 integers, given \[1.0, 2.0\]"):
        check.vector("n", np.array([1.0, 2.0]), (2, 4))
    with pytest.raises(ArgumentTypeError, match=r"expected 2 integers of int32 or int64, given uint64\[2\]$"):
        check.vector("n", np.array([1, 2], np.uint64), (2,))
    with pytest.raises(ArgumentTypeError, match=r"expected 2 integers, given \[True, 2\]$"):
        check.vector("n", [True, 2], (2,))
    with pytest.raises(ArgumentValueError, match=r"expected 2 integers, given \[1, 2, 3\]"):
        check.vector("n", [1, 2, 3], (2,))
    with pytest.raises(ArgumentValueError, match=r"expected sizes that are not negative, given \[1, -2\]"):
        check.vector("n", [1, -2], (2,))


def _readonly() -> npt.NDArray[Any]:
    a = np.empty((2, 3), np.float32)
    a.flags.writeable = False
    return a


@pytest.mark.parametrize(
    ("out", "kind", "message"),
    [
        ([1], ArgumentTypeError, "expected a numpy array, given [1]"),
        (np.empty((2, 3)), ArgumentTypeError, "expected float32[2, 3], given float64[2, 3]"),
        (
            np.empty((2, 3), ">f4"),
            ArgumentTypeError,
            "expected an array in this machine's byte order, given the other one",
        ),
        (np.empty((3, 2), np.float32), ArgumentValueError, "expected float32[2, 3], given float32[3, 2]"),
        (
            np.empty((3, 2), np.float32).T,
            ArgumentValueError,
            "expected an aligned C-contiguous array, given strides [4, 8]",
        ),
        (_readonly(), ArgumentValueError, "expected a writeable array, given a read-only one"),
        (
            X,
            ArgumentValueError,
            "expected memory that no input or other result uses, given an array that overlaps one of them",
        ),
    ],
)
def test_wrong_out(out: object, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught:
        check_out("Op", out, (2, 3), np.dtype(np.float32), [X])
    assert str(caught.value) == f"Op: argument 'out': {message}"


def test_good_out() -> None:
    out = np.empty((2, 3), np.float32)
    assert check_out("Op", out, (2, 3), np.dtype(np.float32), [X]) is out


def test_a_buffer_that_numpy_reads() -> None:
    name, (found,) = check.common_type(ALL, {"x": memoryview(array.array("f", [1.0, 2.0]))})
    assert (name, found.tolist()) == ("float32", [1.0, 2.0])


@pytest.mark.parametrize("given", [[2**63], [2**63, 1], [[2**64 - 1], [0]], 2**64 - 1])
def test_lists_of_integers_beyond_int64(given: object) -> None:
    found = check.typed("x", given, "uint64")
    assert found.dtype == np.uint64
    assert found.tolist() == given


@pytest.mark.parametrize("given", [[2**63, -1], [2**63, 1.0], [2**64, 0]])
def test_lists_that_no_uint64_holds(given: object) -> None:
    with pytest.raises(ArgumentError, match="Op: argument 'x': expected uint64 elements, given"):
        check.typed("x", given, "uint64")
