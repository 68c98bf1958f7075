"""Tensors within tuples, lists and dictionaries: split into a flat list, and joined again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from opgen.exact import Exact
from opgen.runtime.memory.foreign import others
from opgen.runtime.call.recording import Symbol


@dataclass(frozen=True)
class Several:
    """A tuple, a list (`keys` None) or a dictionary of parts."""

    kind: type
    parts: tuple[Part, ...]
    keys: Exact | None = None
    """The keys of a dictionary, as a tuple."""

    def named(self) -> dict[Any, Part]:
        """Return the parts of a dictionary by their keys."""
        return dict(zip(() if self.keys is None else self.keys.value, self.parts, strict=True))


@dataclass(frozen=True)
class Fixed:
    """A value that is not a tensor."""

    held: Exact


@dataclass(frozen=True)
class Leaf:
    """A tensor."""


Part: TypeAlias = "Several | Fixed | Leaf"
LEAF = Leaf()


def split(value: object, is_leaf: Callable[[object], bool], name: str = "") -> tuple[Part, list[tuple[str, Any]]]:
    """Return a value's structure without its tensors, and the tensors, each with its path: `name[0]['weights']`."""
    if is_leaf(value):
        return LEAF, [(name, value)]
    items: list[tuple[object, object]]
    if isinstance(value, dict) and type(value) is dict:
        keys, items = Exact(tuple(value)), list(value.items())
    elif isinstance(value, tuple | list) and type(value) in (tuple, list):
        keys, items = None, list(enumerate(value))
    else:
        return Fixed(Exact(value)), []
    parts, leaves = [], []
    for key, item in items:
        part, found = split(item, is_leaf, f"{name}[{key!r}]")
        parts.append(part)
        leaves += found
    return Several(type(value), tuple(parts), keys), leaves


def join(part: Part, leaves: Iterator[object]) -> object:
    """Return the value again, with its tensors taken from an iterator in order."""
    if isinstance(part, Leaf):
        return next(leaves)
    if isinstance(part, Fixed):
        return part.held.value
    if part.keys is not None:
        return {key: join(p, leaves) for key, p in part.named().items()}
    return part.kind([join(p, leaves) for p in part.parts])


def is_tensor(value: object) -> bool:
    """Return whether a compiled function takes a value as a tensor."""
    return isinstance(value, np.ndarray | np.generic | Symbol) or bool(others((value,)))
