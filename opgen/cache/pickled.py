"""Python objects in the kernel cache.

They are pickled: the cache's folder belongs to the user alone, and what is read from it is checked whole.
"""

from __future__ import annotations

import pickle
from typing import TypeVar

from opgen.cache import entries as cache

T = TypeVar("T")


def take(key: str, kind: type[T]) -> T | None:
    """The object of a class that was kept under a key; None if there is none, or something else."""
    payload = cache.default().load(key)
    if payload is None:
        return None
    try:
        found = pickle.loads(payload)
    except Exception:  # whatever pickle makes of another program's bytes, the object is made again
        return None
    return found if isinstance(found, kind) else None


def put(key: str, value: object) -> None:
    """Keep an object for the processes that come."""
    cache.default().store(key, pickle.dumps(value))
