"""Matching of dimensions in ops that are composed: one op makes a size that another reads.

A symbol of the reader is replaced by the maker's expression, or the reverse, so that few names remain.  Where both have
an expression of their own, a requirement checks that they are equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opgen.graph.fusion.rename import Namer
from opgen.graph.fusion.rewrite import factors
from opgen.graph.fusion.unify import CannotComposeError
from opgen.spec.model import model as m
from opgen.spec.model.polynomial import same
from opgen.spec.model.visit import symbols_in
from opgen.spec.model.walk import transform


class Equations:
    """Equalities of sizes.

    `values` are expressions for eliminated symbols.  `free` are the symbols that shapes of inputs determine; `lets` are
    the expressions of the other ones.  In `aliases`, pairs of sizes, mathematics uses the second instead of the first.
    `checks` are named integers and requirements that enforce equalities; they go before the checks of the reader.
    """

    def __init__(self, namer: Namer) -> None:
        self.values: dict[str, m.Expr] = {}
        self.free: set[str] = set()
        self.lets: dict[str, m.Expr] = {}
        self.ones: set[str] = set()
        self.aliases: list[tuple[m.Expr, m.Expr]] = []
        self.checks: list[m.ShapeLet | m.Require] = []
        self._namer = namer

    def add(self, free: set[str], lets: Mapping[str, m.Expr], ones: set[str]) -> None:
        """Add the symbols of an op, and the subset of them that is 1 in this call."""
        self.free |= free
        self.lets |= lets
        self.ones |= ones

    def resolve(self, e: m.Expr) -> m.Expr:
        return transform(self._resolved, e)

    def _resolved(self, e: m.Expr) -> m.Expr:
        """Return a symbol's value, with symbols in it replaced that have got values since."""
        value = self.values.get(e.name) if isinstance(e, m.Symbol) else None
        if value is None or not isinstance(e, m.Symbol):
            return e
        found = self.values[e.name] = _simple(self.resolve(value))
        return found

    def equate(self, made: m.Expr, read: m.Expr, blame: str) -> None:
        """Match a dimension's size as its maker and as its reader write it."""
        made, read = self.in_place(made), self.in_place(read)
        if same(made, read) or self._named(made, read) or self._told(made, read):
            return
        if self._narrow(made) or self._narrow(read):
            self.equate(made, read, blame)
            return
        known = self.lets.keys() | self.free
        for old, new in ((made, read), (read, made)):
            if isinstance(old, m.Symbol) and old.name in self.lets and symbols_in(new) <= known:
                self.aliases.append((old, new))
                condition = m.Operation("==", made, read)
                self.checks.append(m.Require(condition, blame, ("sizes of which ", made, " is ", read)))
                return
        raise CannotComposeError("sizes are products that one cannot be told from the other")

    def _named(self, made: m.Expr, read: m.Expr) -> bool:
        """Replace the reader's symbol by the maker's size; False if that is impossible."""
        if not isinstance(read, m.Symbol) or read.name not in self.free or read.name in self._told_by(made):
            return False
        if factors(made):
            self._stands_for(read.name, made)
        else:
            self.free.discard(read.name)
            self.lets[read.name] = made
            self.checks.append(m.ShapeLet((read.name,), made))
            self.aliases.append((made, read))
        return True

    def _told_by(self, e: m.Expr) -> set[str]:
        """Return the symbols on which a size depends, also by way of named integers."""
        found: set[str] = set()
        waiting = list(symbols_in(self.resolve(e)))
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += symbols_in(self.resolve(self.lets[name])) if name in self.lets else ()
        return found

    def _told(self, made: m.Expr, read: m.Expr) -> bool:
        """Replace the maker's symbol by a product that the reader knows; False if that is impossible."""
        if not isinstance(made, m.Symbol) or made.name not in self.free or not factors(read):
            return False
        names = {f for f in factors(read) if isinstance(f, str)}
        if made.name in names or names & self.lets.keys():
            return False
        self._stands_for(made.name, read)
        return True

    def _narrow(self, e: m.Expr) -> bool:
        """Set factors of a product to 1 that are 1 in this call; False if there are none."""
        ones = [f for f in factors(e) if isinstance(f, str) and f in self.free and f in self.ones]
        if len(factors(e)) < 2 or not ones:
            return False
        for name in ones:
            self._stands_for(name, m.Number(1))
        return True

    def _stands_for(self, name: str, value: m.Expr) -> None:
        self.free.discard(name)
        self.values[name] = value

    def in_place(self, e: m.Expr) -> m.Expr:
        """Return an expression with symbols replaced by their values, without factors of 1."""
        return _simple(self.resolve(e))

    def in_mathematics(self, e: m.Expr) -> m.Expr:
        """Return the same for mathematics, in which equal sizes are written in the same way."""
        e = self.in_place(e)
        for old, new in self.aliases:
            e = _put(e, self.in_place(old), self.in_place(new))
        return e


def _put(e: m.Expr, old: m.Expr, new: m.Expr) -> m.Expr:
    return transform(lambda n: new if n == old else n, e)


def _simple(e: m.Expr) -> m.Expr:
    """Return an expression without factors of 1."""

    def plain(n: m.Expr) -> m.Expr:
        if isinstance(n, m.Operation) and n.op == "*":
            if n.left == m.Number(1):
                return n.right
            if n.right == m.Number(1):
                return n.left
        return n

    return transform(plain, e)


def in_turn(checks: Sequence[m.ShapeLet | m.Require]) -> tuple[m.ShapeLet | m.Require, ...]:
    """Return named integers and requirements, each after the named integers that it uses, else in the given order."""
    makers = {name: c for c in checks if isinstance(c, m.ShapeLet) for name in c.names}
    done: dict[int, m.ShapeLet | m.Require] = {}

    def visit(check: m.ShapeLet | m.Require) -> None:
        if id(check) in done:
            return
        for name in sorted(_speaks_of(check) & makers.keys()):
            visit(makers[name])
        done[id(check)] = check

    for check in checks:
        visit(check)
    return tuple(done.values())


def _speaks_of(check: m.ShapeLet | m.Require) -> set[str]:
    if isinstance(check, m.ShapeLet):
        return symbols_in(check.value)
    pieces = [p for p in check.expected if not isinstance(p, str)]
    return {n for e in (check.condition, *pieces) for n in symbols_in(e)}
