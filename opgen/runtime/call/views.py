"""Arrays over tensors of other libraries, made in a fraction of a microsecond: for calls like one that was checked.

A class is learned when a tensor of it has been read in full (`opgen.runtime.call.tensors`).  From then on `view` reads
its tensors in one of these ways, or returns None, and the tensor takes the full checks again:

* by the table of C functions that a class of DLPack 1.3 has (`__dlpack_c_exchange_api__`), such as PyTorch's;
* by the buffer protocol, where a class with DLPack also has that and it knows the type, such as JAX's;
* by a capsule that `__dlpack__` returns.

Machine code reads the first and the last (`opgen.runtime.native.view_ir`).  Flags that change a tensor's meaning are
read each time: its negative bit or its gradient may differ from the last one's.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from opgen.diagnostics import InternalError
from opgen.dtypes import DTYPES
from opgen.locks import BUILD
from opgen.runtime.kernels.launcher import (
    METHOD_FASTCALL,
    NEW_FROM_DESCRIPTION,
    SET_BASE_OBJECT,
    Method,
    arrays_are_known,
    new_function,
    numpy_function,
    python_function,
)
from opgen.runtime.memory.buffers import numpy_dtype
from opgen.runtime.memory.dlpack import CODES, is_capsule, pointer_of
from opgen.runtime.memory.foreign import has, others
from opgen.runtime.native import view_ir
from opgen.runtime.native.library import Library, load_library

Array: TypeAlias = npt.NDArray[Any]
View: TypeAlias = Callable[[Any], "Array | None"]

_EXCHANGE, _EXCHANGE_NAME = "__dlpack_c_exchange_api__", b"dlpack_exchange_api"
_DESCRIBE = 5
"""Index of the table's function that describes a tensor: behind the version, an older table, and three others."""
_MOST = 64
"""Number of classes kept; beyond it, all are forgotten (they may be made anew for each tensor)."""

_views: dict[type, View] = {}


def view(value: object) -> Array | None:
    """Return an array over a tensor of a known class, or None."""
    look = _views.get(type(value))
    if look is None:
        return None
    try:
        return look(value)
    except Exception:  # foreign code may raise anything: the full checks report it
        return None


def arrays(values: tuple[object, ...]) -> tuple[Any, ...] | None:
    """Return values with arrays over their tensors, at least one; None if one cannot be read in this way.

    Arrays and None are returned unchanged.
    """
    found: list[object] = []
    some = False
    for value in values:
        if type(value) is np.ndarray or value is None:
            found.append(value)
            continue
        a = view(value)
        if a is None:
            return None
        some = True
        found.append(a)
    return tuple(found) if some else None


def learn(value: object) -> None:
    """Remember how to read tensors of a value's class, if it is a tensor of another library's."""
    kind = type(value)
    if kind in _views or not others((value,)):
        return
    look = _view_of(kind, value)
    if look is not None:
        if len(_views) >= _MOST:
            _views.clear()
        _views[kind] = look


def _view_of(kind: type, value: object) -> View | None:
    loaded = _load()
    if loaded is None:
        return None
    asks = _asking(kind)
    describe = _describing(kind)
    if describe is not None:
        return asks(cast("View", loaded.function(loaded.object, np.array([describe], np.int64))))
    by_capsule = cast("View", loaded.function(loaded.capsule, None))
    versions = _takes_versions(value)

    def by_dlpack(t: Any) -> Array | None:
        return by_capsule(t.__dlpack__(max_version=(1, 0)) if versions else t.__dlpack__())

    return asks(_by_buffer(by_dlpack) if _has_buffer(value) else by_dlpack)


def _takes_versions(value: Any) -> bool:
    try:
        value.__dlpack__(max_version=(1, 0))
    except Exception:  # foreign code may raise anything
        return False
    return True


def _has_buffer(value: Any) -> bool:
    try:
        memoryview(value).release()
    except Exception:  # foreign code may raise anything
        return False
    return has(value, "dtype")


def _by_buffer(otherwise: View) -> View:
    """Return a view by the buffer protocol; types that the protocol does not know use `otherwise`."""

    def look(t: Any) -> Array | None:
        if getattr(t.dtype, "kind", "V") == "V":
            return otherwise(t)
        return np.asarray(memoryview(t))

    return look


def _asking(kind: type) -> Callable[[View], View]:
    """Return a wrapper of views that first reads the flags of a tensor's meaning, if its class has them."""
    bits = callable(getattr(kind, "is_neg", None)) and callable(getattr(kind, "is_conj", None))
    if bits and hasattr(kind, "requires_grad"):

        def asking(look: View) -> View:
            return lambda t: None if t.requires_grad or t.is_neg() or t.is_conj() else look(t)

        return asking
    return lambda look: look


def _describing(kind: type) -> int | None:
    """Return the address of a class's function that describes its tensors, if it has DLPack's table itself."""
    capsule = kind.__dict__.get(_EXCHANGE)
    if capsule is None or not is_capsule(capsule, _EXCHANGE_NAME):
        return None
    table = (ctypes.c_uint64 * (_DESCRIBE + 1)).from_address(pointer_of(capsule, _EXCHANGE_NAME))
    return int(table[_DESCRIBE]) or None if table[0] & 0xFFFFFFFF == 1 else None


class _Loaded:
    """The loaded code, kept for the rest of the process's life: arrays that refer to it may be the last to go."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.types = _types()
        self.object, self.capsule = (
            Method(b"view", library.address(name), METHOD_FASTCALL, None) for name in (view_ir.OBJECT, view_ir.CAPSULE)
        )
        place = (ctypes.c_int64 * view_ir.TABLE_WORDS).from_address(library.address(view_ir.TABLE))
        place[:] = _table(self.types)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))

    def function(self, method: Method, own: object) -> object:
        """Return a function of CPython's with an object of its own."""
        return new_function()(ctypes.addressof(method), own, self)


@functools.cache
def _load() -> _Loaded | None:
    from opgen.runtime import threads

    if not arrays_are_known():
        return None
    with BUILD:
        try:
            code = threads.object_code(view_ir.IR)
            return _Loaded(load_library(code, view_ir.OBJECT, view_ir.CAPSULE, view_ir.TABLE))
        except (AttributeError, ImportError, KeyError, InternalError):
            return None


def _types() -> npt.NDArray[np.int64]:
    """Return DLPack's word, numpy's type and bytes of each type of opgen's."""
    known = [(CODES[name], numpy_dtype(dtype)) for name, dtype in DTYPES.items() if name in CODES]
    return np.array([(code | bits << 8 | 1 << 16, id(t), t.itemsize) for (code, bits), t in known], np.int64)


def _table(types: npt.NDArray[np.int64]) -> list[ctypes.c_int64 | int]:
    names = ("Py_IncRef", "Py_DecRef", "PyErr_Clear")
    first = [python_function(name) for name in names]
    capsules = ("PyCapsule_IsValid", "PyCapsule_GetPointer", "PyCapsule_SetName", "PyCapsule_New")
    errors = ("PyErr_Fetch", "PyErr_Restore")
    return [
        id(np.ndarray),
        numpy_function(NEW_FROM_DESCRIPTION),
        *first,
        id(None),
        numpy_function(SET_BASE_OBJECT),
        *(python_function(name) for name in capsules),
        len(types),
        types.ctypes.data,
        *(python_function(name) for name in errors),
    ]
