"""Tensors of a library that there is not: what they lend by DLPack, and what they say, is as a test wants it."""

from __future__ import annotations

import ctypes
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from opgen.runtime.memory import dlpack

_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))

_kept: dict[int, Any] = {}
"""What capsules point to, by its address, until it is given back."""


def _words(a: npt.NDArray[Any]) -> tuple[int, int]:
    if a.dtype.kind == "V":
        return dlpack.BFLOAT
    return {"i": 0, "u": 1, "f": 2, "b": 6}[a.dtype.kind], 8 * a.itemsize


def _integers(values: tuple[int, ...] | None) -> Any:
    return None if values is None else (ctypes.c_int64 * max(1, len(values)))(*values)


def _drop(capsule: int) -> None:
    """The end of a capsule that nobody took over."""
    for name in (dlpack.PENDING, dlpack.PENDING_VERSIONED):
        if _valid(capsule, name):
            _kept.pop(_get(capsule, name))[-1]._given_back()


_destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_drop)


class Lender:
    """A tensor over an array; `changes` are fields of `DLTensor` that say something else.

    `lent` and `returned` count the capsules.
    """

    requires_grad = False

    def __init__(
        self,
        a: npt.NDArray[Any],
        *,
        versioned: bool = True,
        flags: int = 0,
        major: int = 1,
        announced: Any = (1, 0),
        **changes: Any,
    ) -> None:
        self.array, self.versioned, self.flags, self.major, self.announced = a, versioned, flags, major, announced
        self.changes = changes
        self.lent = self.returned = 0

    def __dlpack_device__(self) -> Any:
        return self.announced

    def described(self) -> tuple[dlpack.Tensor, tuple[Any, ...]]:
        """What the tensor says of itself, and what must outlive that."""
        a, changes = self.array, self.changes
        code, bits = _words(a)
        shape = _integers(changes.get("shape", a.shape))
        strides = _integers(changes.get("strides", tuple(s // a.itemsize for s in a.strides)))
        t = dlpack.Tensor()
        t.data = changes.get("data", a.ctypes.data)
        t.device_type, t.device_id = changes.get("device", (1, 0))
        t.ndim = changes.get("ndim", a.ndim)
        t.code, t.bits, t.lanes = changes.get("code", code), changes.get("bits", bits), changes.get("lanes", 1)
        if shape is not None:
            t.shape = ctypes.cast(shape, type(t.shape))
        if strides is not None:
            t.strides = ctypes.cast(strides, type(t.strides))
        t.byte_offset = changes.get("byte_offset", 0)
        return t, (shape, strides)

    def _given_back(self) -> None:
        self.returned += 1

    def __dlpack__(self, *, max_version: tuple[int, int] | None = None, **_: Any) -> Any:
        t, kept = self.described()
        managed: Any
        if self.versioned and max_version is not None:
            managed = dlpack.Versioned(self.major, 0, None, None, self.flags, t)
            name = dlpack.PENDING_VERSIONED
        else:
            managed = dlpack.Managed(t, None, None)
            name = dlpack.PENDING
        address = ctypes.addressof(managed)

        def delete(pointer: int) -> None:
            assert pointer == address
            del _kept[address]
            self._given_back()

        deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(delete)
        managed.deleter = ctypes.cast(deleter, ctypes.c_void_p)
        _kept[address] = (managed, deleter, kept, t, self)
        self.lent += 1
        return _new_capsule(address, name, ctypes.cast(_destructor, ctypes.c_void_p))


class Flagged(Lender):
    """A tensor with PyTorch's words for what it means beyond its memory."""

    negative = conjugate = False

    def is_neg(self) -> bool:
        return self.negative

    def is_conj(self) -> bool:
        return self.conjugate

    def resolve_neg(self) -> Flagged:
        return Flagged(-self.array)


class Wrapper(Lender):
    """A tensor whose operations are its own."""

    @classmethod
    def __torch_dispatch__(cls, *_: Any) -> Any:
        raise NotImplementedError


class Buffer(Lender):
    """A read-only tensor that has numpy's type, as JAX's have."""

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.array.dtype


def _describe(value: Any, out: int) -> int:
    t, kept = value.described()
    value.described_last = kept
    ctypes.memmove(out, ctypes.addressof(t), ctypes.sizeof(t))
    return 0


_describe_function = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(_describe)
_table = (ctypes.c_uint64 * 7)(1 | 3 << 32, 0, 0, 0, 0, ctypes.cast(_describe_function, ctypes.c_void_p).value or 0, 0)


class Exchanger(Flagged):
    """A tensor whose class has DLPack's table of C functions."""

    __dlpack_c_exchange_api__: ClassVar[Any] = _new_capsule(ctypes.addressof(_table), b"dlpack_exchange_api", None)
