"""bfloat16 tensors of other libraries: numpy reads DLPack, but knows no bfloat16 there, so the capsule is opened
here.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

_BFLOAT = 4
_USED = b"used_dltensor"
_NAME = b"dltensor"


class _Tensor(ctypes.Structure):
    """`DLTensor` of dlpack.h: device and data type are packed as C packs them."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    """`DLManagedTensor`."""

    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter))


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.argtypes, _pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes, _is_valid.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_int
_rename = ctypes.pythonapi.PyCapsule_SetName
_rename.argtypes, _rename.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_int


def bfloat16_copy(capsule: object) -> npt.NDArray[Any] | None:
    """A copy of the bfloat16 tensor in a DLPack capsule (which is used up); None if it holds anything else.

    A copy, because the exporter's memory is given back at once.
    """
    if not _is_valid(capsule, _NAME):
        return None
    address = _pointer(capsule, _NAME)
    managed = _Managed.from_address(address)
    t = managed.tensor
    if (t.code, t.bits, t.lanes) != (_BFLOAT, 16, 1):
        return None
    import ml_dtypes

    found = np.empty(tuple(t.shape[i] for i in range(t.ndim)), np.uint16)
    if found.size:
        found[...] = _view(t, found.shape)
    _rename(capsule, _USED)
    if managed.deleter:
        managed.deleter(address)
    result: npt.NDArray[Any] = found.view(ml_dtypes.bfloat16)
    return result


def _view(t: _Tensor, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """The elements where they lie, as 16-bit words."""
    dense = [int(np.prod(shape[i + 1 :])) for i in range(len(shape))]
    steps = [t.strides[i] for i in range(len(shape))] if t.strides else dense
    low = sum(min(0, (n - 1) * s) for n, s in zip(shape, steps, strict=True))
    high = sum(max(0, (n - 1) * s) for n, s in zip(shape, steps, strict=True))
    words = (ctypes.c_uint16 * (high - low + 1)).from_address(t.data + t.byte_offset + 2 * low)
    flat = np.ctypeslib.as_array(words)
    return np.lib.stride_tricks.as_strided(flat[-low:], shape, [2 * s for s in steps], writeable=False)
