"""Scopes of expressions during lowering: tensors and their layouts, facts, statements to run before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from opgen.loop import build as b
from opgen.loop import nodes as loop
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Buffer, Stmt, Unary
from opgen.loop.walk import reads_memory


class Names:
    """Hands out names that are unique in a kernel."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    @property
    def taken(self) -> frozenset[str]:
        return frozenset(self._taken)

    def fresh(self, name: str) -> str:
        candidate, count = name, 0
        while candidate in self._taken:
            count += 1
            candidate = f"{name}_{count}"
        self._taken.add(candidate)
        return candidate


@dataclass(frozen=True)
class TensorAccess:
    """Storage of a tensor of the spec: its buffer, and for each physical dimension the logical one."""

    buffer: Buffer
    order: tuple[int, ...]
    stretched: tuple[loop.Expr | None, ...]
    """For each logical dimension that the caller may pass as 1, the size to which it stretches."""
    spare: Spare | None = None


@dataclass(frozen=True)
class Spare:
    """Rows of memory before and after a tensor's own, along a dimension: read by its first step (`steps.py`)."""

    axis: int
    before: int
    after: int


@dataclass
class Scope:
    """Surroundings of an expression: loop variables, facts about them, statements to run before, terms to leave out.

    `allocs` and `before` are filled while an expression is lowered.  `conditions` is None outside a reduction; else it
    collects the conditions under which the term exists at all.  Conditions on values are in `late`, for they load.
    `around` are conditions on sizes alone without which there is nothing to compute: all has been checked.  `path` are
    the conditions under which the expression is taken.
    """

    indices: Mapping[str, loop.Expr]
    context: Context
    conditions: list[loop.Expr] | None = None
    allocs: list[Buffer] = field(default_factory=list)
    before: list[Stmt] = field(default_factory=list)
    late: list[loop.Expr] = field(default_factory=list)
    around: list[loop.Expr] = field(default_factory=list)
    path: tuple[loop.Expr, ...] = ()

    def under(self, condition: loop.Expr) -> Scope:
        """Return the same scope for an expression that is taken only where a condition holds."""
        return self if isinstance(condition, loop.Const) else replace(self, path=(*self.path, condition))

    @property
    def reached(self) -> list[loop.Expr]:
        """Return the conditions of the path that do not use elements: where one fails, a read need not make sense."""
        facts = [f for condition in self.path for f in _facts(condition)]
        return [f for f in facts if not reads_memory(f)]

    def require(self, conditions: Iterable[loop.Expr]) -> None:
        """Leave the term out unless these hold, as far as the expression is taken."""
        assert self.conditions is not None
        for c in conditions:
            wanted = b.either(b.negate(b.all_of(self.path)), c)
            loads = reads_memory(wanted)
            (self.late if loads else self.conditions).append(wanted)

    def wrap(self, statements: Iterable[Stmt]) -> Stmt:
        """Return the gathered statements, then the given ones, within the gathered allocations."""
        return b.alloc(self.allocs, b.block((*self.before, *statements)))


def _facts(condition: loop.Expr) -> list[loop.Expr]:
    """Return the facts that a condition implies, one by one."""
    if isinstance(condition, Unary) and isinstance(condition.operand, loop.Binary) and condition.operand.op == "or":
        return _facts(b.negate(condition.operand.left)) + _facts(b.negate(condition.operand.right))
    if isinstance(condition, loop.Binary) and condition.op == "and":
        return _facts(condition.left) + _facts(condition.right)
    return [condition]
