"""A plan: all that is decided of one nest, before a step is taken.  Data only; `realise.py` makes steps of it.

A plan speaks of loops by handles, never by the names that they will have in a kernel:

    k       a loop of the nest
    k.o     a piece of one that is cut: `k by 64 -> k.o, k.i`
    y*x     two loops that are joined, as both walk on row after row

so that kinds need no kernel to propose one, and nothing depends on how a name is made fresh.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from opgen.schedule.split import Tail

Handle: TypeAlias = str


@dataclass(frozen=True)
class Cut:
    """A loop, or a piece of one, in pieces of `size`; `apart`: so many of the first, or of the last (-1), are loops of
    their own.
    """

    loop: Handle
    size: int
    outer: Handle
    inner: Handle
    tail: Tail = "exact"
    apart: tuple[int, ...] = ()

    @staticmethod
    def even(loop: Handle, extent: int, size: int, first: bool = False) -> Cut:
        """A loop in pieces, the last of which may be shorter and is then a loop of its own; so is the `first`, if asked
        for.
        """
        exact = extent % size == 0
        apart = (*((1,) if first else ()), *(() if exact else (-1,)))
        return Cut(loop, size, f"{loop}.o", f"{loop}.i", "exact" if exact else "min", apart)

    def __str__(self) -> str:
        notes = [*([] if self.tail == "exact" else [self.tail]), *(f"{n} apart" for n in self.apart)]
        tail = f" ({', '.join(notes)})" if notes else ""
        return f"{self.loop} by {self.size} -> {self.outer}, {self.inner}{tail}"


@dataclass(frozen=True)
class Carried:
    """A loop of the sum outside of those over results from `at` inwards: sums wait in the results."""

    term: Handle
    at: Handle

    def __str__(self) -> str:
        return f"{self.term} outside of {self.at}"


@dataclass(frozen=True)
class Skewed:
    """A loop of the sum runs over `term + factor*inner` in place of itself, if that is legal: over what is read, each
    element of which serves all results along `inner`.  Its handle is that of the loop that there is then.
    """

    term: Handle
    inner: Handle
    factor: int

    def __str__(self) -> str:
        return f"{self.term} + {self.factor}*{self.inner}"


@dataclass(frozen=True)
class Ahead:
    """What the next iteration of `at` reads of a buffer, asked for line by line in the iterations of a loop inside."""

    buffer: str
    at: Handle
    inside: Handle

    def __str__(self) -> str:
        return f"{self.buffer} one {self.at} ahead in {self.inside}"


@dataclass(frozen=True)
class Ends:
    """A loop of which conditions speak: so many of its first iterations, or of its last (-1), are loops of their own;
    if no number is named it is unrolled.
    """

    loop: Handle
    at: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.loop} {'unrolled' if not self.at else ', '.join(map(str, self.at))}"


@dataclass(frozen=True)
class Private:
    """A reduction of so many terms (None: not known) into `sums` in partial results side by side: up to `chains`
    vectors of `lanes`, which a tree adds up.
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
    """Sums that lie in memory, and in registers in each iteration of `at`."""

    sums: str
    at: Handle

    def __str__(self) -> str:
        return f"{self.sums} in registers at {self.at}"


@dataclass(frozen=True)
class Running:
    """The steps of a running sum in vectors of `lanes`, each of which is summed in registers; if there is a `block`, in
    blocks of so many (handle `step.o`), which know the sum of what is before them.
    """

    step: Handle
    lanes: int
    block: int = 0

    def __str__(self) -> str:
        return f"{self.step} in vectors of {self.lanes}{f', blocks of {self.block}' if self.block else ''}"


@dataclass(frozen=True)
class Operand:
    """What is read, or written, where that is not done in place: a `copy` of it as a whole, or a panel of what one
    iteration of `at` accesses, with its dimensions in `order`; or, `moved` there, a copy that was made before.  It is
    made in squares that are transposed, or in rows of vectors of `lanes`, each where a loop `filled` first reads it, if
    there is one; in the type that is computed with if `wide`.  The copy's name ends in `ending`.
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
        """A panel with dimensions as they are, in vectors, in the type that is computed with."""
        return Operand(buffer, "panel", tuple(range(rank)), at, "panel", lanes, filled, wide=True)

    def __str__(self) -> str:
        where = self.placement if self.at is None else f"{self.placement} at {self.at}"
        return f"{self.buffer} {where} {list(self.order) if self.order else ''}".rstrip()


@dataclass(frozen=True)
class Result:
    """What is stored, where that is not plain: in another `order` and transposed at the end of each iteration of `at`,
    or `non_temporal`: past the caches.
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
    """`joins`: loops made of two, in that order; `order`: the loops outside of the sum's, outermost first, but for the
    lanes; `terms`: those of the sum and what stands between them, some of them `unrolled`; `regrouped`: loops of the
    sum that go inside others that they hold; `tile`: those unrolled inside of the terms; `matrix`: rows, columns and
    terms of a tile for a matrix unit, inside of these; `squares`: two pieces of the same size that are transposed in
    registers; `threads`: loops that threads share, fused as far as they are independent; `merged`: the loops of nests
    before, each iteration of which is followed by that of the outermost loop; `ends`: what is done for conditions, each
    if it is legal.  A plan for want of others (`otherwise`) is tried only if there are none.
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
