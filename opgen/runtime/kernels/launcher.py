"""The launcher, loaded: calls of a plan as functions of CPython's own, which check, allocate and jump.

It reads objects as CPython's and numpy's C interfaces define their layout (`opgen.runtime.native.launch_ir`).  If a
test on a few arrays finds another layout, or if the Python is unknown, there is no launcher.  Then Python does the same
by the longer way.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from opgen.diagnostics import InternalError
from opgen.locks import BUILD, Lock
from opgen.runtime.native import launch_ir

if TYPE_CHECKING:
    from opgen.runtime.kernels.kernel import Launchable
    from opgen.runtime.native.library import Library

Array: TypeAlias = npt.NDArray[Any]
Launcher: TypeAlias = Callable[..., "Array | None"]
"""A function of the tensors and an array (or None) for each result; it returns the first result, or None.

None means that the call is not for it.
"""

_HEADER, _POINTER = 16, 8
_NUMBER = _HEADER + _POINTER
"""Offset of a numpy type's kind, letter, byte order, flags and number."""
METHOD_FASTCALL = 0x0080
_NDARRAY, NEW_FROM_DESCRIPTION, SET_BASE_OBJECT = 2, 94, 282
"""Indices into numpy's table of C functions, which never change."""

_BYTE = np.dtype(np.uint8)


_holders: set[int] = set()
_holding = Lock()


def hold(holder: object) -> None:
    """Make every call bypass the launchers until `holder` is released."""
    with _holding:
        _hold({*_holders, id(holder)})


def release(holder: object) -> None:
    """Undo `hold` for a holder."""
    with _holding:
        _hold(_holders - {id(holder)})


def keep(holders: Iterable[object]) -> None:
    """Release all but these: a forked child has no others."""
    with _holding:
        _hold(_holders & {id(holder) for holder in holders})


def _hold(holders: set[int]) -> None:
    global _holders
    from opgen.runtime import threads

    if bool(holders) != bool(_holders):
        threads.differ(held=bool(holders))
    _holders = holders


def held() -> bool:
    """Return True while there is a holder."""
    return bool(_holders)


@dataclass(frozen=True)
class Slot:
    """An array of a call: its type, shape and required flags, and the index of the kernel's word for its address."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    flags: int
    word: int


class Method(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


@dataclass(frozen=True)
class _Loaded:
    """The launcher's code; all of it is kept for the rest of the process's life."""

    library: Library
    method: Method


def make(kernel: Launchable, slots: Sequence[Slot], tensors: int) -> Launcher | None:
    """Return the launcher of a kernel on arrays: `tensors` slots for tensors, the others for results; or None.

    It is good until the number of threads is changed: then it returns None for every call.
    """
    loaded = _load() if arrays_are_known() else None
    if loaded is None:
        return None
    sizes = [np.array(s.shape, np.int64) for s in slots]
    entries = np.array([_entry(s, n) for s, n in zip(slots, sizes, strict=True)], np.int64)
    words = kernel.packed()
    plan = np.array(
        [
            kernel.address,
            len(words),
            ctypes.addressof(words),
            tensors,
            len(slots) - tensors,
            kernel.generation,
            entries.ctypes.data,
        ],
        np.int64,
    )
    assert len(plan) == launch_ir.PLAN_WORDS
    kept = (loaded, kernel, words, entries, sizes, slots)
    return cast("Launcher", new_function()(ctypes.addressof(loaded.method), plan, kept))


def _entry(slot: Slot, sizes: npt.NDArray[np.int64]) -> tuple[int, ...]:
    size = int(np.prod(sizes)) * slot.dtype.itemsize
    number = ctypes.c_int64.from_address(id(slot.dtype) + _NUMBER).value
    return (id(slot.dtype), len(slot.shape), sizes.ctypes.data, slot.flags, size, slot.word, number)


@functools.cache
def new_function() -> Callable[[int, object, object], object]:
    """Return PyCFunction_NewEx: it makes a function of CPython's that holds the second and third argument."""
    made = ctypes.pythonapi.PyCFunction_NewEx
    made.restype = ctypes.py_object
    made.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
    return cast("Callable[[int, object, object], object]", made)


@functools.cache
def arrays_are_known() -> bool:
    """Return True if objects have the memory layout that the launcher assumes."""
    known = (
        platform.python_implementation() == "CPython"
        and sys.maxsize == 2**63 - 1
        and object.__basicsize__ == _HEADER
        and getattr(sys, "_is_gil_enabled", lambda: True)()
    )
    return known and _layout_is_right()


def _layout_is_right() -> bool:
    whole = np.arange(24.0).reshape(2, 3, 4)
    samples = (whole, whole[1], whole[:, ::-1], np.empty((0, 3), np.float32), np.array(1, np.int8), np.arange(3) > 1)
    swapped = whole.astype(">f8" if sys.byteorder == "little" else "<f8")
    return all(_seen(a) == _told(a) for a in (*samples, swapped))


def _seen(a: Array) -> tuple[object, ...]:
    """Return the fields that the launcher would read of an array."""
    word, integer = ctypes.c_int64.from_address, ctypes.c_int32.from_address
    rank = integer(id(a) + _HEADER + _POINTER).value
    sizes = word(id(a) + _HEADER + 2 * _POINTER).value
    dtype = word(id(a) + _HEADER + 5 * _POINTER).value
    if dtype != id(a.dtype):
        return ()
    return (
        word(id(a) + _POINTER).value,
        word(id(a) + _HEADER).value,
        rank,
        tuple(word(sizes + _POINTER * d).value for d in range(rank)) if 0 <= rank <= 64 else (),
        ctypes.string_at(dtype + _NUMBER, 3),
        integer(dtype + _NUMBER + 4).value,
        integer(id(a) + _HEADER + 6 * _POINTER).value & 0x505,
    )


def _told(a: Array) -> tuple[object, ...]:
    dtype = a.dtype
    number = f"{dtype.kind}{dtype.char}{dtype.byteorder}".encode()
    return (id(type(a)), a.ctypes.data, a.ndim, a.shape, number, dtype.num, a.flags.num & 0x505)


def numpy_function(number: int) -> int:
    """Return an address from numpy's table for C extensions."""
    core = sys.modules.get("numpy._core._multiarray_umath") or sys.modules["numpy.core._multiarray_umath"]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = pointer(core._ARRAY_API, None)
    return ctypes.c_int64.from_address(table + _POINTER * number).value


def python_function(name: str) -> int:
    address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    if address is None:
        raise AttributeError(name)
    return address


@functools.cache
def _load() -> _Loaded | None:
    """Return the launcher, built on a machine's first use; None if something that it needs is missing."""
    from opgen.runtime import threads
    from opgen.runtime.native.library import load_library

    with BUILD:
        try:
            table = _table(ctypes.addressof(threads.GENERATION))
            library = load_library(threads.object_code(launch_ir.IR), launch_ir.FUNCTION, launch_ir.TABLE)
        except (AttributeError, KeyError, InternalError):
            return None
        place = (ctypes.c_int64 * launch_ir.TABLE_WORDS).from_address(library.address(launch_ir.TABLE))
        place[:] = table
        return _Loaded(library, Method(b"plan", library.address(launch_ir.FUNCTION), METHOD_FASTCALL, None))


def _table(generation: int) -> list[ctypes.c_int64 | int]:
    if numpy_function(_NDARRAY) != id(np.ndarray):
        raise AttributeError("numpy.ndarray")
    names = ("Py_IncRef", "Py_DecRef", "PyEval_SaveThread", "PyEval_RestoreThread", "PyErr_Clear")
    functions = [python_function(name) for name in names]
    arrays = (numpy_function(NEW_FROM_DESCRIPTION), numpy_function(SET_BASE_OBJECT))
    return [id(np.ndarray), arrays[0], *functions, id(None), generation, id(_BYTE), arrays[1]]
