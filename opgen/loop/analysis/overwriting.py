"""Proof that a result may overwrite an operand: no element of the operand is read after one is stored there.

Every pair of a load of the operand and a store to the result is examined, together with the loops that enclose both.
The proof has two parts.  In different iterations of these loops they access different elements, so neither the order of
iterations nor running them at once matters.  Within an iteration, the load comes first, or they access different
elements there too.  An element that is computed twice (tiles that overlap) is stored to by two iterations.  The later
one would read the earlier one's result, so these do not access different elements.

The proof is sound and covers plain cases: indices that are sums of multiples of loops' variables.  Sizes may be open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TypeAlias

from opgen.loop.analysis.forms import NOTHING, Form, Known, Variable, digits, form_of, span
from opgen.loop.build import EMPTY
from opgen.loop.nodes import Check, Expr, For, Kernel, Let, Load, Stmt, Store
from opgen.loop.walk import expressions, parts, skeleton, touched, walk_expr

MANY = 1 << 16
"""Pairs of accesses beyond which none are looked at."""

_Loops: TypeAlias = "tuple[tuple[Variable, ...], ...]"
_Place: TypeAlias = "tuple[Form | None, ...]"
"""None for an index that is not a form."""


UNKNOWN = 1 << 62
"""Extent of a loop without a known number: more than any has."""


@dataclass(frozen=True, eq=False)
class _Access:
    """`at` is its number in program order, `loops` the variables of each loop around it, outermost first."""

    at: int
    loops: _Loops
    place: _Place


def may_overwrite(kernel: Kernel, operand: str, result: str) -> bool:
    """Return True if `result` of a kernel may overwrite `operand`, an input."""
    source = next(x for x in kernel.inputs if x.name == operand)
    target = next(x for x in kernel.outputs if x.name == result)
    if (source.dtype, source.shape, source.outside) != (target.dtype, target.shape, target.outside):
        return False
    if any(isinstance(s, Check) for s in skeleton(kernel.body)):  # what a caller gave is still there if one ends it
        return False
    walk = _Walk(operand, result)
    walk.statement(kernel.body, {}, ())
    few = len(walk.loads) * len(walk.stores) <= MANY
    return few and all(_keeps_apart(load, store) for load in walk.loads for store in walk.stores)


# Accesses --------------------------------------------------------------------------------------------------------


@dataclass
class _Walk:
    """The loads of the operand and the stores to the result."""

    operand: str
    result: str
    loads: list[_Access] = field(default_factory=list)
    stores: list[_Access] = field(default_factory=list)
    _count: int = 0

    def statement(self, s: Stmt, known: Known, loops: _Loops) -> None:
        """Go through a statement; `known` are the names around it."""
        if touched(s).isdisjoint((self.operand, self.result)):
            return
        for e in expressions(s):
            for n in walk_expr(e):
                if isinstance(n, Load) and n.buffer == self.operand:
                    self.loads.append(self._access(n.indices, known, loops))
        match s:
            case Store() if s.buffer == self.result:
                self.stores.append(self._access(s.indices, known, loops))
            case For():
                known, loops = self._inside(s, known, loops)
            case Let():
                known = {**known, s.var.name: form_of(s.value, known)}
        for p in parts(s):
            self.statement(p, known, loops)

    def _inside(self, s: For, known: Known, loops: _Loops) -> tuple[Known, _Loops]:
        self._count += 1
        name = f"{s.var} {self._count}"
        start = form_of(s.start, known)
        if start is None:
            return {**known, s.var: None}, (*loops, (Variable(name, UNKNOWN),))
        count = span(start, s.stop, known)
        own = digits(s.var, name, UNKNOWN if count is None else count, s.body if start == NOTHING else EMPTY)
        return {**known, s.var: start.plus(own)}, (*loops, tuple(own.terms))

    def _access(self, indices: tuple[Expr, ...], known: Known, loops: _Loops) -> _Access:
        """Return an access; that of a vector has its lane as one more variable."""
        self._count += 1
        return _Access(self._count, loops, tuple(form_of(i, known, f"lane {self._count}") for i in indices))


# Pairs -----------------------------------------------------------------------------------------------------------


def _keeps_apart(load: _Access, store: _Access) -> bool:
    """Return True if the load is certain not to return the store's value."""
    around = takewhile(lambda pair: pair[0] == pair[1], zip(load.loops, store.loops, strict=False))
    common = frozenset(v for variables, _ in around for v in variables if v.extent > 1)
    places = zip(load.place, store.place, strict=True)
    gaps = [_gap(x, y, common) for x, y in places if x is not None and y is not None]
    if any(g.least > 0 or g.most < 0 for g in gaps):
        return True
    if load.at > store.at and all(g.low <= 0 <= g.high for g in gaps):
        return False
    return _told(gaps) >= common


@dataclass(frozen=True)
class _Gap:
    """Distance from an index of a store to an index of a load.

    It is from `low` to `high` within one iteration of the loops around both.  Between two iterations it is multiples
    (`moving`) of the differences of their variables, plus at most `rest`; overall it is from `least` to `most`.
    """

    low: int
    high: int
    moving: Mapping[Variable, int]
    rest: int
    least: int
    most: int


def _gap(load: Form, store: Form, common: frozenset[Variable]) -> _Gap:
    low, high = load.plus(store, -1).range
    moving = {v: f for v, f in load.terms.items() if v in common and store.terms.get(v) == f}
    one, other = (Form({v: f for v, f in x.terms.items() if v not in moving}, x.number) for x in (load, store))
    least, most = one.range[0] - other.range[1], one.range[1] - other.range[0]
    reach = _reach(moving)
    return _Gap(low, high, moving, max(-least, most), least - reach, most + reach)


def _reach(moving: Mapping[Variable, int]) -> int:
    """Return the greatest distance of multiples of differences from 0."""
    return sum(abs(f) * (v.extent - 1) for v, f in moving.items())


def _told(gaps: Sequence[_Gap]) -> set[Variable]:
    """Return the common variables that are equal in two iterations wherever no index differs.

    The variable with the largest multiple in an index is one, if no difference of the others can offset its own.
    """
    told: set[Variable] = set()
    before = -1
    while len(told) > before:
        before = len(told)
        for gap in gaps:
            moving = {v: f for v, f in gap.moving.items() if v not in told}
            largest = max(moving, key=lambda v: abs(moving[v]), default=None)
            if largest is not None:
                factor = abs(moving.pop(largest))
                told |= {largest} if factor > _reach(moving) + gap.rest else set()
    return told
