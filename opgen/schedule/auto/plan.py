"""A plan: all decisions about one loop nest, before a step is taken.  Data only; `realise.py` makes steps of it.

A plan refers to loops by handles, never by the names that they will have in a kernel:

    k       a loop of the loop nest
    k.o     a piece of one that is cut: `k by 64 -> k.o, k.i`
    y*x     two loops that are joined, as both advance row by row

Kinds therefore need no kernel to propose a plan, and nothing depends on how a fresh name is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from opgen.schedule.split import Tail

Handle: TypeAlias = str


@dataclass(frozen=True)
class Cut:
    """A loop, or a piece of one, cut into pieces of `size`.

    `apart` lists the peeled iterations: n of the first, or -n of the last.
    """

    loop: Handle
    size: int
    outer: Handle
    inner: Handle
    tail: Tail = "exact"
    apart: tuple[int, ...] = ()

    @staticmethod
    def even(loop: Handle, extent: int, size: int, first: bool = False) -> Cut:
        """Cut a loop into pieces; the last is peeled if it is shorter, and so is the `first` if requested."""
        exact = extent % size == 0
        apart = (*((1,) if first else ()), *(() if exact else (-1,)))
        return Cut(loop, size, f"{loop}.o", f"{loop}.i", "exact" if exact else "min", apart)

    def __str__(self) -> str:
        notes = [*([] if self.tail == "exact" else [self.tail]), *(f"{n} apart" for n in self.apart)]
        tail = f" ({', '.join(notes)})" if notes else ""
        return f"{self.loop} by {self.size} -> {self.outer}, {self.inner}{tail}"


@dataclass(frozen=True)
class Carried:
    """A loop of the sum outside of those over results from `at` inwards: partial sums are kept in the results."""

    term: Handle
    at: Handle

    def __str__(self) -> str:
        return f"{self.term} outside of {self.at}"


@dataclass(frozen=True)
class Skewed:
    """A loop of the sum that runs over `term + factor*inner` instead, if that is legal.

    It then runs over the elements that are read; each serves all results along `inner`.  Its handle is that of the loop
    that replaces it.
    """

    term: Handle
    inner: Handle
    factor: int

    def __str__(self) -> str:
        return f"{self.term} + {self.factor}*{self.inner}"


@dataclass(frozen=True)
class Ahead:
    """Prefetch of a buffer's elements for the next iteration of `at`, line by line in the loop `inside`."""

    buffer: str
    at: Handle
    inside: Handle

    def __str__(self) -> str:
        return f"{self.buffer} one {self.at} ahead in {self.inside}"


@dataclass(frozen=True)
class Ends:
    """A loop that conditions depend on.

    `at` lists the peeled iterations: n of the first, or -n of the last.  If it is empty, the loop is unrolled.
    """

    loop: Handle
    at: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.loop} {'unrolled' if not self.at else ', '.join(map(str, self.at))}"


@dataclass(frozen=True)
class Private:
    """A reduction of `terms` terms (None: not known) into `sums`, in contiguous partial results.

    They are up to `chains` vectors of `lanes`, which a tree adds up.
    """

    term: Handle
    terms: int | None
    sums: str
    lanes: int
    chains: int

    def __str__(self) -> str:
        return f"{self.term} in up to {self.chains} vectors of {self.lanes}"


@dataclass(frozen=True)
class Waiting:
    """Accumulators spilled to memory, and kept in registers in each iteration of `at`."""

    sums: str
    at: Handle

    def __str__(self) -> str:
        return f"{self.sums} in registers at {self.at}"


@dataclass(frozen=True)
class Running:
    """The steps of a running sum in vectors of `lanes`; each vector is summed in registers.

    If `block` is not 0, the steps are in blocks of `block` (handle `step.o`); each block knows the sum before it.
    """

    step: Handle
    lanes: int
    block: int = 0

    def __str__(self) -> str:
        return f"{self.step} in vectors of {self.lanes}{f', blocks of {self.block}' if self.block else ''}"


@dataclass(frozen=True)
class Operand:
    """A copy of a buffer that is read or written.

    A `copy` is of the whole buffer.  A `panel` holds the elements that one iteration of `at` accesses, with its
    dimensions in `order`.  A `moved` copy was made before, and moves to `at`.  The copy is made in transposed squares,
    or in rows of vectors of `lanes`.  If there is a loop `filled`, each row is made where that loop first reads it.
    With `wide` the copy has the type that is computed with.  Its name ends in `ending`.
    """

    buffer: str
    placement: Literal["copy", "panel", "moved"]
    order: tuple[int, ...] = ()
    at: Handle | None = None
    ending: str = "packed"
    lanes: int = 0
    filled: Handle | None = None
    wide: bool = False

    @staticmethod
    def in_rows(buffer: str, rank: int, at: Handle, lanes: int, filled: Handle | None = None) -> Operand:
        """Return a panel with unchanged dimensions, in vectors, in the type that is computed with."""
        return Operand(buffer, "panel", tuple(range(rank)), at, "panel", lanes, filled, wide=True)

    def __str__(self) -> str:
        where = self.placement if self.at is None else f"{self.placement} at {self.at}"
        return f"{self.buffer} {where} {list(self.order) if self.order else ''}".rstrip()


@dataclass(frozen=True)
class Result:
    """A store of a result in another way than plainly.

    It has another `order` and is transposed at the end of each iteration of `at`, or is `non_temporal`.
    """

    buffer: str
    order: tuple[int, ...] = ()
    at: Handle | None = None
    non_temporal: bool = False

    def __str__(self) -> str:
        transposed = f" transposed at {self.at}" if self.at is not None else ""
        return f"{self.buffer}{transposed}{' non-temporal' if self.non_temporal else ''}"


@dataclass(frozen=True)
class Plan:
    """All decisions about one loop nest.

    `joins` are loops made of two, in that order.  `order` holds the loops outside of the sum's, outermost first,
    without the lanes.  `terms` are the loops of the sum and those between them, some of them `unrolled`.  `regrouped`
    loops of the sum go inside others that they hold.  `tile` holds the unrolled loops inside of the terms.  Inside of
    these, `matrix` holds the rows, columns and terms of a tile for a matrix unit.  `squares` are two pieces of the same
    size that are transposed in registers.  `threads` are loops that threads share, fused if they are independent.
    `merged` are the loops of preceding loop nests, each of whose iterations is followed by that of the outermost loop.
    `ends` are peeled or unrolled for conditions, each if that is legal.  A late plan (`otherwise`) is tried only if no
    other is legal.
    """

    kind: str
    lanes: Handle | None = None
    joins: tuple[Handle, ...] = ()
    cuts: tuple[Cut, ...] = ()
    order: tuple[Handle, ...] = ()
    carried: tuple[Carried, ...] = ()
    regrouped: tuple[tuple[Handle, Handle], ...] = ()
    terms: tuple[Handle, ...] = ()
    skewed: tuple[Skewed, ...] = ()
    unrolled: tuple[Handle, ...] = ()
    tile: tuple[Handle, ...] = ()
    private: tuple[Private, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    matrix: tuple[Handle, ...] = ()
    squares: tuple[Handle, Handle] | None = None
    ahead: tuple[Ahead, ...] = ()
    operands: tuple[Operand, ...] = ()
    results: tuple[Result, ...] = ()
    threads: tuple[Handle, ...] = ()
    running: tuple[Running, ...] = ()
    merged: tuple[str, ...] = ()
    ends: tuple[Ends, ...] = ()
    otherwise: bool = False

    def __str__(self) -> str:
        return " | ".join(part for part in self._parts() if part)

    def _parts(self) -> Iterator[str]:
        yield f"lanes {self.lanes}" if self.lanes else ""
        for name in _LISTS:
            values = getattr(self, name)
            yield f"{_WORDS.get(name, name)} {', '.join(map(str, values))}" if values else ""
        yield from (f"{loop} inside {other}" for loop, other in self.regrouped)
        yield f"squares {', '.join(self.squares)}" if self.squares else ""
        yield from map(str, (*self.operands, *self.results))
        yield f"threads {', '.join(self.threads)}" if self.threads else ""


_LISTS = (
    *("joins", "cuts", "order", "carried", "terms", "skewed", "unrolled", "tile", "matrix"),
    *("private", "running", "waiting", "ahead", "merged", "ends"),
)
_WORDS: Mapping[str, str] = {
    "joins": "join",
    "cuts": "cut",
    "private": "partial sums",
    "running": "running sums",
    "ahead": "prefetch",
    "merged": "right after",
}
