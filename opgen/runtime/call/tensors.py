"""Tensors of a call: numpy arrays, tensors of other libraries, nested lists; and the results.

Accepted as a tensor:

* numpy arrays and scalars of any strides and byte order.  An array that is C-contiguous, aligned and in the machine's
  byte order is read in place; any other is copied for the call, after all checks;
* objects with `__dlpack__` in this machine's memory, else with `__array__` or the buffer protocol, read in place; a
  tensor that does not mean the numbers in its memory (`opgen.runtime.memory.foreign.hidden`) is refused;
* tensors on a CUDA device, as an `Operator` passes them in (`Loan`);
* nested lists, tuples and Python numbers.  They take the type of the first other tensor of the same type variable, and
  float32 if it has none.  Integers become floats if that type requires it, never the reverse, and bools stay bools.

Two arrays of different types are never silently converted to one type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from opgen.diagnostics.calls import ArgumentMemoryError, ArgumentTypeError, ArgumentValueError
from opgen.diagnostics.describe import describe, tensor
from opgen.dtypes import DTYPES, UINT64
from opgen.runtime.call.base import OpChecks
from opgen.runtime.devices.borrowed import DeviceTensor, Loan, SupportsCudaArrayInterface, is_device_array
from opgen.runtime.memory.address import address
from opgen.runtime.memory.buffers import numpy_dtype
from opgen.runtime.memory.dlpack import HOST_DEVICES, SupportsDLPack, array_over, take
from opgen.runtime.memory.foreign import device_of, has, hidden, others, reading, speaks_dlpack

Array: TypeAlias = npt.NDArray[Any]  # callers do arithmetic on results, whose scalar type only the call knows

TensorLike: TypeAlias = "npt.ArrayLike | SupportsDLPack | SupportsCudaArrayInterface"
Given: TypeAlias = "Array | DeviceTensor"
"""A tensor of a call: an array, or a tensor on a device."""

READABLE = 0x1 | 0x100
"""The bits of `ndarray.flags.num` that mean C-contiguous and aligned."""
_LONG = 64
"""Vectors of sizes that are longer are not read."""
_DEEP = 64
"""Nesting limit of numpy's lists."""
_SIZES = frozenset(np.dtype(c).num for c in "ilq")
"""numpy's numbers of the types int32 and int64, under all of C's names; `dtype.name` takes 2 us."""


class TensorChecks(OpChecks):
    """The checks of tensors."""

    def common_type(self, allowed: Sequence[str], given: Mapping[str, object]) -> tuple[str, tuple[Given, ...]]:
        """Return the type of the tensors that share a type variable, and the tensors as arrays (not yet contiguous)."""
        arrays = {argument: self._as_tensor(argument, value) for argument, value in given.items()}
        first = next(((argument, a) for argument, a in arrays.items() if a is not None), None)
        if first is None:
            bools = "bool" in allowed and any(map(are_bools, given.values()))
            name = "bool" if bools else "float32" if "float32" in allowed else allowed[0]
        else:
            name = self._type_name(*first, allowed)
        for argument, a in arrays.items():
            if first is not None and a is not None and native(a.dtype).name != name:
                raise self.wrong_tensor(argument, f"{name}, the type of '{first[0]}'", a)
        return name, tuple(
            self.from_list(argument, given[argument], name) if a is None else a for argument, a in arrays.items()
        )

    def typed(self, argument: str, value: object, name: str) -> Given:
        """Return a tensor whose scalar type the op fixes, as an array."""
        found = self._as_tensor(argument, value)
        if found is None:
            return self.from_list(argument, value, name)
        self._type_name(argument, found, (name,))
        return found

    def vector(self, argument: str, value: object, lengths: Sequence[int]) -> tuple[int, ...]:
        """Return the values of a vector of sizes: non-negative integers, of one of some lengths."""
        expected = f"{' or '.join(map(str, lengths))} integers"
        if value is None:
            raise ArgumentTypeError(self.op, argument, expected, "nothing")
        if isinstance(value, list | tuple) and len(value) > max(_LONG, *lengths):
            raise self.wrong(argument, expected, value)
        found = self.as_array(argument, value)
        array = self._vector_of(argument, value, expected) if found is None else found
        if array.size and native(array.dtype).name not in ("int32", "int64"):
            if found is not None and array.dtype.kind in "iu":
                raise self.wrong_tensor(argument, f"{expected} of int32 or int64", array)
            raise self.wrong_type(argument, expected, value)
        if array.ndim != 1 or array.size not in lengths:
            raise self.wrong(argument, expected, value)
        sizes = tuple(int(v) for v in array)
        if min(sizes, default=0) < 0:
            raise self.wrong(argument, "sizes that are not negative", value)
        return sizes

    def _vector_of(self, argument: str, value: object, expected: str) -> Array:
        if isinstance(value, list | tuple) and any(isinstance(v, bool | np.bool_) for v in value):
            raise self.wrong_type(argument, expected, value)
        try:
            return np.array(value)
        except (ValueError, OverflowError) as error:
            raise self.wrong(argument, expected, value) from error

    def _type_name(self, argument: str, a: Given, allowed: Sequence[str]) -> str:
        name = str(native(a.dtype).name)
        if name not in allowed:
            expected = allowed[0] if len(allowed) == 1 else f"{', '.join(allowed[:-1])} or {allowed[-1]}"
            raise self.wrong_tensor(argument, expected, a)
        return name

    def wrong_tensor(self, argument: str, expected: str, given: Given) -> ArgumentTypeError:
        """Return the error for a tensor of the wrong scalar type, to be raised."""
        return ArgumentTypeError(self.op, argument, expected, tensor(given))

    def _as_tensor(self, argument: str, value: object) -> Given | None:
        return value.take(self.op, argument) if isinstance(value, Loan) else self.as_array(argument, value)

    def as_array(self, argument: str, value: object) -> Array | None:
        """Return a tensor as an array over the same memory.

        The result is None for a nested list or a Python number, which has no type yet.
        """
        if type(value) is np.ndarray:
            return value
        if isinstance(value, np.ma.MaskedArray):
            raise self.wrong_tensor(argument, "a tensor without a mask", value)
        if isinstance(value, np.ndarray | np.generic):
            return np.asarray(value)
        if isinstance(value, list | tuple | int | float):
            return None
        with reading(self.op, argument, value):
            return self._foreign(argument, value)

    def _foreign(self, argument: str, value: object) -> Array:
        """Return a tensor of another library; the caller explains exceptions of its code."""
        if (more := hidden(value)) is not None:
            raise ArgumentTypeError(self.op, argument, *more)
        by_array = has(value, "__array__") or isinstance(value, memoryview) or has(value, "__buffer__")
        if speaks_dlpack(value):
            place = device_of(value)
            if place[0] not in HOST_DEVICES:
                where = f"{describe(value)} on a device"
                raise ArgumentTypeError(self.op, argument, "a tensor in this machine's memory", where)
            try:
                return array_over(take(value, place))
            except Exception:  # foreign code may raise anything: another protocol may work
                if not by_array:
                    raise
        if by_array:
            return np.asarray(value)
        raise self.wrong_type(argument, "a tensor", value)

    def from_list(self, argument: str, value: object, name: str) -> Array:
        """Return a nested list or a Python number as an array of a type."""
        try:
            found = np.array(value)
        except (ValueError, OverflowError) as error:
            raise self.wrong(argument, "a nested list of equal lengths", value) from error
        except TypeError as error:
            raise self.wrong_type(argument, f"{name} elements", value) from error
        except MemoryError as error:
            raise ArgumentMemoryError(self.op, argument, "a list that fits into memory", describe(value)) from error
        if DTYPES[name] == UINT64 and found.dtype.kind == "f":
            found = _beyond_int64(value, found)
        accepted = {"bool": "b", "int": "iu", "float": "iuf"}[DTYPES[name].kind]
        if found.size and found.dtype.kind not in accepted:
            raise self.wrong_type(argument, f"{name} elements", value)
        beyond = found.size and (found.min() < DTYPES[name].least or found.max() > DTYPES[name].greatest)
        if beyond and DTYPES[name].is_int:
            raise self.wrong(argument, f"{name} elements", value)
        with np.errstate(over="ignore"):
            return found.astype(numpy_dtype(DTYPES[name]))


def are_bools(value: object) -> bool:
    """Return True if a nested list, or a number, is one of True and False."""
    for _ in range(_DEEP):
        if not isinstance(value, list | tuple) or not value:
            break
        value = value[0]
    return isinstance(value, bool)


def _beyond_int64(value: object, found: Array) -> Array:
    """Return integers of a list as uint64: numpy makes floats of those beyond int64 together with others."""
    exact = np.array(value, object)
    limit = UINT64.greatest
    whole = all(isinstance(v, int | np.integer) and not isinstance(v, bool) and 0 <= v <= limit for v in exact.flat)
    return exact.astype(np.uint64) if whole else found


def plain_vector(value: object) -> object:
    """Return a vector of sizes as a list, if it is a vector of integers; anything else unchanged.

    An array's fingerprint has its shape only, whereas the values of sizes count.
    """
    if type(value) is np.ndarray and value.ndim == 1 and value.size <= _LONG and value.dtype.num in _SIZES:
        return value.tolist()
    return value


def native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the same type in the machine's byte order."""
    return dtype if dtype.isnative else dtype.newbyteorder("=")


def contiguous(a: Array) -> Array:
    """Return the array itself if a kernel can read it in place, else a copy."""
    if a.flags.num & READABLE == READABLE and a.dtype.isnative:
        return a
    return a.astype(native(a.dtype), order="C", copy=True, subok=False)


def as_out(op: str, out: object) -> object:
    """Return the caller's `out`; a tensor of another library in this machine's memory as an array over it.

    Raises ArgumentError if its owner does not lend it.
    """
    if not others((out,)) or is_device_array(out):
        return out
    with reading(op, "out", out):
        if (more := hidden(out)) is not None:
            raise ArgumentTypeError(op, "out", *more)
        lender = cast("SupportsDLPack", out)
        return array_over(take(lender, device_of(lender)))


def check_out(op: str, out: object, shape: tuple[int, ...], dtype: np.dtype[Any], apart: Sequence[Array]) -> Array:
    """Return `out`, if a result of that shape and type can be written into it.

    It must be an array that is C-contiguous, aligned and writeable, and whose memory touches none of those in `apart`.
    """
    if not isinstance(out, np.ndarray):
        raise ArgumentTypeError(op, "out", "a numpy array", describe(out))
    if isinstance(out, np.ma.MaskedArray):
        raise ArgumentTypeError(op, "out", "an array without a mask", tensor(out))
    if out.dtype != dtype:
        if native(out.dtype) == dtype:
            raise ArgumentTypeError(op, "out", "an array in this machine's byte order", "the other one")
        raise ArgumentTypeError(op, "out", f"{dtype.name}{list(shape)}", tensor(out))
    if out.shape != shape:
        raise ArgumentValueError(op, "out", f"{dtype.name}{list(shape)}", tensor(out))
    if out.flags.num & READABLE != READABLE:
        raise ArgumentValueError(op, "out", "an aligned C-contiguous array", f"strides {list(out.strides)}")
    if not out.flags.writeable:
        raise ArgumentValueError(op, "out", "a writeable array", "a read-only one")
    if any(_overlap(out, a) for a in apart):
        raise ArgumentValueError(
            op, "out", "memory that no input or other result uses", "an array that overlaps one of them"
        )
    return out


def _overlap(out: Array, a: Array) -> bool:
    """Return True if two arrays' memory overlaps; `out` is C-contiguous (numpy's own test takes a microsecond)."""
    if a.flags.num & 0x1 == 0:
        return np.may_share_memory(out, a)
    if not out.size or not a.size:
        return False
    start, other = address(out), address(a)
    return start < other + a.nbytes and other < start + out.nbytes
