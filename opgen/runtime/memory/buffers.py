"""Arrays as kernels need them: numpy's types for opgen's, and memory that starts on a cache line."""

from __future__ import annotations

import math
from collections.abc import Callable
from ctypes import Array, addressof, c_char

import numpy as np
import numpy.typing as npt

from opgen.diagnostics import InternalError
from opgen.dtypes import DTYPES, FLOAT16, DType
from opgen.locks import BUILD
from opgen.runtime.memory.address import address
from opgen.runtime.memory.blocks import LARGE, block

AnyArray = npt.NDArray[np.generic]

ALIGNMENT = 64
_SMALL = 4096

_array_over: Callable[..., AnyArray] = np.ndarray
"""`numpy.ndarray`, typed for what it accepts: any buffer, also a ctypes block."""


_numpy_dtypes: dict[str, np.dtype[np.generic]] = {}


def numpy_dtype(dtype: DType) -> np.dtype[np.generic]:
    """Return numpy's type of that name; one that numpy lacks is ml_dtypes', which is imported on first use."""
    found = _numpy_dtypes.get(dtype.name)
    if found is None:
        found = _numpy_dtypes[dtype.name] = _find_dtype(dtype)
    return found


def _find_dtype(dtype: DType) -> np.dtype[np.generic]:
    if dtype.is_stored and dtype != FLOAT16:
        with BUILD:  # so that no fork finds it half imported
            import ml_dtypes

        found: np.dtype[np.generic] = np.dtype(getattr(ml_dtypes, dtype.name))
        return found
    return np.dtype(dtype.name)


def dtype_of(array: AnyArray) -> DType | None:
    """Return opgen's type of an array's elements, or None if it has no such type (or not this machine's byte order)."""
    found = DTYPES.get(array.dtype.name)
    return found if found is not None and array.dtype.isnative and array.dtype == numpy_dtype(found) else None


_blocks: tuple[type[Array[c_char]], ...] = tuple(c_char * (ALIGNMENT * n) for n in range(_SMALL // ALIGNMENT + 2))
"""Types of blocks of memory, by their size in cache lines."""


def empty_aligned(shape: tuple[int, ...], dtype: DType) -> AnyArray:
    """Return a new row-major array, contents undefined, whose first element is at a multiple of 64 bytes.

    Small ones are cut from a ctypes block, whose address is cheap to read.  Large ones are cut from an array of
    numpy's, whose allocator requests huge pages.  The largest reuse a kept block.
    """
    return empty_of(shape, numpy_dtype(dtype))


def empty_of(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> AnyArray:
    """Return a new array like `empty_aligned`'s, of a numpy type."""
    size = math.prod(shape) * dtype.itemsize + ALIGNMENT
    if size <= _SMALL:
        small = _blocks[size // ALIGNMENT + 1]()
        return _array_over(shape, dtype, small, -addressof(small) % ALIGNMENT)
    if size >= LARGE:
        large = block(size)
        return _array_over(shape, dtype, large, -addressof(large) % ALIGNMENT)
    raw = np.empty(size, np.uint8)
    return _array_over(shape, dtype, raw, -address(raw) % ALIGNMENT)


def poison(array: AnyArray) -> None:
    """Fill an array with values that no kernel would compute by chance: NaN, integers of 0xA5 bytes, true."""
    kind = array.dtype.kind
    if kind == "b":
        array[...] = np.True_
    elif kind in "iu":
        array.reshape(-1).view(np.uint8)[...] = 0xA5
    elif kind == "f" or dtype_of(array) is not None:
        array.reshape(-1).view(np.uint8)[...] = 0xFF
    else:
        raise InternalError(f"no poison for arrays of {array.dtype}")
