"""Memory for a caller's own tensors, aligned so that kernels read it fastest."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from opgen.diagnostics.calls import ArgumentTypeError, ArgumentValueError
from opgen.diagnostics.describe import describe
from opgen.dtypes import DTYPES
from opgen.runtime.memory.buffers import empty_of, numpy_dtype

_OP = "opgen.empty"


def empty(shape: int | Sequence[int], dtype: npt.DTypeLike | str = np.float32) -> npt.NDArray[Any]:
    """Return a new array like `numpy.empty`'s, contents undefined, that starts on a cache line.

    The address is a multiple of 64 bytes.  That of numpy's own arrays seldom is, and vectors of 64 bytes that straddle
    two lines take up to twice as long to read.  `dtype` is one of opgen's types, or its name ("bfloat16" too).  Raises
    ArgumentTypeError and ArgumentValueError for an invalid type or shape, MemoryError or ValueError for a shape that
    does not fit into memory.
    """
    return empty_of(_sizes(shape), _type(dtype))


def _sizes(shape: int | Sequence[int]) -> tuple[int, ...]:
    try:
        sizes = tuple(operator.index(n) for n in (shape if isinstance(shape, Sequence) else (shape,)))
    except TypeError as error:
        raise ArgumentTypeError(_OP, "shape", "an integer or a list of integers", describe(shape)) from error
    if any(n < 0 for n in sizes):
        raise ArgumentValueError(_OP, "shape", "sizes that are not negative", describe(shape))
    return sizes


def _type(dtype: npt.DTypeLike | str) -> np.dtype[Any]:
    expected = f"one of {', '.join(DTYPES)}"
    if isinstance(dtype, str) and dtype in DTYPES:
        return numpy_dtype(DTYPES[dtype])
    try:
        found = np.dtype(dtype)
    except TypeError as error:
        raise ArgumentTypeError(_OP, "dtype", expected, describe(dtype)) from error
    if found.name not in DTYPES or not found.isnative:
        raise ArgumentTypeError(_OP, "dtype", expected, str(found))
    return found
