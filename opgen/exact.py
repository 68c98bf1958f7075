"""Equality of Python values by type and bits: for Python 0.0 equals -0.0, 1 equals True, and NaN equals nothing."""

from __future__ import annotations

import dataclasses
import functools
import struct
from decimal import Decimal
from typing import Any

_FLOAT, _COMPLEX = struct.Struct("=d"), struct.Struct("=dd")


class Exact:
    """A value that equals another one of the same type and the same bits, with a matching hash."""

    __slots__ = ("_key", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self._key = _key(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Exact) and self._key == other._key

    def __hash__(self) -> int:
        """Return the hash.  Raises TypeError for a value that has none."""
        return hash(self._key)

    def __repr__(self) -> str:
        return f"Exact({self.value!r})"


def _key(value: Any) -> object:
    """Return an object that is equal only for values of the same type and bits, also inside containers."""
    kind: object = type(value)
    if isinstance(value, float):
        return kind, _FLOAT.pack(value)
    if isinstance(value, complex):
        return kind, _COMPLEX.pack(value.real, value.imag)
    if isinstance(value, Decimal):
        return kind, value.as_tuple()
    if isinstance(value, tuple):
        return kind, tuple(map(_key, value))
    if isinstance(value, frozenset):
        return kind, frozenset(map(_key, value))
    if isinstance(value, slice):
        return kind, (_key(value.start), _key(value.stop), _key(value.step))
    names = _compared(kind)
    return (kind, value) if names is None else (kind, tuple([_key(getattr(value, name)) for name in names]))


@functools.lru_cache(maxsize=1024)
def _compared(kind: object) -> tuple[str, ...] | None:
    """Return the fields that decide the equality of a dataclass's objects; None for another class."""
    if not isinstance(kind, type) or not dataclasses.is_dataclass(kind) or "__eq__" not in vars(kind):
        return None
    return tuple(field.name for field in dataclasses.fields(kind) if field.compare)
