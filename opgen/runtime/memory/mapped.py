"""Arrays in files of the cache: results computed from a model's weights, mapped into memory and not read.

    a page: magic (8 bytes), format (4), length of the elements (8), their CRC-32 (4), key (32), zeros
    the elements

Integers are little-endian.  A file that is not exactly as stored under its key is removed, like any entry of the cache
(`opgen.cache.entries`).  A length and a checksum detect damage, and nobody but the user can have written it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import weakref
import zlib
from functools import cache as once

import numpy as np

from opgen.cache import directory
from opgen.cache import entries as cache
from opgen.dtypes import DType
from opgen.runtime.memory.buffers import AnyArray, numpy_dtype

PAGE = mmap.PAGESIZE
LEAST = 1 << 14
"""Bytes from which on an array has a file of its own: reading a smaller one with other data is faster."""

_FORMAT = 1
_MAGIC = b"OPGENARR"
_HEADER = struct.Struct("<8sIQI32s")
_FAILED = ctypes.c_void_p(-1).value
_FLAGS = mmap.MAP_PRIVATE | getattr(mmap, "MAP_POPULATE", 0)


def store(key: str, array: AnyArray) -> bool:
    """Keep an array's elements under a key of 64 hexadecimal digits; return True if they are there now."""
    held, name = cache.default(), cache.array_name(key)
    if held.size_of(name) == PAGE + array.nbytes:
        return True
    elements = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    header = _HEADER.pack(_MAGIC, _FORMAT, len(elements), zlib.crc32(elements), bytes.fromhex(key))
    return held.store_file(name, header.ljust(PAGE, b"\0"), elements)


def load(key: str, dtype: DType, shape: tuple[int, ...]) -> AnyArray | None:
    """Return the array stored under a key, read-only; None if it is missing or damaged."""
    kind = numpy_dtype(dtype)
    size = kind.itemsize * int(np.prod(shape, dtype=np.int64))
    held = cache.default()
    if held.path is None:
        return None
    name = cache.array_name(key)
    try:
        with directory.opened(held.path, create=False) as d:
            with directory.file(d, name, PAGE + size) as descriptor:
                found = _mapped(descriptor, key, size)
                if found is not None:
                    directory.used(descriptor)
            if found is None:
                directory.remove(d, name)
                return None
    except (OSError, directory.UntrustedError):
        return None
    return np.frombuffer(found, kind).reshape(shape)


def _mapped(descriptor: int, key: str, size: int) -> memoryview | None:
    """Return the elements in a file, or None if it is not as stored."""
    if os.fstat(descriptor).st_size != PAGE + size:
        return None
    address = _mmap()(None, PAGE + size, mmap.PROT_READ, _FLAGS, descriptor, 0)
    if address in (None, _FAILED):
        return None
    owner = (ctypes.c_char * (PAGE + size)).from_address(address)
    weakref.finalize(owner, _munmap(), address, PAGE + size).atexit = False
    whole = memoryview(owner).cast("B").toreadonly()
    elements = whole[PAGE:]
    expected = _HEADER.pack(_MAGIC, _FORMAT, size, zlib.crc32(elements), bytes.fromhex(key))
    return elements if whole[: _HEADER.size] == expected else None


@once
def _mmap() -> ctypes._NamedFuncPointer:
    """Return the C library's mmap: Python's own keeps a descriptor for each mapped file, and a process may have few."""
    function = ctypes.CDLL(None, use_errno=True).mmap
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64]
    return function


@once
def _munmap() -> ctypes._NamedFuncPointer:
    function = ctypes.CDLL(None).munmap
    function.restype = ctypes.c_int
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return function
