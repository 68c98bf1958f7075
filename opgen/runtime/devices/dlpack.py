"""Reading a DLPack capsule of device memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import c_char_p, c_int, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p, py_object
from dataclasses import dataclass
from typing import Protocol

from opgen.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT32, INT64, DType

CUDA_DEVICES = (2, 13)
"""DLPack's numbers for memory of a CUDA device, plain and managed."""

_TYPES: dict[tuple[int, int, int], DType] = {
    (0, 32, 1): INT32,
    (0, 64, 1): INT64,
    (2, 16, 1): FLOAT16,
    (2, 32, 1): FLOAT32,
    (2, 64, 1): FLOAT64,
    (4, 16, 1): BFLOAT16,
    (6, 8, 1): BOOL,
}


class SupportsDLPack(Protocol):
    """An array that another library shares."""

    def __dlpack__(self, *, stream: int | None = None) -> object: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", ctypes.POINTER(c_int64)),
        ("strides", ctypes.POINTER(c_int64)),
        ("byte_offset", c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", c_void_p), ("deleter", c_void_p))


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_PENDING, _TAKEN = b"dltensor", b"used_dltensor"


@dataclass(frozen=True)
class SharedTensor:
    """Memory lent by another library until `release` is called.  Strides are in elements; None is row-major."""

    address: int
    dtype: DType | None
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    release: Callable[[], None]


def take(array: SupportsDLPack, stream: int) -> SharedTensor:
    """Take over an array's capsule; its pending work is ordered before later work on `stream`.

    `dtype` is None for a type that opgen has not.
    """
    capsule = array.__dlpack__(stream=stream or 1)  # 1 is the legacy default stream in DLPack's terms
    api = ctypes.pythonapi
    get, rename = api.PyCapsule_GetPointer, api.PyCapsule_SetName
    get.argtypes, get.restype = [py_object, c_char_p], c_void_p
    rename.argtypes, rename.restype = [py_object, c_char_p], c_int
    pointer = ctypes.cast(get(capsule, _PENDING), ctypes.POINTER(_Managed))
    rename(capsule, _TAKEN)
    managed = pointer.contents
    tensor = managed.tensor

    def release() -> None:
        if managed.deleter:
            _Deleter(managed.deleter)(pointer)

    return SharedTensor(
        address=(tensor.data or 0) + tensor.byte_offset,
        dtype=_TYPES.get((tensor.code, tensor.bits, tensor.lanes)),
        shape=tuple(tensor.shape[: tensor.ndim]),
        strides=tuple(tensor.strides[: tensor.ndim]) if tensor.strides else None,
        release=release,
    )
