"""Locks that are whole in a forked child: every lock in opgen is one of these.

Code is built and loaded under one lock, `BUILD`.  LLVM is used by one thread at a time (llvmlite takes a lock of its
own round every call), so building under one lock loses nothing, and gives "built once, however many threads ask" for
free.  `BUILD` is held while the process forks: a child never starts with a half-made kernel.

All other locks are made anew in a child (`Lock`).  Holding them at a fork, too, could wait for ever: a thread that
waits for `BUILD` may hold one of them.
"""

from __future__ import annotations

import os
import threading
from types import TracebackType
from weakref import WeakSet


class Lock:
    """A reentrant lock, for `with` blocks.

    A forked child has a new one, unless the thread that forked holds it: the thread that held the parent's does not
    exist there.  So what it guards is whole after each single step.
    """

    def __init__(self) -> None:
        self._inner = threading.RLock()
        self._holder: int | None = None
        self._depth = 0
        _locks.add(self)

    def __enter__(self) -> None:
        self._inner.acquire()
        self._holder = threading.get_ident()
        self._depth += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._holder = None
        self._inner.release()

    def renew(self) -> None:
        """Be free, unless the calling thread holds it."""
        if self._holder != threading.get_ident():
            self._inner = threading.RLock()
            self._holder = None
            self._depth = 0


_locks: WeakSet[Lock] = WeakSet()

BUILD = threading.RLock()


def _renew() -> None:
    for lock in list(_locks):
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=BUILD.acquire, after_in_parent=BUILD.release, after_in_child=BUILD.release)
    os.register_at_fork(after_in_child=_renew)
