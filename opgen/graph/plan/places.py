"""Place of each value of a graph.

A value is in an input or output buffer of the caller, a constant, or a stretch of the arena.  A view (the same bytes
under another shape) shares the place of the value that it views.  A result written over an operand shares the operand's
place.  An output is written straight to the caller's buffer.  A value that is an output and also an input, a constant
or another output is copied there at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal

from opgen.graph.ir.nodes import Graph, Value

Room = Literal["input", "output", "weight", "arena"]


@dataclass(frozen=True, slots=True)
class Place:
    """An input, an output or a constant by its number, or an offset in the arena, in bytes."""

    room: Room
    at: int

    def __str__(self) -> str:
        return f"{self.room} {self.at}"


@dataclass(frozen=True, slots=True)
class Copy:
    """Bytes that are copied to an output after all nodes have run."""

    source: str
    output: int
    bytes: int


@dataclass(frozen=True)
class Homes:
    """Owners of places: for each value the one whose place it shares, the fixed places, and the copies.

    A value is its own `root` unless it is a view or is written over another value.  `fixed` places are the caller's or
    constants'.
    """

    root: Mapping[str, str]
    fixed: Mapping[str, Place]
    copies: tuple[Copy, ...]


def bytes_of(value: Value) -> int:
    """Return the number of bytes of a value's elements."""
    return prod(value.shape) * value.dtype.bytes


def homes(graph: Graph, shared: Mapping[str, str]) -> Homes:
    """Return the places that are fixed before planning.

    `shared` maps each result that is a view, or is written over an operand, to the value whose place it shares.
    """
    root = {name: name for name in graph.value}
    for node in graph.nodes:
        for name in node.outputs:
            if name in shared:
                root[name] = root[shared[name]]
    fixed = {v.name: Place("input", i) for i, v in enumerate(graph.inputs)}
    fixed |= {c.value.name: Place("weight", i) for i, c in enumerate(graph.constants)}
    copies = []
    for number, name in enumerate(graph.outputs):
        if root[name] in fixed:
            copies.append(Copy(root[name], number, bytes_of(graph.value[name])))
        else:
            fixed[root[name]] = Place("output", number)
    return Homes(root, fixed, tuple(copies))
