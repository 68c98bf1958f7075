"""Facts known at a place in a kernel, and conclusions drawn from them.

A `Context` is a frozen set of facts about integers: promises on parameters, assumptions, loop bounds, the
conditions of the `If`s around, the values of `let` names.  Its answers are sound and incomplete: a condition it
proves holds in every run that reaches the place; one it does not prove may hold all the same.  Integers are
mathematical (see `polynomial`).
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from opgen.locks import cached_property
from opgen.loop import build as b
from opgen.loop.analysis.conditions import gaps, is_integer_comparison, leaves
from opgen.loop.analysis.intervals import Interval, Intervals
from opgen.loop.analysis.lanes import lane_variable, per_lane
from opgen.loop.analysis.polynomial import Atom, Normaliser, Polynomial, atom
from opgen.loop.analysis.prover import FUEL, MANY, Prover, strongest
from opgen.loop.nodes import INDEX, Binary, Buffer, Compare, Const, Expr, Kernel, Load, Unary, Var
from opgen.loop.walk import map_expr, walk_expr


class _Kept(threading.local):
    """Contexts of kernels' bodies, while a thread keeps them."""

    roots: dict[object, Context] | None = None


_KEPT = _Kept()


@contextlib.contextmanager
def kept_proofs() -> Iterator[None]:
    """Make `Context.of` return the same context for like kernels, so that one step's proofs serve the next.

    Inside another `kept_proofs` it does nothing.  The contexts belong to the thread, and go when it ends.
    """
    if _KEPT.roots is not None:
        yield
        return
    _KEPT.roots = {}
    try:
        yield
    finally:
        _KEPT.roots = None


@dataclass(frozen=True)
class Context:
    """Facts at a place in a kernel.  Every `with_...` returns a new context that knows more.

    `order` numbers the variables from the outermost in; `facts` are polynomials known not to be negative; `ranges` are
    numeric bounds of atoms; `values` are the expressions of `let` names; `shapes` are those of the buffers in scope;
    loads of `constant` buffers (the inputs) give the same value every time; `truths` are conditions that do not compare
    integers.
    """

    order: Mapping[str, int] = field(default_factory=dict)
    facts: tuple[Polynomial, ...] = ()
    ranges: Mapping[Atom, Interval] = field(default_factory=dict)
    values: Mapping[str, Expr] = field(default_factory=dict)
    shapes: Mapping[str, tuple[Expr, ...]] = field(default_factory=dict)
    constant: frozenset[str] = frozenset()
    truths: Mapping[Expr, bool] = field(default_factory=dict)
    _inner: dict[object, Context] = field(default_factory=dict, init=False, repr=False, compare=False)
    _side_by_side: dict[int, tuple[tuple[Buffer, ...], Context]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Compared by identity: looking up a thousand buffers by value takes long."""
    _answers: dict[tuple[Expr, int], bool] = field(default_factory=dict, init=False, repr=False, compare=False)

    @staticmethod
    def of(kernel: Kernel) -> Context:
        """Return the context of the whole body of a kernel.

        Within `kept_proofs`, kernels that differ only in their bodies share a context and its proofs; one kernel before
        and after a step is an example.
        """
        roots = _KEPT.roots
        if roots is None:
            return Context._of(kernel)
        key = (kernel.inputs, kernel.outputs, kernel.parameters, kernel.assumptions)
        if key not in roots:
            roots[key] = Context._of(kernel)
        return roots[key]

    @staticmethod
    def _of(kernel: Kernel) -> Context:
        context = Context(constant=frozenset(i.name for i in kernel.inputs))
        for p in kernel.parameters:
            context = context._with_variable(p.name)
            if p.dtype.is_int:
                factor = Polynomial.of(atom("var", p.var))
                bounds = ([] if p.low is None else [factor - p.low]) + ([] if p.high is None else [-factor + p.high])
                context = context._with_facts(bounds)
        context = replace(context, shapes={buffer.name: buffer.shape for buffer in kernel.buffers})
        for buffer in kernel.buffers:
            for size in buffer.shape:
                context = context.with_condition(b.compare("ge", size, 0))
        for a in kernel.assumptions:
            context = context.with_condition(a)
        return context

    # Growing --------------------------------------------------------------------------------------

    def with_loop(self, var: str, start: Expr, stop: Expr) -> Context:
        """Return the context inside a loop: start <= var < stop.  The same loop gives the same context, with its
        proofs.
        """
        key = (var, start, stop)
        if key not in self._inner:
            self._inner[key] = self._with_loop(var, start, stop)
        return self._inner[key]

    def _with_loop(self, var: str, start: Expr, stop: Expr) -> Context:
        inner = self._with_variable(var)
        v = Polynomial.of(atom("var", Var(var, INDEX)))
        first = [] if self._varies(start) else [v - self.polynomial(start)]
        last = [] if self._varies(stop) else [self.polynomial(stop) - v - 1]
        return inner._with_facts(first + last)

    def with_lanes(self, lanes: int) -> Context:
        """Return the context in which `lane_variable(lanes)` is a lane of a vector."""
        lane = lane_variable(lanes)
        if lanes == 1 or lane.name in self.order:
            return self
        return self.with_loop(lane.name, Const(0), Const(lanes))

    def with_condition(self, condition: Expr) -> Context:
        """Return the context where a scalar condition (or a mask's lane) holds; the same one gives the same context."""
        if condition not in self._inner:
            self._inner[condition] = self._with_condition(condition)
        return self._inner[condition]

    def _with_condition(self, condition: Expr) -> Context:
        context = self
        parts = [p for p in leaves(per_lane(self.resolve(condition))) if not self._varies(p[0])]
        for leaf, holds in sorted(parts, key=lambda part: not gaps(part[0], part[1], self._difference)):
            context = context._with_leaf(leaf, holds)
        return context

    def with_let(self, var: Var, value: Expr) -> Context:
        """Return the context inside the body of a `let`; the same one gives the same context."""
        key = (var, value)
        if key not in self._inner:
            self._inner[key] = self._with_let(var, value)
        return self._inner[key]

    def _with_let(self, var: Var, value: Expr) -> Context:
        context = self._with_variable(var.name)
        seen = per_lane(self.resolve(value))
        opaque = value.type.dtype.is_float or any(n.type.lanes > 1 for n in walk_expr(seen))
        if opaque or self._varies(value):
            return context
        return replace(context, values={**context.values, var.name: seen})

    def with_buffers(self, buffers: tuple[Buffer, ...]) -> Context:
        """Return the context inside the body of an `alloc`; the same one gives the same context."""
        known = self._side_by_side.get(id(buffers))
        if known is not None:
            return known[1]
        if buffers not in self._inner:
            shapes = {buffer.name: buffer.shape for buffer in buffers}
            constant = self.constant.difference(shapes)
            self._inner[buffers] = replace(self, shapes={**self.shapes, **shapes}, constant=constant)
        self._side_by_side[id(buffers)] = buffers, self._inner[buffers]
        return self._inner[buffers]

    def _with_variable(self, name: str) -> Context:
        values = {n: e for n, e in self.values.items() if n != name}
        return replace(self, order={**self.order, name: len(self.order)}, values=values)

    def _with_leaf(self, e: Expr, holds: bool) -> Context:
        """Learn that a part of a condition holds, or that it does not."""
        facts = gaps(e, holds, self._difference)
        if facts:
            return self._with_facts(facts)
        if not is_integer_comparison(e):
            return replace(self, truths={**self.truths, e: holds})
        gap = self._difference(e)  # different: on which side is known
        if self._prover.proves(gap):
            return self._with_facts([gap - 1])
        return self._with_facts([-gap - 1]) if self._prover.proves(-gap) else self

    def _with_facts(self, facts: Iterable[Polynomial]) -> Context:
        """Learn that polynomials are not negative, and each one's immediate consequences."""
        new = [g for f in facts for g in _consequences(f)]
        known = set(self.facts)
        kept = [f for f in dict.fromkeys(new) if f not in known and f.value is None]
        false = [f for f in new if f.value is not None and f.value < 0]
        intervals = Intervals(dict(self.ranges))
        for f in kept:
            intervals.learn(f)
        if any(low is not None and high is not None and low > high for low, high in intervals.ranges.values()):
            false.append(Polynomial.constant(-1))  # this place is never reached
        grown = replace(self, facts=(*self.facts, *kept, *false), ranges=intervals.ranges)
        sharper = [g for f in kept for g in _alternatives(f) if grown._excludes(*g)]
        return grown._with_facts([g[1] for g in sharper]) if sharper else grown

    def _excludes(self, wrong: Polynomial, right: Polynomial) -> bool:
        """Return True if, of two alternative facts, the first cannot hold."""
        return right not in self.facts and self._prover.proves(-wrong - 1, fuel=20)

    # Answering ------------------------------------------------------------------------------------

    def proves(self, condition: Expr, fuel: int = FUEL) -> bool:
        """Return True if a condition on integers (comparisons joined by and, or, not) is certain to hold here."""
        key = (condition, fuel)
        if key not in self._answers:
            self._answers[key] = self.unreachable or self._holds(per_lane(self.resolve(condition)), True, fuel)
        return self._answers[key]

    @property
    def unreachable(self) -> bool:
        """Return True if the facts are seen to contradict each other: nothing ever runs here."""
        return any(f.value is not None for f in self.facts)

    def interval(self, e: Expr) -> tuple[int | None, int | None]:
        """Return numeric bounds, both inclusive, of a scalar integer expression; None where none is known."""
        return self._prover.interval(self.polynomial(e))

    def polynomial(self, e: Expr) -> Polynomial:
        """Return the normal form of a scalar integer expression, `let` names replaced by their values."""
        return self._normaliser.polynomial(per_lane(e))

    def _difference(self, e: Compare) -> Polynomial:
        return self._normaliser.difference(replace(e, left=per_lane(e.left), right=per_lane(e.right)))

    def resolve(self, e: Expr) -> Expr:
        """Return the expression with `let` names replaced by their values where those are integers or conditions."""
        if not self.values:
            return e
        return map_expr(lambda n: self.values.get(n.name, n) if isinstance(n, Var) else n, e)

    def _holds(self, e: Expr, wanted: bool, fuel: int) -> bool:
        match e:
            case Const():
                return bool(e.value) == wanted
            case Unary() if e.op == "not":
                return self._holds(e.operand, not wanted, fuel)
            case Binary() if e.op in ("and", "or"):
                if (e.op == "and") == wanted:
                    return self._holds(e.left, wanted, fuel) and self._holds(e.right, wanted, fuel)
                if self._holds(e.left, wanted, fuel):
                    return True
                otherwise = self.with_condition(b.negate(e.left) if wanted else e.left)
                return otherwise._holds(e.right, wanted, fuel)
            case Compare() if e.left.type.dtype.is_int:
                return self._compares(e, wanted, fuel)
        return self.truths.get(e) is wanted

    def _compares(self, e: Compare, wanted: bool, fuel: int) -> bool:
        goals = gaps(e, wanted, self._difference)
        if goals:
            return all(self._prover.proves(g, fuel) for g in goals)
        gap = self._difference(e)  # different: one way or the other
        return self._prover.proves(gap - 1, fuel) or self._prover.proves(-gap - 1, fuel) or self._indivisible(gap, fuel)

    def _indivisible(self, p: Polynomial, fuel: int) -> bool:
        """Return True if a polynomial differs from 0 because it has a remainder: `d * q + r` with 0 < |r| < d."""
        for divisor, rest in p.remainders():
            for r in (rest, -rest):
                if self._prover.proves(r - 1, fuel) and self._prover.proves(divisor - r - 1, fuel):
                    return True
        return False

    @cached_property
    def _normaliser(self) -> Normaliser:
        return Normaliser(lambda name: self.values.get(name.name))

    @cached_property
    def _prover(self) -> Prover:
        facts = self.facts if len(self.facts) <= MANY else strongest(self.facts)
        return Prover(facts, Intervals(dict(self.ranges)), dict(self.order))

    # Names ----------------------------------------------------------------------------------------

    def _varies(self, e: Expr) -> bool:
        """Return True if evaluating an expression again may give another value: it loads from a buffer that may be
        stored to.
        """
        return any(isinstance(n, Load) and n.buffer not in self.constant for n in walk_expr(e))


def _consequences(fact: Polynomial) -> list[Polynomial]:
    """Return a fact with rounded constant, and, for `v <= min(x, y)` and the like, the same for both operands."""
    divisor = fact.content()
    fact = fact.divide_rounding_down(divisor) if divisor > 1 else fact
    found = [fact]
    for a in sorted(fact.atoms, key=lambda a: a.key):
        c = fact.terms.get((a,))
        if c is None or a.kind not in ("min", "max") or sum(a in m for m in fact.terms) != 1:
            continue
        if (c > 0) == (a.kind == "min"):
            for operand in a.operands:
                found.extend(_consequences(fact.replace(a, operand)))
    return found


def _alternatives(fact: Polynomial) -> Iterator[tuple[Polynomial, Polynomial]]:
    """Yield, for `v <= max(x, y)` and the like: (the fact for one operand, that for the other), both ways round."""
    for a in sorted(fact.atoms, key=lambda a: a.key):
        c = fact.terms.get((a,), 0)
        if c and a.kind in ("min", "max") and (c > 0) == (a.kind == "max"):
            first, second = (fact.replace(a, operand) for operand in a.operands)
            yield first, second
            yield second, first


__all__ = ["Context", "Interval", "kept_proofs"]
