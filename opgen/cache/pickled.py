"""Python objects in the kernel cache.

They are pickled: the cache's folder belongs to the user alone, and every entry is verified in full when it is read.
"""

from __future__ import annotations

import pickle
from typing import TypeVar

from opgen.cache import entries as cache

T = TypeVar("T")


def take(key: str, kind: type[T]) -> T | None:
    """Return the object of class `kind` kept under a key; None if the entry is missing or of another class."""
    payload = cache.default().load(key)
    if payload is None:
        return None
    try:
        found = pickle.loads(payload)
    except Exception:  # pickle may raise anything on another program's bytes: the object is rebuilt
        return None
    return found if isinstance(found, kind) else None


def put(key: str, value: object) -> None:
    """Keep an object for later processes."""
    cache.default().store(key, pickle.dumps(value))
