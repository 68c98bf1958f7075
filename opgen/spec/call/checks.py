"""Checks of a call, derived from an op: one list, in the order in which a wrong call is refused.

`shapes.py` interprets the list; the bindings of every language print it.  Types and attributes are checked before it
(`arguments.py`); the shapes of the results are computed after it.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from opgen.diagnostics import InternalError
from opgen.spec.model.model import Dimension, OpSpec, Require, ShapeLet, Sizes, Tensor
from opgen.spec.resolve.dimensions import told_elsewhere

Factors: TypeAlias = Sequence[str | int]
"""A product of symbols and numbers."""


@dataclass(frozen=True, slots=True)
class Size:
    """Size from the caller: of a tensor's dimension, or an element of a vector of sizes (`vector`).

    `position` counts logical dimensions; `layout` is the attribute that orders them for the caller.
    """

    argument: str
    position: int
    layout: str | None
    dim: Dimension
    vector: bool

    @property
    def symbol(self) -> str | None:
        """Symbol of the dimension, or None if it is not a single symbol."""
        factors = self.dim.factors
        return factors[0] if len(factors) == 1 and isinstance(factors[0], str) else None


@dataclass(frozen=True, slots=True)
class Rank:
    """A tensor has its number of dimensions."""

    tensor: Tensor


@dataclass(frozen=True, slots=True)
class Length:
    """A vector of sizes has the length of one of its forms, and no negative element."""

    vector: Sizes


@dataclass(frozen=True, slots=True)
class Keep:
    """The size of a dimension that broadcasts is kept as the caller gave it: 1, or the symbol's value."""

    size: Size


@dataclass(frozen=True, slots=True)
class Fix:
    """A symbol has the value that the form of a vector of sizes fixes."""

    symbol: str
    value: int


@dataclass(frozen=True, slots=True)
class Name:
    """A symbol is a size."""

    symbol: str
    size: Size


@dataclass(frozen=True, slots=True)
class Stretch:
    """A symbol is the first of some sizes that is not 1; the last, if all are."""

    symbol: str
    sizes: tuple[Size, ...]


@dataclass(frozen=True, slots=True)
class Factor:
    """A symbol is a size divided by the product of `others`; the size must be a multiple of it."""

    symbol: str
    size: Size
    others: Factors


@dataclass(frozen=True, slots=True)
class Same:
    """A size is the product of its factors, which are known; or 1, if it broadcasts."""

    size: Size


Step: TypeAlias = Keep | Fix | Name | Stretch | Factor | Same


@dataclass(frozen=True, slots=True)
class Case:
    """Steps for one choice of a form, by its number, for every vector of sizes."""

    forms: Mapping[str, int]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Solve:
    """Sizes are solved for symbols, and compared with products: the steps of one case."""

    cases: tuple[Case, ...]

    def of(self, forms: Mapping[str, int]) -> tuple[Step, ...]:
        """Return the steps of the case that a call is."""
        return next(case.steps for case in self.cases if case.forms == forms)


@dataclass(frozen=True, slots=True)
class Compare(Solve):
    """Sizes are compared with products of the op's lets."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A tensor has the shape that follows for it from the rest."""

    tensor: Tensor


Check: TypeAlias = Rank | Length | Solve | Compare | ShapeLet | Require | Whole


def checks(op: OpSpec) -> tuple[Check, ...]:
    """Return the checks of an op's calls."""
    return _made(_Held(op))


class _Held:
    """Op as a cache key by identity: comparing ops by value takes longer than deriving their checks."""

    def __init__(self, op: OpSpec) -> None:
        self.op = op

    def __hash__(self) -> int:
        return id(self.op)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and self.op is other.op


@functools.lru_cache(maxsize=256)
def _made(held: _Held) -> tuple[Check, ...]:
    return tuple(_checks(held.op))


def _checks(op: OpSpec) -> Iterator[Check]:
    for given in op.inputs:
        yield Rank(given) if isinstance(given, Tensor) else Length(given)
    vectors = [i for i in op.inputs if isinstance(i, Sizes)]
    choices = list(itertools.product(*(range(len(v.forms)) for v in vectors)))
    solvers = [_Solver(op, {v.name: form for v, form in zip(vectors, choice, strict=True)}) for choice in choices]
    yield Solve(tuple(Case(s.forms, s.before_lets()) for s in solvers))
    yield from op.checks
    yield Compare(tuple(Case(s.forms, s.after_lets()) for s in solvers))
    yield from (Whole(t) for t in op.tensors if t.follows)


def symbols(op: OpSpec) -> list[str]:
    """Return the dimensions and named integers of an op, in the order in which they come up."""
    found: dict[str, None] = {}
    for given in op.inputs:
        forms = given.forms if isinstance(given, Sizes) else () if given.follows else (given.dims,)
        for dim in (d for form in forms for d in form):
            found.update(dict.fromkeys(f for f in dim.factors if isinstance(f, str)))
        if isinstance(given, Sizes):
            found.update(dict.fromkeys(symbol for fixed in given.bindings for symbol, _ in fixed))
    for check in op.checks:
        if isinstance(check, ShapeLet):
            found.update(dict.fromkeys(check.names))
    return list(found)


class _Solver:
    """Solver for the dimensions of an op, with one form chosen for every vector of sizes."""

    def __init__(self, op: OpSpec, forms: Mapping[str, int]) -> None:
        self.op = op
        self.forms = forms
        self.lets = {n for c in op.checks if isinstance(c, ShapeLet) for n in c.names}
        self.known = set(self.lets)
        self.steps: list[Step] = []
        self.given = list(self._sizes())
        self.following = {t.name for t in op.tensors if t.follows}

    def _sizes(self) -> Iterator[Size]:
        for given in self.op.inputs:
            if isinstance(given, Tensor):
                dims, layout = given.dims, given.layout
            else:
                form = self.forms[given.name]
                dims, layout = given.forms[form], given.layouts[form]
            for position, dim in enumerate(dims):
                yield Size(given.name, position, layout, dim, isinstance(given, Sizes))

    def _waits(self, size: Size) -> bool:
        """True if a size is compared with values of the op's lets."""
        return any(f in self.lets for f in size.dim.factors)

    def after_lets(self) -> tuple[Step, ...]:
        """Return the steps after the op's own lets and requirements."""
        return tuple(Same(s) for s in self.given if self._waits(s) and s.argument not in self.following)

    def before_lets(self) -> tuple[Step, ...]:
        """Return the steps before the op's lets and requirements.

        Symbols are fixed and named input by input; the others are solved for afterwards.  Sizes of tensors whose shapes
        follow are used only if a symbol would stay unknown.
        """
        self.steps += [Keep(s) for s in self.given if s.dim.broadcast]
        for vector in (i for i in self.op.inputs if isinstance(i, Sizes) and i.bindings):
            for symbol, value in vector.bindings[self.forms[vector.name]]:
                self._solved(Fix(symbol, value))
        plain = [s for s in self.given if not self._waits(s)]
        following = [s for s in plain if s.argument in self.following]
        waiting = self._named([s for s in plain if s.argument not in self.following])
        waiting = self._settled(self._stretched(waiting, following))
        while (last := next((s for s in following if len(self._unknown(s)) == 1), None)) is not None:
            self._used(last)
            waiting = self._settled(waiting)
        if waiting:
            names = ", ".join(str(s.dim.factors) for s in waiting)
            raise InternalError(f"op {self.op.name}: dimensions {names} are not determined")
        return tuple(self.steps)

    def _solved(self, step: Fix | Name | Stretch | Factor) -> None:
        self.steps.append(step)
        self.known.add(step.symbol)

    def _named(self, sizes: list[Size]) -> list[Size]:
        """Name the sizes that are symbols, but for those that broadcast somewhere; return the other sizes."""
        stretching = {s.symbol for s in sizes if s.dim.broadcast}
        waiting = []
        for size in sizes:
            if size.symbol is None or size.symbol in self.known or size.symbol in stretching:
                waiting.append(size)
            else:
                self._solved(Name(size.symbol, size))
        return waiting

    def _stretched(self, sizes: list[Size], following: list[Size]) -> list[Size]:
        """Solve for symbols that only broadcasting sizes determine; return the remaining sizes."""
        elsewhere = told_elsewhere([s.dim for s in sizes], [s.dim for s in following], self.known)
        alone = []
        for symbol in dict.fromkeys(s.symbol for s in sizes if s.dim.broadcast):
            if symbol is None or symbol in self.known or symbol in elsewhere:
                continue
            members = [s for s in sizes if s.symbol == symbol]
            firm = next((i for i, s in enumerate(members) if not s.dim.broadcast), len(members) - 1)
            self._solved(Stretch(symbol, tuple(members[: firm + 1])))
            alone += members if len(members) == 1 else []
        return [s for s in sizes if s not in alone]

    def _settled(self, waiting: list[Size]) -> list[Size]:
        """Use sizes, round after round, until those left have several unknown factors each; return those."""
        while waiting:
            rest = [s for s in waiting if not self._used(s)]
            if len(rest) == len(waiting):
                break
            waiting = rest
        return waiting

    def _unknown(self, size: Size) -> list[str]:
        return [f for f in size.dim.factors if isinstance(f, str) and f not in self.known]

    def _used(self, size: Size) -> bool:
        """Compare a size, or solve for its one unknown factor; return False while that cannot be done."""
        unknown = self._unknown(size)
        if len(unknown) > 1 or (unknown and size.dim.broadcast):
            return False
        if not unknown:
            self.steps.append(Same(size))
        elif size.symbol is not None:
            self._solved(Name(size.symbol, size))
        else:
            self._solved(Factor(unknown[0], size, tuple(f for f in size.dim.factors if f != unknown[0])))
        return True


def product(factors: Factors) -> str:
    """Return a product as messages write it."""
    return " * ".join(map(str, factors))
