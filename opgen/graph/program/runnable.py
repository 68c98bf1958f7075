"""What is to be known of a program to run it, and nothing of what it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from opgen.graph.ir.values import Value

ENTRY = "opgen_program"
"""The name of the entry in its object code."""


@dataclass(frozen=True)
class NodeStep:
    """A launch of an entry, for people: the name of its node and of the op, the number of its kernel, and whether
    threads share its work.
    """

    node: str
    op: str
    kernel: int
    shared: bool


@dataclass(frozen=True)
class Runnable:
    """`inputs`, `weights` (constants) and `outputs` as the caller knows them; `nodes` tells for each launch of the
    entry, whose object code is `code`, the node whose kernel it is, by number.  `arena` are the bytes that a run takes,
    `part` those that each thread needs behind them; `bound` is the largest sum of bytes needed at one step.

    `in_place` are by node the positions of operands, each with that of the result that is written over it; without them
    `arena` would be `apart`.
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
        """The bytes of the arena of a run by so many threads."""
        return self.arena + threads * self.part
