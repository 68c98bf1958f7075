"""The part of a program that a run needs, without its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from opgen.graph.ir.values import Value

ENTRY = "opgen_program"
"""The name of the entry in its object code."""


@dataclass(frozen=True)
class NodeStep:
    """A launch of an entry, for people.

    It has the names of its node and op, the number of its kernel, and whether threads share its work.
    """

    node: str
    op: str
    kernel: int
    shared: bool


@dataclass(frozen=True)
class Runnable:
    """The part of a program that a run needs.

    `inputs`, `weights` (constants) and `outputs` are as the caller knows them.  `nodes` has for each launch of the
    entry the number of its node; `code` is the entry's object code.  `arena` is the number of bytes that a run takes,
    `part` the bytes behind them for each thread.  `bound` is the largest sum of bytes needed at one step.  `in_place`
    has by node the positions of operands, each with that of the result that is written over it; without them `arena`
    would be `apart`.
    """

    name: str
    inputs: tuple[Value, ...]
    weights: tuple[Value, ...]
    outputs: tuple[Value, ...]
    nodes: tuple[int, ...]
    arena: int
    part: int
    bound: int
    in_place: Mapping[int, tuple[tuple[int, int], ...]]
    apart: int
    code: bytes

    def arena_bytes(self, threads: int) -> int:
        """Return the bytes of the arena of a run with this number of threads."""
        return self.arena + threads * self.part
