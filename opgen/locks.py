"""Locks that stay consistent in a forked child: every lock in opgen is one of these.

Code is built and loaded under one lock, `BUILD`.  LLVM is used by one thread at a time: llvmlite takes a lock of its
own around every call.  So building under one lock loses nothing, and gives "built once, however many threads request
it" for free.  `BUILD` is held while the process forks: a child never starts with a half-made kernel.

All other locks are made anew in a child (`Lock`).  Holding them at a fork, too, could deadlock: a thread that waits for
`BUILD` may hold one of them.  `cached_property` has no lock at all, whereas Python's has one that no child can renew.
Nor can a child renew the locks of modules: a fork waits while other threads import some.
"""

from __future__ import annotations

import importlib
import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property:
        """A property that is computed once; threads that read it at the same time may each compute it.

        Before Python 3.12 `functools.cached_property` holds a lock meanwhile, one for all objects of a class.
        """

        def __init__(self, function: Callable[[Any], Any]) -> None:
            self.function = function
            self.__doc__ = function.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self.name = name

        def __get__(self, instance: object, owner: type | None = None) -> Any:
            """Return the value, which from then on is found before this property."""
            if instance is None:
                return self
            return instance.__dict__.setdefault(self.name, self.function(instance))


_locks: WeakSet[Any] = WeakSet()


def Lock() -> threading.RLock:
    """Return a reentrant lock, for `with` blocks.

    A forked child has it free, unless the forking thread holds it: the thread that held the parent's does not exist
    there.  So the guarded data is consistent after each single step.  It is Python's own lock: no signal can interrupt
    between taking the lock and noting that the block has it.
    """
    made = threading.RLock()
    _locks.add(made)
    return made


BUILD = threading.RLock()


def _renew() -> None:
    for lock in list(_locks):
        if not lock._is_owned():
            lock._at_fork_reinit()


IMPORTING = 5.0
"""Seconds for which a fork waits for imports, at most: one may need something that the forking thread holds."""


def _wait_for_imports() -> None:
    """Wait until no other thread imports a module: a child could never import it, nor modules that import it."""
    until = time.monotonic() + IMPORTING
    while _others_import() and time.monotonic() < until:
        time.sleep(0.001)


def _others_import() -> bool:
    known: dict[str, Callable[[], Any]] = getattr(importlib._bootstrap, "_module_locks", {})
    owners = {getattr(lock(), "owner", None) for lock in list(known.values())}
    return not owners <= {None, threading.get_ident()}


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait_for_imports)  # called last, as the first one that is registered
    os.register_at_fork(before=BUILD.acquire, after_in_parent=BUILD.release, after_in_child=BUILD.release)
    os.register_at_fork(after_in_child=_renew)
