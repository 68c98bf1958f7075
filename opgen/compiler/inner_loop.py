"""The inner loop of a kernel, found in its assembly."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LABEL = re.compile(r"^(\.?\w+):")
_JUMP = re.compile(r"^\t(?:j\w+|b(?:\.\w+)?|cbn?z|tbn?z)\t(?:.*,\s*)?(\.?\w+)\s*$")
_VECTOR = re.compile(r"%[xyz]mm\d+|\b[vz]\d+\.")
_COPY = re.compile(r"\tv?p?(?:mov|xor|broadcast|insert|extract|ld|st|dup)")
_NUMBER = re.compile(r"\d+")
_ON_STACK = re.compile(r"\(%rsp\)|\[sp[,\]]")


@dataclass(frozen=True)
class InnerLoop:
    """A loop of assembly: its lines, the vector registers that it uses, and its accesses of the stack (spills)."""

    lines: tuple[str, ...]
    registers: int
    spills: int

    def __str__(self) -> str:
        return "\n".join(self.lines) + "\n"


def inner_loop(assembly: str) -> InnerLoop | None:
    """Return the innermost loop with most vector arithmetic; None if there is no loop.

    It is where a kernel spends its time if its loops run about equally often.
    """
    lines = assembly.splitlines()
    labels: dict[str, int] = {}
    loops: list[range] = []
    for number, line in enumerate(lines):
        if label := _LABEL.match(line):
            labels[label[1]] = number
        elif (jump := _JUMP.match(line)) and jump[1] in labels:
            loops.append(range(labels[jump[1]], number + 1))
    inner = [r for r in loops if not any(o != r and o.start >= r.start and o.stop <= r.stop for o in loops)]
    found = [tuple(line for line in lines[r.start : r.stop] if line.strip()) for r in inner]
    return None if not found else _looked_at(max(found, key=_arithmetic))


def _arithmetic(lines: tuple[str, ...]) -> tuple[int, int]:
    """The vector instructions that are neither copies nor zeros, and all lines."""
    return sum(bool(_VECTOR.search(line)) and not _COPY.match(line) for line in lines), len(lines)


def _looked_at(lines: tuple[str, ...]) -> InnerLoop:
    named = (_NUMBER.search(name) for line in lines for name in _VECTOR.findall(line))
    registers = {number[0] for number in named if number is not None}
    return InnerLoop(lines, len(registers), sum(bool(_ON_STACK.search(line)) for line in lines))
