"""Files of a model that stay open, so that they can be read again even if they are renamed or removed."""

from __future__ import annotations

import hashlib
import itertools
import mmap
import os
import threading
import weakref
from collections.abc import Callable

from opgen.locks import cached_property
from opgen.runtime.threads import available_cpus

_CHUNK = 4 << 20
"""Bytes that are hashed at a time."""


COPIED = 16 << 20
"""Size in bytes up to which a file is read into memory: later changes of it then have no effect."""


class ChangedError(Exception):
    """A file that has changed since it was opened."""


class OpenFile:
    """A plain file, of the size that it had when it was opened."""

    def __init__(self, descriptor: int) -> None:
        """Takes the descriptor, and closes it when nobody needs the file any more."""
        self._descriptor = descriptor
        weakref.finalize(self, os.close, descriptor)
        self._state = _state(descriptor)
        self.size = self._state[0]

    def read(self, offset: int, count: int) -> bytes:
        """Return bytes from some place.  Raises ChangedError if there are fewer, OSError if they cannot be read."""
        found = os.pread(self._descriptor, count, offset)
        while len(found) < count:
            more = os.pread(self._descriptor, count - len(found), offset + len(found))
            if not more:
                raise ChangedError
            found += more
        return found

    @cached_property
    def mapped(self) -> memoryview:
        """Return bytes: few are read, others mapped.  Raises OSError, and ChangedError if the file was cut short.

        Who cuts a file short that is mapped ends the process where it reads on.
        """
        if self.size <= COPIED:
            return memoryview(self.read(0, self.size))
        return memoryview(mmap.mmap(self._descriptor, self.size, access=mmap.ACCESS_READ))

    def changed(self) -> bool:
        """Return True if it was written to since, by its times."""
        return _state(self._descriptor) != self._state

    def digest(self) -> str:
        """Return a hash of its present contents.  Raises ChangedError and OSError."""
        return digest(self.read, self.size)


def _state(descriptor: int) -> tuple[int, int]:
    """Return the size of a file, and when it was written to."""
    found = os.fstat(descriptor)
    return found.st_size, found.st_mtime_ns


def digest(read: Callable[[int, int], bytes | memoryview], size: int) -> str:
    """Return the sha256 over those of pieces, computed by several threads; `read` takes an offset and a byte count."""
    starts = range(0, size, _CHUNK)
    found: list[bytes] = [b""] * len(starts)
    wrong: list[Exception] = []
    places = itertools.count()

    def work() -> None:
        try:
            while (place := next(places)) < len(starts) and not wrong:
                piece = read(starts[place], min(_CHUNK, size - starts[place]))
                found[place] = hashlib.sha256(piece).digest()
        except Exception as error:  # it is raised below, in the thread that asks
            wrong.append(error)

    helpers = [threading.Thread(target=work) for _ in range(min(available_cpus(), len(starts)) - 1)]
    for helper in helpers:
        helper.start()
    work()
    for helper in helpers:
        helper.join()
    if wrong:
        raise wrong[0]
    return hashlib.sha256(size.to_bytes(8, "little") + b"".join(found)).hexdigest()
