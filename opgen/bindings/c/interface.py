"""The binary interface of a library for compiled callers: constants, structs and functions, and its number.

The headers are rendered from these, so the number follows from the declarations alone: comments and the order of
independent declarations do not change it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from opgen.bindings.c.text import WIDTH

ABI = 2
"""Version of the rules that declarations do not show (the form of "not given", say); it begins the package version."""
MESSAGE_SIZE = 4096
"""The most bytes of a message, its NUL included."""

WRONG_ABI = (
    "expected a library of interface 0x%016llx, for which the program was compiled, given one of 0x%016llx; "
    "take the header and the library of one build"
)
"""Message about a wrong interface number, as a format of C."""


@dataclass(frozen=True)
class Enumerator:
    """A named number, and its meaning."""

    name: str
    value: int
    doc: str = ""


@dataclass(frozen=True)
class Struct:
    """A struct by its name, with the declarations of its fields in their order."""

    name: str
    fields: tuple[str, ...]


@dataclass(frozen=True)
class Function:
    """An exported function."""

    result: str
    name: str
    parameters: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return the declaration on one line."""
        return f"{self._head}({', '.join(self._taken)});"

    def declared(self, api: str) -> str:
        """Return the declaration for a word: on one line if it fits, else with a parameter on each."""
        line = f"{api} {self.text}"
        return line if len(line) <= WIDTH else f"{api} {self._head}(\n    " + ",\n    ".join(self._taken) + ");"

    @property
    def _head(self) -> str:
        return f"{self.result}{'' if self.result.endswith('*') else ' '}{self.name}"

    @property
    def _taken(self) -> tuple[str, ...]:
        return self.parameters or ("void",)


@dataclass(frozen=True)
class Interface:
    """All of a library that callers are compiled against."""

    constants: tuple[Enumerator, ...]
    structs: tuple[Struct, ...]
    functions: tuple[Function, ...]
    facts: tuple[str, ...] = ()
    """Other facts that must be equal, such as the shapes of tensors that are passed by a pointer only."""

    @property
    def number(self) -> int:
        """Return 64 bits that identify all of it: the beginning of a hash."""
        text = "\n".join((f"opgen {ABI}", *sorted(self._lines())))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")

    @property
    def version(self) -> str:
        """Return the number as C has it."""
        return f"UINT64_C(0x{self.number:016x})"

    def _lines(self) -> Iterable[str]:
        yield from (f"{c.name} = {c.value}" for c in self.constants)
        yield from (f"struct {s.name} {{ {' '.join(s.fields)} }}" for s in self.structs)
        yield from (f.text for f in self.functions)
        yield from self.facts


def message_parameters(size: str = "message_size") -> tuple[str, str]:
    """Return the last parameters of a function that writes its message into the caller's memory."""
    return "char *message", f"size_t {size}"
