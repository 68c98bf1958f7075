"""The inner loop of a kernel, found in its assembly."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_COMMENT = re.compile(r"\s*(?:#|//) .*$")
_LABEL = re.compile(r"^(\.?\w+):(?:\s*(?:#|//) %\"?(\w+)\.body)?")
_JUMP = re.compile(r"^\t(?:j\w+|b(?:\.\w+)?|cbn?z|tbn?z)\t(?:.*,\s*)?(\.?\w+)\s*$")
_VECTOR = re.compile(r"%[xyz]mm\d+|\b[vz]\d+\.")
_COPY = re.compile(r"\tv?p?(?:mov|xor|broadcast|insert|extract|ld|st|dup)")
_NUMBER = re.compile(r"\d+")
_ON_STACK = re.compile(r"\(%rsp\)|\[sp[,\]]")


@dataclass(frozen=True)
class InnerLoop:
    """A loop in assembly: its lines, the vector registers that it uses, and its stack accesses (spills).

    `name` is the variable of the loop IR; empty if it is not known.
    """

    lines: tuple[str, ...]
    registers: int
    spills: int
    name: str = ""

    def __str__(self) -> str:
        return "\n".join(self.lines) + "\n"


def inner_loop(assembly: str, counts: Mapping[str, float]) -> InnerLoop | None:
    """Return the innermost loop with the most vector arithmetic, and so the most time; None without loops.

    Labels of `assembly` have comments with the names of their blocks.  By these names `counts` has the number of
    iterations of a loop; a loop that it does not have counts once.
    """
    lines = assembly.splitlines()
    labels: dict[str, int] = {}
    names: dict[int, str] = {}
    loops: list[range] = []
    for number, line in enumerate(lines):
        if label := _LABEL.match(line):
            labels[label[1]] = number
            if label[2]:
                names[number] = label[2]
        elif (jump := _JUMP.match(_COMMENT.sub("", line))) and jump[1] in labels:
            loops.append(range(labels[jump[1]], number + 1))
    inner = [r for r in loops if not any(o != r and o.start >= r.start and o.stop <= r.stop for o in loops)]
    found = [_looked_at(lines[r.start : r.stop], next((names[n] for n in r if n in names), "")) for r in inner]
    return max(found, key=lambda loop: _arithmetic(loop, counts.get(loop.name, 1)), default=None)


def _arithmetic(loop: InnerLoop, count: float) -> tuple[float, float]:
    """Return the number of executed vector instructions that are neither copies nor zeros, and of all lines."""
    found = sum(bool(_VECTOR.search(line)) and not _COPY.match(line) for line in loop.lines)
    return count * found, count * len(loop.lines)


def _looked_at(commented: list[str], name: str) -> InnerLoop:
    lines = tuple(line for line in (_COMMENT.sub("", line) for line in commented) if line.strip())
    named = (_NUMBER.search(register) for line in lines for register in _VECTOR.findall(line))
    registers = {number[0] for number in named if number is not None}
    return InnerLoop(lines, len(registers), sum(bool(_ON_STACK.search(line)) for line in lines), name)
