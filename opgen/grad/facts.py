"""Facts about an op's integers: nonzero, not negative, equal."""

from __future__ import annotations

from dataclasses import dataclass

from opgen.locks import cached_property
from opgen.spec.model.model import (
    AttrValue,
    Conditional,
    Expr,
    Negate,
    Number,
    Operation,
    OpSpec,
    Require,
    ShapeLet,
    SizeOf,
    Symbol,
)
from opgen.spec.model.polynomial import Polynomial, polynomial
from opgen.spec.model.walk import conjuncts, transform


@dataclass(frozen=True)
class Facts:
    """Facts that follow from the form of integers, the bounds of attributes, and the op's requirements."""

    op: OpSpec

    def nonzero(self, e: Expr) -> bool:
        """Return True if an integer is never 0."""
        match e:
            case Number():
                return e.value != 0
            case Negate():
                return self.nonzero(e.operand)
            case Operation(op="*"):
                return self.nonzero(e.left) and self.nonzero(e.right)
            case AttrValue():
                attr = self.op.attr(e.attr)
                low, high = attr.minimum, attr.maximum
                always = not attr.optional  # an element of an absent list reads 0
                return always and ((low is not None and low > 0) or (high is not None and high < 0))
        return False

    def not_negative(self, e: Expr) -> bool:
        """Return True if an integer is never below 0."""
        match e:
            case Number():
                return e.value >= 0
            case SizeOf():
                return True
            case Symbol():
                return e.name in self._dimensions or (e.name in self._named and self.not_negative(self._named[e.name]))
            case AttrValue():
                low = self.op.attr(e.attr).minimum
                return low is not None and low >= 0
            case Operation(op="max"):
                return self.not_negative(e.left) or self.not_negative(e.right)
            case Operation(op="+" | "*" | "//" | "%" | "min"):
                return self.not_negative(e.left) and self.not_negative(e.right)
            case Conditional():
                return self.not_negative(e.if_true) and self.not_negative(e.if_false)
        return False

    def same(self, one: Expr, other: Expr) -> bool:
        """Return True if two integers are equal, possibly because the op requires it."""
        difference = self._written_out(one) - self._written_out(other)
        return not difference.terms or any(d.terms in (difference.terms, (-difference).terms) for d in self._nothing)

    def plain(self, e: Expr) -> Expr:
        """Expand named integers that are sums, differences or products."""

        def out(n: Expr) -> Expr:
            value = self._named.get(n.name) if isinstance(n, Symbol) else None
            return self.plain(value) if isinstance(value, Operation) and value.op in ("+", "-", "*") else n

        return transform(out, e)

    def _written_out(self, e: Expr) -> Polynomial:
        """Return an integer as a polynomial, with named integers expanded."""
        found = polynomial(e)
        named = next((a for a in found.atoms if isinstance(a, Symbol) and a.name in self._named), None)
        while named is not None:
            found = found.substitute(named, polynomial(self._named[named.name]))
            named = next((a for a in found.atoms if isinstance(a, Symbol) and a.name in self._named), None)
        return found

    @cached_property
    def _named(self) -> dict[str, Expr]:
        """Map named integers to their values, without dimensions and results of functions."""
        lets = (c for c in self.op.checks if isinstance(c, ShapeLet) and len(c.names) == 1)
        return {check.names[0]: check.value for check in lets}

    @cached_property
    def _dimensions(self) -> frozenset[str]:
        """Return the names in sizes of inputs."""
        return frozenset(f for t in self.op.tensors for d in t.dims for f in d.factors if isinstance(f, str))

    @cached_property
    def _nothing(self) -> tuple[Polynomial, ...]:
        """Return polynomials that are 0 in every call."""
        required = [e for c in self.op.checks if isinstance(c, Require) for e in conjuncts(c.condition)]
        equal = (e for e in required if isinstance(e, Operation) and e.op == "==")
        return tuple(self._written_out(e.left) - self._written_out(e.right) for e in equal)
