"""Constants as programs read them, shared by all programs of a model: one copy, as long as one of them needs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from weakref import WeakValueDictionary

from opgen.graph.ir.values import Array
from opgen.runtime.memory.address import address


@dataclass(eq=False)
class Held:
    """What was made of some arrays, and these, so that no others take their place in memory."""

    sources: tuple[Array, ...]
    made: tuple[Array, ...]


Row: TypeAlias = "tuple[Held, int] | None"
"""A row of the table of a program's entry: one of the arrays that are held; None for what no kernel reads."""


def array_of(row: Row) -> Array | None:
    """The array of a row."""
    return None if row is None else row[0].made[row[1]]


Key: TypeAlias = "tuple[str, tuple[tuple[int, str, tuple[int, ...]], ...]]"
"""How it is made, and the place, type and shape of each source."""


class Store:
    """What was made of arrays that nobody writes to, by the way it is made and which they are."""

    def __init__(self) -> None:
        self._held: WeakValueDictionary[Key, Held] = WeakValueDictionary()

    def of(self, way: str, sources: Sequence[Array], make: Callable[[], Sequence[Array]]) -> Held:
        """What is made of the arrays in a way: made now, unless somebody still holds it."""
        key = (way, tuple((address(a), a.dtype.str, a.shape) for a in sources))
        found = self._held.get(key)
        if found is None:
            found = Held(tuple(sources), tuple(make()))
            self._held[key] = found
        return found
