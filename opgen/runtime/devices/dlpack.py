"""Reading a DLPack capsule of device memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import c_char_p, c_int, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p, py_object
from dataclasses import dataclass
from typing import Protocol

CUDA_DEVICES = (2, 13)
"""DLPack's numbers for memory of a CUDA device, plain and managed."""


class SupportsDLPack(Protocol):
    """An array that another library shares."""

    def __dlpack__(self, *, stream: int | None = None) -> object: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...


class Tensor(ctypes.Structure):
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


class Managed(ctypes.Structure):
    _fields_ = (("tensor", Tensor), ("context", c_void_p), ("deleter", c_void_p))


Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
PENDING, TAKEN = b"dltensor", b"used_dltensor"


@dataclass(frozen=True)
class SharedTensor:
    """Memory lent by another library until `release` is called.

    `code` is DLPack's type: a code, the width in bits, the lanes.  Strides are in elements; None is row-major.
    """

    address: int
    code: tuple[int, int, int]
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    release: Callable[[], None]


def take(array: SupportsDLPack, stream: int) -> SharedTensor:
    """Take over an array's capsule; its pending work is ordered before later work on `stream`."""
    capsule = array.__dlpack__(stream=stream or 1)  # 1 is the legacy default stream in DLPack's terms
    api = ctypes.pythonapi
    get, rename = api.PyCapsule_GetPointer, api.PyCapsule_SetName
    get.argtypes, get.restype = [py_object, c_char_p], c_void_p
    rename.argtypes, rename.restype = [py_object, c_char_p], c_int
    pointer = ctypes.cast(get(capsule, PENDING), ctypes.POINTER(Managed))
    rename(capsule, TAKEN)
    managed = pointer.contents
    tensor = managed.tensor

    def release() -> None:
        if managed.deleter:
            Deleter(managed.deleter)(pointer)

    return SharedTensor(
        address=(tensor.data or 0) + tensor.byte_offset,
        code=(tensor.code, tensor.bits, tensor.lanes),
        shape=tuple(tensor.shape[: tensor.ndim]),
        strides=tuple(tensor.strides[: tensor.ndim]) if tensor.strides else None,
        release=release,
    )
