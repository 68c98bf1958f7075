"""Kernels in the process, each once, by the key of its object code."""

from __future__ import annotations

import contextlib
import hashlib
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from weakref import WeakValueDictionary

from opgen.locks import BUILD, cached_property
from opgen.runtime.kernels.temporaries import load_kernel
from opgen.runtime.native.library import Library

SPARE = 1024
"""Number of kernels that stay loaded when nothing refers to them."""


@dataclass(frozen=True)
class Origin:
    """Origin of a kernel: an op by name, its definition or an algorithm, and certain sizes or any."""

    op: str = ""
    algorithm: str | None = None
    specialized: bool = True


@dataclass(frozen=True, eq=False)
class LoadedKernel:
    """A kernel's address, good for as long as this object lives, and its object code, independent of the cache.

    `built` is True if this process built it.  `parallel`: threads can share its work.
    """

    address: int
    library: Library
    code: bytes
    symbol: str
    origin: Origin
    built: bool
    parallel: bool

    @cached_property
    def code_hash(self) -> str:
        """The sha256 of the object code, which shows whether two calls ran the same."""
        return hash_of(self.code)


class Loaded:
    """The kernels in the process: those that programs hold, and the last used ones, at the end of `recent`."""

    def __init__(self) -> None:
        self._all: WeakValueDictionary[str, LoadedKernel] = WeakValueDictionary()
        self._recent: OrderedDict[str, LoadedKernel] = OrderedDict()
        self._holders = 0

    def get(self, key: str) -> LoadedKernel | None:
        found = self._all.get(key)
        if found is not None:
            self._use(key, found)
        return found

    def put(self, key: str, kernel: LoadedKernel) -> None:
        self._all[key] = kernel
        self._use(key, kernel)

    @contextlib.contextmanager
    def holding(self) -> Iterator[None]:
        with BUILD:
            self._holders += 1
        try:
            yield
        finally:
            with BUILD:
                self._holders -= 1
                self._forget()

    def _use(self, key: str, kernel: LoadedKernel) -> None:
        self._recent[key] = kernel
        self._recent.move_to_end(key)
        self._forget()

    def forget(self) -> None:
        """Forget all kernels, including those that programs hold."""
        self._all.clear()
        self._recent.clear()

    def _forget(self) -> None:
        while self._holders == 0 and len(self._recent) > SPARE:
            self._recent.popitem(last=False)


_loaded = Loaded()


def holding() -> contextlib.AbstractContextManager[None]:
    """Return a block in which no kernel is forgotten: all that a program builds in it are there when it is loaded."""
    return _loaded.holding()


def loaded_code(
    key: str, symbol: str, code: bytes, origin: Origin, built: bool = False, parallel: bool = False
) -> LoadedKernel:
    """Return a kernel in the process; load it if it is not there yet.

    Raises InternalError if the code lacks the symbol.
    """
    with BUILD:
        found = _loaded.get(key)
        if found is None:
            library = load_kernel(code, symbol, origin.op)
            found = LoadedKernel(library.address(symbol), library, code, symbol, origin, built, parallel)
            _loaded.put(key, found)
        return found


def remembered(key: str) -> LoadedKernel | None:
    """Return a kernel that is in the process; None if it is not."""
    with BUILD:
        return _loaded.get(key)


def forget() -> None:
    """Forget the kernels in memory; those on disk stay."""
    with BUILD:
        _loaded.forget()


def hash_of(code: bytes) -> str:
    """Return the sha256 of object code."""
    return hashlib.sha256(code).hexdigest()
