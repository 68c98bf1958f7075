"""Weight store: constants as programs read them, one copy for all programs of a model while one of them needs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from weakref import WeakValueDictionary

from opgen.graph.ir.values import Array
from opgen.runtime.memory.address import address


@dataclass(eq=False)
class Held:
    """Arrays made from some source arrays; it keeps the sources alive, so that their addresses are not reused."""

    sources: tuple[Array, ...]
    made: tuple[Array, ...]


Row: TypeAlias = "tuple[Held, int] | None"
"""A row of the table of a program's entry: one of the held arrays; None if no kernel reads it."""


def array_of(row: Row) -> Array | None:
    """Return the array of a row."""
    return None if row is None else row[0].made[row[1]]


Key: TypeAlias = "tuple[str, tuple[tuple[int, str, tuple[int, ...]], ...]]"
"""The way that it is made, and the address, type and shape of each source."""


class Store:
    """Weight store: arrays made from read-only arrays, by how they are made and from which."""

    def __init__(self) -> None:
        self._held: WeakValueDictionary[Key, Held] = WeakValueDictionary()

    def of(self, way: str, sources: Sequence[Array], make: Callable[[], Sequence[Array]]) -> Held:
        """Return the arrays made from the sources in a given way: made now, unless they are still alive."""
        key = (way, tuple((address(a), a.dtype.str, a.shape) for a in sources))
        found = self._held.get(key)
        if found is None:
            found = Held(tuple(sources), tuple(make()))
            self._held[key] = found
        return found
