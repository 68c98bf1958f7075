"""Numbers of things and bytes, for people; and the memory that a program takes."""

from __future__ import annotations

from math import prod

from opgen.graph.program.runnable import Runnable

UNIT = 1024.0
MOST = 10**300
"""Largest number that is printed; larger ones print as this: an integer may exceed the range of a float."""


def memory(program: Runnable, threads: int) -> list[str]:
    """Return lines on the memory that a program takes."""
    weights = weight_bytes(program)
    arena = program.arena_bytes(threads)
    found = [
        f"weights  {amount(weights)} in {count(len(program.weights), 'constant')}",
        f"arena    {amount(arena)} for {count(threads, 'thread')}; {amount(program.bound)} are needed at once at most",
    ]
    if program.in_place:
        over = count(sum(map(len, program.in_place.values())), "result")
        found.append(
            f"in place {over} over operands; else the arena would take {amount(program.apart - program.arena)} more"
        )
    return found


def weight_bytes(program: Runnable) -> int:
    """Return the number of bytes of a program's constants."""
    return sum(prod(v.shape) * v.dtype.bytes for v in program.weights)


def amount(size: float) -> str:
    """Return bytes as text, in the unit that leaves few digits."""
    size = min(size, MOST)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < UNIT:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.{2 if unit == 'GiB' else 1}f} {unit}"
        size /= UNIT
    return f"{size:,.2f} TiB"


def count(number: int, thing: str) -> str:
    """Return a count as text: `1 node`, `2 nodes`."""
    return f"{number} {thing}{'' if number == 1 else 's'}"
