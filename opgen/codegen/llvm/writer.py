"""The text of one LLVM function while it is written.

Every value and block has a name made of a hint and, from the second time on, a number: the same kernel gives the
same bytes.  Instructions without effects go through `pure`, which returns the earlier value when the same instruction
already stands where it dominates: unrolled code then shares its address arithmetic, and LLVM has less to read.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager


class Writer:
    """Lines of a function; `order` numbers the values in the order in which they were defined."""

    def __init__(self) -> None:
        self.order: dict[str, int] = {}
        self.block = "entry"
        self._lines: list[str] = []
        self._allocas: list[str] = []
        self._counts: dict[str, int] = {}
        self._known: dict[Hashable, str] = {}
        self._undo: list[Hashable] = []
        self.name("entry")

    def name(self, hint: str) -> str:
        """A fresh name, without its sigil.  Hints have no part that is a number, so `hint.number` is never taken."""
        count = self._counts.get(hint, 0)
        self._counts[hint] = count + 1
        return f"{hint}.{count}" if count else hint

    def value(self, hint: str) -> str:
        """A fresh value name, to be defined by the caller."""
        ref = "%" + self.name(hint)
        self.order[ref] = len(self.order)
        return ref

    def line(self, text: str) -> None:
        self._lines.append("  " + text)

    def define(self, hint: str, text: str) -> str:
        """An instruction with a result."""
        ref = self.value(hint)
        self._lines.append(f"  {ref} = {text}")
        return ref

    def pure(self, hint: str, text: str) -> str:
        """The result of an instruction without effects, written once for the region it dominates."""
        ref = self._known.get(text)
        if ref is None:
            ref = self.define(hint, text)
            self.remember(text, ref)
        return ref

    def recall(self, key: Hashable) -> str | None:
        """The value that was remembered under a key where it dominates, if any."""
        return self._known.get(key)

    def remember(self, key: Hashable, ref: str) -> None:
        self._known[key] = ref
        self._undo.append(key)

    def alloca(self, hint: str, text: str) -> str:
        """An allocation in the entry block, where LLVM can promote it to registers."""
        ref = self.value(hint)
        self._allocas.append(f"  {ref} = alloca {text}")
        return ref

    def label(self, name: str) -> None:
        """Begin a block."""
        self._lines.append(f"{name}:")
        self.block = name

    def reserve(self) -> int:
        """A line to be filled in later, by its number."""
        self._lines.append("")
        return len(self._lines) - 1

    def fill(self, number: int, text: str) -> None:
        self._lines[number] = "  " + text

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is written within does not dominate what follows: `pure` forgets it at the end."""
        mark = len(self._undo)
        try:
            yield
        finally:
            for key in self._undo[mark:]:
                del self._known[key]
            del self._undo[mark:]

    def text(self, header: str) -> str:
        """The whole function under its header (`define ...`)."""
        return "\n".join([header + " {", "entry:", *self._allocas, *self._lines, "}"])
