"""The text of one LLVM function while it is written.

Every value and block has a name made of a hint and, from the second time on, a number: the same kernel gives the same
bytes.  Instructions without effects go through `pure`.  It returns the earlier value if the same instruction dominates.
Otherwise it writes a new one before the outermost loop in which its operands do not change: unrolled code shares its
address arithmetic, and LLVM has less to read and nothing to move.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

_VALUES = re.compile(r"%[\w.]+")
_DEPTH = 32
"""Bits of a value's number below the loops around it."""


class Multiple(NamedTuple):
    """`value` is `factor` times `of`, by the instruction in a line."""

    value: str
    of: str
    factor: int
    line: int


class Loop(NamedTuple):
    """State of a loop: the lines before its first instruction and the number of scopes around it.

    It also has the multiples made in its body, and the loops in it.
    """

    before: list[str]
    scopes: int
    multiples: list[Multiple]
    inner: list[Loop]


class Writer:
    """Lines of a function; `order` numbers the values, those of outer loops first, then as they were defined."""

    def __init__(self) -> None:
        self.order: dict[str, int] = {}
        self.block = "entry"
        self._lines: list[str] = []
        self._before: dict[int, list[str]] = {}
        self._loops: list[Loop] = []
        self._allocas: list[str] = []
        self._counts: dict[str, int] = {}
        self._known: dict[Hashable, str] = {}
        self._scopes: list[list[Hashable]] = [[]]
        self.name("entry")

    def name(self, hint: str) -> str:
        """Return a fresh name, without its sigil.  Hints have no numeric part, so `hint.number` is never taken."""
        count = self._counts.get(hint, 0)
        self._counts[hint] = count + 1
        return f"{hint}.{count}" if count else hint

    def value(self, hint: str) -> str:
        """Return a fresh value name, to be defined by the caller."""
        return self._value(hint, len(self._loops))

    def _value(self, hint: str, depth: int) -> str:
        ref = "%" + self.name(hint)
        self.order[ref] = (depth << _DEPTH) + len(self.order)
        return ref

    def depth(self, ref: str) -> int:
        """Return the number of loops around a value."""
        return self.order[ref] >> _DEPTH

    def line(self, text: str) -> None:
        self._lines.append("  " + text)

    def define(self, hint: str, text: str) -> str:
        """Return an instruction with a result."""
        ref = self.value(hint)
        self._lines.append(f"  {ref} = {text}")
        return ref

    def pure(self, hint: str, text: str) -> str:
        """Return the result of an instruction that may run at any time, written once for the region it dominates."""
        ref = self._known.get(text)
        if ref is None:
            order = self.order
            depth = max([order[v] for v in _VALUES.findall(text)], default=0) >> _DEPTH
            if depth == len(self._loops):
                ref = self.define(hint, text)
                self.remember(text, ref)
            else:
                loop = self._loops[depth]
                ref = self._value(hint, depth)
                loop.before.append(f"  {ref} = {text}")
                self._known[text] = ref
                self._scopes[loop.scopes - 1].append(text)
        return ref

    def multiple(self, hint: str, of: str, factor: int) -> str:
        """Return an int64 value by a number; as `pure`."""
        line = len(self._lines)
        found = self.pure(hint, f"mul i64 {of}, {factor}")
        if self._loops and line < len(self._lines):
            self._loops[-1].multiples.append(Multiple(found, of, factor, line))
        return found

    def once(self, hint: str, text: str) -> str:
        """Return the result of an instruction without effects that must stay where it is; as `pure` otherwise."""
        ref = self._known.get(text)
        if ref is None:
            ref = self.define(hint, text)
            self.remember(text, ref)
        return ref

    def recall(self, key: Hashable) -> str | None:
        """Return the value that was remembered under a key where it dominates, if any."""
        return self._known.get(key)

    def remember(self, key: Hashable, ref: str) -> None:
        self._known[key] = ref
        self._scopes[-1].append(key)

    def alloca(self, hint: str, text: str) -> str:
        """Return an allocation in the entry block, where LLVM can promote it to registers."""
        ref = self.value(hint)
        self._allocas.append(f"  {ref} = alloca {text}")
        return ref

    def first(self, text: str) -> None:
        """Write a line at the beginning of the function, for an instruction that needs no values."""
        self._allocas.append("  " + text)

    def label(self, name: str) -> None:
        """Begin a block."""
        self._lines.append(f"{name}:")
        self.block = name

    def reserve(self) -> int:
        """Return a line to be filled in later, by its number."""
        self._lines.append("")
        return len(self._lines) - 1

    def fill(self, number: int, *texts: str) -> None:
        self._lines[number] = "\n".join("  " + t for t in texts)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Open a scope whose values do not dominate the following code: `pure` forgets them at the end."""
        self._scopes.append([])
        try:
            yield
        finally:
            for key in self._scopes.pop():
                del self._known[key]

    @contextmanager
    def loop(self) -> Iterator[Loop]:
        """Write a loop, from the branch into it to the end of its body."""
        loop = Loop([], len(self._scopes), [], [])
        if self._loops:
            self._loops[-1].inner.append(loop)
        self._loops.append(loop)
        self._before[len(self._lines)] = loop.before
        try:
            with self.scope():
                yield loop
        finally:
            self._loops.pop()

    def text(self, header: str) -> str:
        """Return the whole function under its header (`define ...`)."""
        lines = [header + " {", "entry:", *self._allocas]
        for number, line in enumerate(self._lines):
            lines += self._before.get(number, ())
            if line:
                lines.append(line)
        return "\n".join([*lines, "}"])
