"""Reading DLPack: capsules are taken over from their owners, and all their fields are checked before use.

Both forms are read: that of DLPack 1 (`dltensor_versioned`), which has a read-only flag, and the older one, which does
not.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from ctypes import c_char_p, c_int, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p, py_object
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
import numpy.typing as npt

from opgen.dtypes import BFLOAT16, DLPACK_CODES, DTYPES
from opgen.runtime.memory.buffers import numpy_dtype

CUDA_DEVICES = (2, 13)
"""DLPack's numbers for memory of a CUDA device, plain and managed."""
HOST_DEVICES = (1, 3, 11)
"""DLPack's numbers for this machine's memory: plain, pinned for CUDA, pinned for ROCm."""
PENDING, TAKEN = b"dltensor", b"used_dltensor"
PENDING_VERSIONED, TAKEN_VERSIONED = b"dltensor_versioned", b"used_dltensor_versioned"
READ_ONLY = 1
"""The read-only flag of a versioned capsule."""
MAX_RANK = 64
"""The most dimensions of a tensor; numpy's limit, too."""
LARGEST = 2**63 - 1


class SupportsDLPack(Protocol):
    """An array that another library shares."""

    def __dlpack__(self, *, stream: int | None = None) -> object: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...


class Tensor(ctypes.Structure):
    """`DLTensor` of dlpack.h: device and data type are packed as C packs them."""

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
    """`DLManagedTensor`."""

    _fields_ = (("tensor", Tensor), ("context", c_void_p), ("deleter", c_void_p))


class Versioned(ctypes.Structure):
    """`DLManagedTensorVersioned`."""

    _fields_ = (
        ("major", c_uint32),
        ("minor", c_uint32),
        ("context", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", Tensor),
    )


Deleter = ctypes.CFUNCTYPE(None, c_void_p)
"""Type of a deleter; ctypes releases Python's lock for it, as the owner may then wait for its other threads."""

# Prototypes of this module's own, because the functions of `ctypes.pythonapi` are shared by all libraries.
pointer_of = ctypes.PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
is_capsule = ctypes.PYFUNCTYPE(c_int, py_object, c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_rename = ctypes.PYFUNCTYPE(c_int, py_object, c_char_p)(("PyCapsule_SetName", ctypes.pythonapi))


@dataclass(frozen=True)
class SharedTensor:
    """Memory lent by another library until `release` is called, once.

    Strides are in bytes; None is row-major.  `read_only` is None if the owner does not report it.
    """

    address: int
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    device: tuple[int, int]
    read_only: bool | None
    release: Callable[[], None]


def take(array: SupportsDLPack, device: tuple[int, int], stream: int | None = None) -> SharedTensor:
    """Take over the capsule of an array that is on `device`, according to its owner.

    Pending work on the array is ordered before later work on `stream`, a CUDA stream.  Raises BufferError for anything
    but a capsule, or for impossible fields; then its memory has been given back.
    """
    options = {} if stream is None else {"stream": stream or 1}  # 1 is the legacy default stream in DLPack's terms
    capsule = _capsule(array, options)
    for pending, taken, kind in (
        (PENDING_VERSIONED, TAKEN_VERSIONED, Versioned),
        (PENDING, TAKEN, Managed),
    ):
        if is_capsule(capsule, pending):
            pointer = pointer_of(capsule, pending)
            _rename(capsule, taken)
            return _checked(kind, pointer, device)
    raise BufferError("its __dlpack__ gives no DLPack capsule, or one that was read before")


def _capsule(array: SupportsDLPack, options: dict[str, int]) -> object:
    lend = cast("Callable[..., object]", array.__dlpack__)
    try:
        return lend(**options, max_version=(1, 0))
    except TypeError:  # an owner older than DLPack 1
        return lend(**options)


def _checked(kind: type[Versioned] | type[Managed], pointer: int, device: tuple[int, int]) -> SharedTensor:
    managed = kind.from_address(pointer)

    delete = Deleter(managed.deleter) if managed.deleter else None

    def release() -> None:
        if delete is not None:
            delete(pointer)

    try:
        if isinstance(managed, Versioned) and managed.major != 1:
            raise BufferError(f"a capsule of DLPack {managed.major}, which is not known")
        read_only = bool(managed.flags & READ_ONLY) if isinstance(managed, Versioned) else None
        return _described(managed.tensor, device, read_only, release)
    except BaseException:
        release()
        raise


def _described(t: Tensor, device: tuple[int, int], read_only: bool | None, release: Callable[[], None]) -> SharedTensor:
    where = (int(t.device_type), int(t.device_id))
    if not _is_same_place(where, device):
        raise BufferError(f"its capsule is of device {where}, but it says that it lies on {tuple(device)}")
    rank = t.ndim
    if not 0 <= rank <= MAX_RANK or (rank and not t.shape):
        raise BufferError(f"{rank} dimensions" if t.shape or not rank else "no shape")
    dtype = type_of(t.code, t.bits, t.lanes)
    shape = tuple(t.shape[:rank]) if rank else ()
    strides = tuple(n * dtype.itemsize for n in t.strides[:rank]) if rank and t.strides else None
    address = (t.data or 0) + t.byte_offset
    check_layout(shape, strides, dtype.itemsize)
    if not t.data and 0 not in shape:
        raise BufferError("no memory")
    return SharedTensor(address, dtype, shape, strides, where, read_only, release)


def _is_same_place(a: tuple[int, int], b: tuple[int, int]) -> bool:
    """Return True if two of DLPack's devices are the same; this machine's memory is one, pinned or not."""
    if a[0] in HOST_DEVICES:
        return b[0] in HOST_DEVICES
    return a[1] == b[1] and (a[0] == b[0] or (a[0] in CUDA_DEVICES and b[0] in CUDA_DEVICES))


def check_layout(shape: tuple[int, ...], strides: tuple[int, ...] | None, itemsize: int) -> None:
    """Raise BufferError unless sizes and strides (in bytes) are those of a tensor that memory can hold."""
    if any(n < 0 for n in shape):
        raise BufferError(f"shape {_short(shape)}")
    if math.prod(max(n, 1) for n in shape) * itemsize > LARGEST:
        raise BufferError(f"shape {_short(shape)}, which no memory holds")
    if strides is None:
        return
    if len(strides) != len(shape):
        raise BufferError(f"{len(strides)} strides for {len(shape)} dimensions")
    if sum((n - 1) * abs(s) for n, s in zip(shape, strides, strict=True) if n) + itemsize > LARGEST:
        raise BufferError(f"strides of {_short(strides)} bytes, which no memory holds")
    if any(abs(s) > LARGEST for s in strides):
        raise BufferError(f"strides of {_short(strides)} bytes")


def _short(numbers: tuple[int, ...]) -> str:
    text = str(list(numbers[:8]))
    return text if len(numbers) <= 8 and len(text) < 200 else f"{text[:200]}..."


_KINDS = {0: "i", 1: "u", 2: "f", 5: "c"}
_BYTES = {"i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (2, 4, 8), "c": (8, 16)}
BFLOAT = (4, 16)
CODES = {d.name: (DLPACK_CODES[d.kind_code], d.bits) for d in DTYPES.values() if not d.width}
"""DLPack's code and width of opgen's types; one of fewer than 8 bits has several elements in a byte there."""
_BY_CODE = {DLPACK_CODES[d.kind_code]: d.name for d in DTYPES.values() if d.small is not None and not d.width}


def type_of(code: int, bits: int, lanes: int) -> np.dtype[np.generic]:
    """Return numpy's type for DLPack's code, width and lanes; raise BufferError if it has none."""
    if (code, bits, lanes) == (*BFLOAT, 1):
        return numpy_dtype(BFLOAT16)
    if (code, bits, lanes) == (6, 8, 1):
        return np.dtype(np.bool_)
    if code in _BY_CODE and (bits, lanes) == (8, 1):
        return numpy_dtype(DTYPES[_BY_CODE[code]])
    kind = _KINDS.get(code, "")
    if bits % 8 or bits // 8 not in _BYTES.get(kind, ()) or lanes != 1:
        raise BufferError(f"elements of DLPack's type {code}, {bits} bits, {lanes} lanes")
    found: np.dtype[np.generic] = np.dtype(f"{kind}{bits // 8}")
    return found


class _Lender:
    """The base of an array over borrowed memory, which gives the memory back when nothing refers to it any more."""

    def __init__(self, shared: SharedTensor, words: str) -> None:
        self._release = shared.release
        self.__array_interface__ = {
            "shape": shared.shape,
            "typestr": words,
            "data": (shared.address, shared.read_only is not False),
            "strides": shared.strides,
            "version": 3,
        }

    def __del__(self) -> None:
        self._release()


def array_over(shared: SharedTensor) -> npt.NDArray[np.generic]:
    """Return an array over a tensor in this machine's memory, which is given back with the array.

    It is writeable only if the owner says so.
    """
    if 0 in shared.shape:
        shared.release()
        return np.empty(shared.shape, shared.dtype)
    plain = np.dtype(f"u{shared.dtype.itemsize}") if shared.dtype.kind == "V" else shared.dtype
    found = np.asarray(_Lender(shared, plain.str))
    return found.view(shared.dtype) if plain is not shared.dtype else found
