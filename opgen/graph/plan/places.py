"""Where each value of a graph lies.

A value is an input's or an output's memory of the caller's, a constant, or a stretch of the arena.  A view (the same
bytes under another shape) lies where what it views does, and a result that is written over an operand where that does.
A result that is an output is written where the caller wants it; what is an output for another reason as well (an input,
a constant, given twice) is copied there at the end.
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
    """Bytes that are copied to an output when all nodes have run."""

    source: str
    output: int
    bytes: int


@dataclass(frozen=True)
class Homes:
    """For each value the one in whose place it lies (itself, unless it is a view or written over another), the places
    that are the caller's or constants', and the copies.
    """

    root: Mapping[str, str]
    fixed: Mapping[str, Place]
    copies: tuple[Copy, ...]


def bytes_of(value: Value) -> int:
    """The bytes of a value's elements."""
    return prod(value.shape) * value.dtype.bytes


def homes(graph: Graph, shared: Mapping[str, str]) -> Homes:
    """`shared` names for each result that is a view, or written over an operand, the value whose place it has."""
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
