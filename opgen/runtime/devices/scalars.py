"""Scalars as a launch passes them: by a pointer to a value of the C type that the emitter declares."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TypeAlias

from opgen.codegen.cuda.types import narrow_bits
from opgen.dtypes import (
    BFLOAT16,
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DType,
)

CScalar: TypeAlias = "ctypes._SimpleCData[int] | ctypes._SimpleCData[float] | ctypes._SimpleCData[bool]"

_MAKERS: dict[DType, Callable[[float], CScalar]] = {
    BOOL: lambda v: ctypes.c_bool(bool(v)),
    INT8: lambda v: ctypes.c_int8(int(v)),
    INT16: lambda v: ctypes.c_int16(int(v)),
    INT32: lambda v: ctypes.c_int32(int(v)),
    INT64: lambda v: ctypes.c_int64(int(v)),
    UINT8: lambda v: ctypes.c_uint8(int(v)),
    UINT16: lambda v: ctypes.c_uint16(int(v)),
    UINT32: lambda v: ctypes.c_uint32(int(v)),
    UINT64: lambda v: ctypes.c_uint64(int(v)),
    FLOAT16: lambda v: ctypes.c_uint16(narrow_bits(v, FLOAT16)),
    BFLOAT16: lambda v: ctypes.c_uint16(narrow_bits(v, BFLOAT16)),
    FLOAT32: lambda v: ctypes.c_float(v),
    FLOAT64: lambda v: ctypes.c_double(v),
}


def c_scalar(dtype: DType, value: int | float | bool) -> CScalar:
    """Return a C value of a type."""
    return _MAKERS[dtype](value)
