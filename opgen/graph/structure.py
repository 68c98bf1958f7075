"""Tensors within tuples, lists and dictionaries: taken apart into a flat list, and put together again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from opgen.runtime.foreign import others
from opgen.runtime.recording import Symbol


@dataclass(frozen=True)
class Several:
    """A tuple, a list (`keys` None) or a dictionary of parts."""

    kind: type
    parts: tuple[Part, ...]
    keys: tuple[object, ...] | None = None


@dataclass(frozen=True)
class Fixed:
    """A value that is no tensor.  Two are one only if their types are: 1 is not 1.0, and not True."""

    value: object

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, Fixed) and type(self.value) is type(other.value)
        return same and isinstance(other, Fixed) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True)
class Leaf:
    """A tensor."""


Part: TypeAlias = "Several | Fixed | Leaf"
LEAF = Leaf()


def split(value: object, is_leaf: Callable[[object], bool], name: str = "") -> tuple[Part, list[tuple[str, Any]]]:
    """What is left without its tensors, and these, each with where it stands: `name[0]['weights']`."""
    if is_leaf(value):
        return LEAF, [(name, value)]
    items: list[tuple[object, object]]
    if isinstance(value, dict) and type(value) is dict:
        keys, items = tuple(value), list(value.items())
    elif isinstance(value, tuple | list) and type(value) in (tuple, list):
        keys, items = None, list(enumerate(value))
    else:
        return Fixed(value), []
    parts, leaves = [], []
    for key, item in items:
        part, found = split(item, is_leaf, f"{name}[{key!r}]")
        parts.append(part)
        leaves += found
    return Several(type(value), tuple(parts), keys), leaves


def join(part: Part, leaves: Iterator[object]) -> object:
    """The value again, its tensors taken from an iterator in order."""
    if isinstance(part, Leaf):
        return next(leaves)
    if isinstance(part, Fixed):
        return part.value
    items = [join(p, leaves) for p in part.parts]
    return dict(zip(part.keys, items, strict=True)) if part.keys is not None else part.kind(items)


def is_tensor(value: object) -> bool:
    """Whether a value is one that a compiled function takes as a tensor."""
    return isinstance(value, np.ndarray | np.generic | Symbol) or bool(others((value,)))
