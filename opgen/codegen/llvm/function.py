"""State of a module, and of one of its functions, while they are emitted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from opgen.codegen.llvm.target import Target
from opgen.codegen.llvm.types import Value
from opgen.codegen.llvm.writer import Writer
from opgen.diagnostics import InternalError
from opgen.loop.analysis.tiles import Operation
from opgen.loop.nodes import Buffer, Expr

Poly: TypeAlias = dict[tuple[str, ...], int]
"""A polynomial over int64 values: products of value names (in order of definition) to coefficients; never mutated."""


class Lanes(NamedTuple):
    """An int64 in each lane k: base + k * step + the sum of value[k] * factor over `rest` + `fixed[k]`, if any."""

    base: Poly
    step: Poly
    rest: tuple[tuple[Value, Poly], ...] = ()
    fixed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Memory:
    """A buffer in a function: its pointer, the distance of neighbours in each dimension (elements), its promises.

    `alignment` is that of the pointer in bytes; nothing stores to a `readonly` one while the function runs.
    """

    ref: str
    buffer: Buffer
    strides: tuple[Poly, ...]
    alignment: int
    readonly: bool


@dataclass(frozen=True, slots=True)
class Threads:
    """The pointer to parallel_for and the number of threads, as value names."""

    parallel_for: str
    count: str


@dataclass(frozen=True, slots=True)
class Room:
    """Workspace of the caller's for buffers on the heap, as value names.

    The names are those of the beginning of the free part, of the parts of a parallel loop's threads, and of the bytes
    of each.
    """

    top: str
    parts: str
    part_bytes: str


@dataclass
class Tiles:
    """A buffer in tile registers: the loop nests on it by identity, and the register of each tile.

    It also has the contents of the registers for operands, least recently used first.
    """

    buffer: str
    operations: dict[int, Operation]
    registers: dict[tuple[int, ...], int]
    configuration: bytes
    held: dict[object, int] = field(default_factory=dict)

    def forget(self) -> None:
        """Forget values after memory may have changed, or another branch have been taken."""
        self.held.clear()


@dataclass(slots=True)
class Module:
    """Functions in the order in which they are printed, and the declarations and helpers they need, by name."""

    name: str
    target: Target
    functions: list[str] = field(default_factory=list)
    helpers: dict[str, str] = field(default_factory=dict)
    declarations: dict[str, str] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)

    def declare(self, name: str, text: str) -> str:
        """Declare an external function once and give its symbol."""
        self.declarations.setdefault(name, f"declare {text}")
        return f"@{name}"

    def symbol(self, hint: str) -> str:
        """Return a fresh symbol for an internal function of this kernel, without its sigil."""
        count = self.names.get(hint, 0)
        self.names[hint] = count + 1
        return f"{self.name}.{hint}.{count}" if count else f"{self.name}.{hint}"


@dataclass(slots=True)
class Function:
    """A function being written.

    It has the values of its variables and buffers, the heap blocks it must free, and the buffers it loads from.  It has
    the elements' numbers at some indices, and their pointers, while the variables and the branch stay the same (at
    `fixed` indices always).  It has the buffer that is in tile registers, and the configuration of these at the
    function's entry.

    `evaluate` emits an expression; it is here so that addressing and arithmetic can use each other without importing
    each other.  `threads` is None where parallel loops run serially, `room` where buffers come from the C library.
    `report` is the place for a check's reported value; None without a check.
    """

    module: Module
    evaluate: Callable[[Function, Expr], Value]
    threads: Threads | None = None
    room: Room | None = None
    writer: Writer = field(default_factory=Writer)
    values: dict[str, Value] = field(default_factory=dict)
    polys: dict[str, Poly] = field(default_factory=dict)
    named: dict[str, Expr] = field(default_factory=dict)
    memories: dict[str, Memory] = field(default_factory=dict)
    live: list[str] = field(default_factory=list)
    loaded: set[str] = field(default_factory=set)
    places: dict[object, tuple[Lanes, int]] = field(default_factory=dict)
    fixed: dict[object, tuple[Lanes, int]] = field(default_factory=dict)
    addresses: dict[tuple[str, int], tuple[Poly, str, int]] = field(default_factory=dict)
    tiles: Tiles | None = None
    configured: bytes | None = None
    report: str | None = None

    def move(self) -> None:
        """Forget known places: an instruction written in a branch or a loop may not dominate the following code."""
        self.places.clear()
        self.addresses.clear()
        if self.tiles is not None:
            self.tiles.forget()

    def value(self, e: Expr) -> Value:
        return self.evaluate(self, e)

    def memory(self, name: str) -> Memory:
        if name not in self.memories:
            raise InternalError(f"buffer {name} is not in scope")
        return self.memories[name]

    def variable(self, name: str) -> Value:
        if name not in self.values:
            raise InternalError(f"variable {name} is not in scope")
        return self.values[name]
