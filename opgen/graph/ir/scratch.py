"""Results that are kept while a program is made: they depend on its sizes, and no later program needs them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

MOST = 4096
"""Maximum number of results of one function that are kept."""

_clear: list[Callable[[], None]] = []


def kept_while_making(function: Callable[..., T]) -> functools._lru_cache_wrapper[T]:
    """Return the function with its results cached until the program is made."""
    kept = functools.lru_cache(maxsize=MOST)(function)
    _clear.append(kept.cache_clear)
    return kept


def forget() -> None:
    """Drop the cached results: a program is made."""
    for clear in _clear:
        clear()
