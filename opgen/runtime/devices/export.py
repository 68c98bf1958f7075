"""Lending memory by DLPack: capsules whose consumer gives the memory back, or else their destructor."""

from __future__ import annotations

import ctypes
import itertools
import math
from ctypes import c_char_p, c_int, c_int64, c_void_p, py_object
from dataclasses import dataclass

from opgen.dtypes import DType
from opgen.runtime.memory.dlpack import CODES, PENDING, Deleter, Managed, Tensor


@dataclass(frozen=True)
class _Lent:
    """The objects that a consumer may still read: the owner of the memory, and the structure behind the capsule."""

    owner: object
    managed: Managed
    layout: ctypes.Array[c_int64]


_lent: dict[int, _Lent] = {}
_serial = itertools.count(1)


def capsule_of(owner: object, address: int, dtype: DType, shape: tuple[int, ...], device: tuple[int, int]) -> object:
    """Return a capsule over row-major memory, which keeps its owner alive until the consumer is done with it."""
    rank = len(shape)
    strides = [math.prod(shape[axis + 1 :]) for axis in range(rank)]
    layout = (c_int64 * max(1, 2 * rank))(*shape, *strides)
    sizes = ctypes.cast(layout, ctypes.POINTER(c_int64))
    steps = ctypes.cast(ctypes.byref(layout, rank * ctypes.sizeof(c_int64)), ctypes.POINTER(c_int64))
    if dtype.name not in CODES:
        raise BufferError(f"elements of {dtype}, which DLPack has several of in a byte")
    code, bits = CODES[dtype.name]
    tensor = Tensor(address, *device, rank, code, bits, 1, sizes, steps, 0)
    number = next(_serial)
    managed = Managed(tensor, number, ctypes.cast(_deleter, c_void_p))
    _lent[number] = _Lent(owner, managed, layout)
    return _new_capsule(ctypes.addressof(managed), PENDING, ctypes.cast(_destructor, c_void_p))


def _delete(managed: int) -> None:
    """Release the memory; the consumer calls this once."""
    _lent.pop(Managed.from_address(managed).context or 0, None)


def _destroy(capsule: int) -> None:
    """Release the memory of a capsule that nobody refers to any more, unless a consumer has taken it over."""
    if _is_capsule(capsule, PENDING):
        pointer = ctypes.cast(_pointer_of(capsule, PENDING), ctypes.POINTER(Managed))
        _lent.pop(pointer.contents.context or 0, None)


_deleter = Deleter(_delete)
_destructor = ctypes.CFUNCTYPE(None, c_void_p)(_destroy)

# Prototypes of this module's own, because the functions of `ctypes.pythonapi` are shared by all libraries.
_new_capsule = ctypes.PYFUNCTYPE(py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", ctypes.pythonapi))
_is_capsule = ctypes.PYFUNCTYPE(c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer_of = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
