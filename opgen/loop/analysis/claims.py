"""Claims on a kernel's integers under which its meaning holds, for a kernel as lowered (`reach`).

The claims are:

* The subscripts, sizes, bounds of loops and operands of comparisons fit, with room to spare, so that the analysis's
  proofs about mathematical integers hold for int64.
* No divisor is 0 where its quotient counts.

A side that is not taken does not count: the body of a loop without iterations or of a condition that does not hold, the
other side of a `select`, and the second operand of an `and` or `or` that the first decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from opgen.dtypes import BOOL
from opgen.loop import build as b
from opgen.loop.analysis.reach import LIMIT, Claim, Operation, Reach, Step
from opgen.loop.nodes import (
    INDEX,
    Alloc,
    Binary,
    Block,
    Buffer,
    Call,
    Cast,
    Check,
    Compare,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    Select,
    Stmt,
    Store,
    Unary,
    Var,
)
from opgen.loop.print import print_expr
from opgen.loop.walk import free_vars, map_expr, operands, walk, walk_expr

_ARITHMETIC: Mapping[str, Operation] = {
    "add": "add", "sub": "sub", "mul": "mul", "floordiv": "div", "mod": "mod", "min": "min", "max": "max",
}  # fmt: skip
_COMPARED: Mapping[str, tuple[Operation, bool, bool]] = {
    "lt": ("lt", False, False), "le": ("le", False, False), "gt": ("lt", True, False), "ge": ("le", True, False),
    "eq": ("eq", False, False), "ne": ("eq", False, True),
}  # fmt: skip
"""For a comparison: the step, True if its operands are swapped, and True if it is the opposite."""

_OPPOSITE = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le", "eq": "ne", "ne": "eq"}
_SWAPPED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
LARGEST = 2**48
"""Size in bytes that no buffer reaches: more than a process can address."""

MANY = 16
"""Number of tensors of a kernel beyond which all sizes are computed before its loop nests."""

_SHOWN = 200
"""The most characters of an expression in a message."""

Visit: TypeAlias = "Callable[[Expr, _Scope], int | None]"


def reach_of(kernel: Kernel, labels: Mapping[str, str]) -> Reach:
    """Return the steps and claims of an unscheduled kernel; `labels` are the reader's names of its parameters."""
    builder = _Builder(kernel, labels)
    scope = _Scope({}, {o.name: o.shape for o in kernel.buffers})
    for position, p in enumerate(kernel.parameters):
        if not p.dtype.is_float:
            scope.names[p.name] = builder.step("given", position, uses=(position,))
    if len(kernel.buffers) > MANY:
        for size in dict.fromkeys(size for o in kernel.buffers for size in o.shape):
            builder.integer(size, scope)  # once, and not in each nest
    builder.body(kernel.body, scope)
    ranges = tuple((0, 1) if p.dtype == BOOL else (p.low, p.high) for p in kernel.parameters)
    return Reach(tuple(builder.steps), tuple(builder.claims), ranges)


@dataclass(frozen=True)
class _Scope:
    """Facts at a place: the steps of names, the shapes of buffers, the steps and claims made already.

    `target` is the tensor that is being defined, for messages.
    """

    names: dict[str, int]
    shapes: Mapping[str, tuple[Expr, ...]]
    known: dict[Expr, int] = field(default_factory=dict)
    claimed: set[tuple[int, int]] = field(default_factory=set)
    target: str = ""

    def inner(self) -> _Scope:
        return replace(self, names=dict(self.names), known=dict(self.known), claimed=set(self.claimed))

    def renamed(self, name: str, step: int) -> _Scope:
        """Return the scope in which a name has another step."""
        known = self.known
        if name in self.names:
            known = {e: s for e, s in known.items() if name not in free_vars(e)}
        return replace(self, names={**self.names, name: step}, known=known)


class _Builder:
    def __init__(self, kernel: Kernel, labels: Mapping[str, str]) -> None:
        self.steps: list[Step] = []
        self.claims: list[Claim] = []
        self._uses: list[tuple[int, ...]] = []
        self._labels = labels
        self._kernel = kernel

    def step(self, op: Operation, a: int = 0, b: int = 0, c: int = 0, uses: tuple[int, ...] = ()) -> int:
        self.steps.append(Step(op, a, b, c))
        self._uses.append(uses)
        return len(self.steps) - 1

    def _of(self, op: Operation, *steps: int) -> int:
        """Return a step over other steps; it depends on everything that they depend on."""
        uses = tuple(dict.fromkeys(u for s in steps for u in self._uses[s]))
        a, b, c = (*steps, 0, 0, 0)[:3]
        return self.step(op, a, b, c, uses)

    def _jump(self, op: Operation, a: int) -> int:
        return self.step(op, a)

    def _land(self, jump: int) -> None:
        self.steps[jump] = self.steps[jump]._replace(b=len(self.steps))

    # Claims -----------------------------------------------------------------------------------------

    def _fits(self, scope: _Scope, left: int, right: int, text: str) -> None:
        if (left, right) not in scope.claimed:
            scope.claimed.add((left, right))
            claim = self._claim(scope, (left, right), f"{text} stays below 2**62")
            self.step("fits", left, right, claim)

    def _nonzero(self, scope: _Scope, divisor: int, e: Binary) -> None:
        if isinstance(e.right, Const) and e.right.value:
            return
        if (divisor, -1) not in scope.claimed:
            scope.claimed.add((divisor, -1))
            text = f"the divisor {self._text(e.right, scope)} of {self._text(e, scope)}{_place(scope)} is not 0"
            self.step("nonzero", divisor, self._claim(scope, (divisor,), text))

    def _claim(self, scope: _Scope, steps: tuple[int, ...], text: str) -> int:
        self.claims.append(Claim(text, tuple(dict.fromkeys(u for s in steps for u in self._uses[s]))))
        return len(self.claims) - 1

    def _text(self, e: Expr, scope: _Scope) -> str:
        prefix = f"{scope.target}_"

        def named(n: Expr) -> Expr:
            if not isinstance(n, Var):
                return n
            own = n.name in self._labels
            return replace(n, name=self._labels[n.name] if own else n.name.removeprefix(prefix))

        text = print_expr(map_expr(named, e)).replace("`", "")
        return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."

    # Statements -------------------------------------------------------------------------------------

    def body(self, s: Stmt, scope: _Scope) -> None:
        while isinstance(s, Alloc):
            scope = self._alloc(s, scope)
            s = s.body
        for part in s.statements if isinstance(s, Block) else (s,):
            self._statement(part, scope if scope.target else replace(scope, target=self._defined(part)))

    def _defined(self, s: Stmt) -> str:
        """Return the tensor that a nest defines."""
        local = {o.name for n in walk(s) if isinstance(n, Alloc) for o in n.buffers}
        return next((n.buffer for n in walk(s) if isinstance(n, Store) and n.buffer not in local), "")

    def _alloc(self, s: Alloc, scope: _Scope) -> _Scope:
        for buffer in s.buffers:
            for size in buffer.shape:
                if not isinstance(size, Const):
                    step = self.integer(size, scope)
                    self._fits(scope, step, step, f"the size {self._text(size, scope)} of '{buffer.name}'")
            self._room(buffer, scope)
        return replace(scope, shapes={**scope.shapes, **{o.name: o.shape for o in s.buffers}})

    def _room(self, buffer: Buffer, scope: _Scope) -> None:
        """Claim that no buffer is larger than any memory: beyond, a product of its sizes may not fit."""
        if all(isinstance(size, Const) for size in buffer.shape):
            return
        bytes_ = self.step("number", LIMIT // LARGEST * buffer.dtype.bytes)
        for size in buffer.shape:
            bytes_ = self._of("mul", bytes_, self.integer(size, scope))
        sizes = ", ".join(self._text(size, scope) for size in buffer.shape)
        claim = self._claim(scope, (bytes_,), f"'{buffer.name}' of sizes [{sizes}] takes less than {LARGEST} bytes")
        self.step("fits", bytes_, self.step("number", 0), claim)

    def _statement(self, s: Stmt, scope: _Scope) -> None:
        match s:
            case For():
                self._for(s, scope)
            case If():
                self._if(s, scope)
            case Let():
                self._value(s.value, scope)
                if s.value.type == INDEX and not _varies(s.value):
                    scope = scope.inner().renamed(s.var.name, self.integer(s.value, scope))
                self.body(s.body, scope)
            case Store():
                self._access(s.buffer, s.indices, scope)
                self._value(s.value, scope)
            case Check():
                self._truth(s.condition, scope)
                self._value(s.value, scope)
            case Alloc() | Block():
                self.body(s, scope)

    def _for(self, s: For, scope: _Scope) -> None:
        start, stop = self.integer(s.start, scope), self.integer(s.stop, scope)
        var = self._text(Var(s.var), scope)
        self._fits(scope, start, stop, f"the range {self._text(s.stop, scope)} of '{var}'{_place(scope)}")
        loop = self._of("loop", start, stop)
        jump = self._jump("empty", loop)
        self.body(s.body, scope.inner().renamed(s.var, loop))
        self._land(jump)

    def _if(self, s: If, scope: _Scope) -> None:
        condition = self._truth(s.condition, scope)
        jump = self._jump("unless", condition)
        self.body(s.then, self._where(s.condition, True, scope))
        self._land(jump)
        if s.otherwise is not None:
            jump = self._jump("unless", self._of("not", condition))
            self.body(s.otherwise, self._where(s.condition, False, scope))
            self._land(jump)

    def _access(self, buffer: str, indices: tuple[Expr, ...], scope: _Scope) -> None:
        for e, size in zip(indices, scope.shapes[buffer], strict=True):
            if _varies(e):  # what is made of elements is kept inside
                self._value(e, scope)
            elif not isinstance(e, Const):
                text = f"the subscript {self._text(e, scope)} of '{buffer}'{_place(scope)}"
                self._fits(scope, self.integer(e, scope), self.integer(size, scope), text)

    # Expressions ------------------------------------------------------------------------------------

    def _value(self, e: Expr, scope: _Scope) -> None:
        """Add the claims of an expression of any type."""
        if isinstance(e, Load):
            self._access(e.buffer, e.indices, scope)
        elif e.type.dtype == BOOL:
            self._truth(e, scope)
        elif isinstance(e, Select):
            self._sides(e, scope, self._value)
        elif e.type == INDEX and not _varies(e):
            if not isinstance(e, Const | Var):
                step = self.integer(e, scope)
                self._fits(scope, step, step, f"the integer {self._text(e, scope)}{_place(scope)}")
        else:
            for o in operands(e):
                self._value(o, scope)
            if isinstance(e, Binary) and e.op in ("floordiv", "mod") and e.type == INDEX and not _varies(e.right):
                self._nonzero(scope, self.integer(e.right, scope), e)

    def _sides(self, e: Select, scope: _Scope, visit: Visit) -> tuple[int, int | None, int | None]:
        """Return both values of a select, each where it may be chosen."""
        condition = self._truth(e.condition, scope)
        jump = self._jump("unless", condition)
        first = visit(e.if_true, self._where(e.condition, True, scope))
        self._land(jump)
        jump = self._jump("unless", self._of("not", condition))
        second = visit(e.if_false, self._where(e.condition, False, scope))
        self._land(jump)
        return condition, first, second

    def integer(self, e: Expr, scope: _Scope) -> int:
        """Return the step of an int64 expression without loads."""
        if e not in scope.known:
            scope.known[e] = self._new_integer(e, scope)
        return scope.known[e]

    def _new_integer(self, e: Expr, scope: _Scope) -> int:
        match e:
            case Const():
                return self.step("number", min(max(int(e.value), -LIMIT), LIMIT))
            case Var():
                return scope.names[e.name]
            case Unary():
                return self._of("sub", self.step("number", 0), self.integer(e.operand, scope))
            case Binary(op="floordiv" | "mod"):
                return self._quotient(e, scope)
            case Binary() if e.op in _ARITHMETIC:
                return self._of(_ARITHMETIC[e.op], self.integer(e.left, scope), self.integer(e.right, scope))
            case Select():
                condition, first, second = self._sides(e, scope, self.integer)
                assert first is not None
                assert second is not None
                return self._of("select", condition, first, second)
        return self._opaque(e, scope)

    def _opaque(self, e: Expr, scope: _Scope) -> int:
        """Return the step of a cast or a function, which are not int64 arithmetic."""
        inner = operands(e)
        if isinstance(e, Cast) and e.operand.type.dtype == BOOL:
            return self._truth(e.operand, scope)
        if isinstance(e, Call) and e.function == "abs":
            found = self.integer(inner[0], scope)
            return self._of("max", found, self._of("sub", self.step("number", 0), found))
        for o in inner:
            self._value(o, scope)
        given = inner[0].type.dtype
        most = max(-given.least, given.greatest) if isinstance(e, Cast) and given.bits <= 32 else LIMIT
        return self._of("loop", self.step("number", -most), self.step("number", most))

    def _quotient(self, e: Binary, scope: _Scope) -> int:
        """Return a quotient or remainder: `(x // y + k) // d` may be rewritten as `(x + k * y) // (y * d)`."""
        left, right = self.integer(e.left, scope), self.integer(e.right, scope)
        text = f"the operand {self._text(e.left, scope)} of {self._text(e, scope)}{_place(scope)}"
        self._fits(scope, left, right, text)
        inner = [n.right for n in walk_expr(e.left) if isinstance(n, Binary) and n.op == "floordiv"]
        if isinstance(e.right, Const) and any(not isinstance(d, Const) for d in inner):
            scale = self.integer(inner[0], scope)
            for divisor in inner[1:]:
                scale = self._of("mul", scale, self.integer(divisor, scope))
            self._fits(scope, self._of("mul", left, scale), self._of("mul", right, scale), text)
        self._nonzero(scope, right, e)
        return self._of(_ARITHMETIC[e.op], left, right)

    # Conditions -------------------------------------------------------------------------------------

    def _truth(self, e: Expr, scope: _Scope) -> int:
        if e not in scope.known:
            scope.known[e] = self._new_truth(e, scope)
        return scope.known[e]

    def _new_truth(self, e: Expr, scope: _Scope) -> int:
        match e:
            case Const():
                return self.step("number", int(e.value))
            case Var() if e.name in scope.names:
                return scope.names[e.name]
            case Unary(op="not"):
                return self._of("not", self._truth(e.operand, scope))
            case Binary(op="and" | "or") if e.type.dtype == BOOL:
                return self._joined(e, scope)
            case Compare() if e.left.type == INDEX and not _varies(e):
                return self._compared(e, scope)
            case Select():
                condition, first, second = self._sides(e, scope, self._truth)
                assert first is not None
                assert second is not None
                return self._of("select", condition, first, second)
        for o in operands(e):
            self._value(o, scope)
        return self.step("either")

    def _joined(self, e: Binary, scope: _Scope) -> int:
        is_and = e.op == "and"
        left = self._truth(e.left, scope)
        jump = self._jump("unless", left if is_and else self._of("not", left))
        right = self._truth(e.right, self._where(e.left, is_and, scope))
        self._land(jump)
        return self._of("and" if is_and else "or", left, right)

    def _compared(self, e: Compare, scope: _Scope) -> int:
        left, right = self.integer(e.left, scope), self.integer(e.right, scope)
        self._fits(scope, left, right, f"what is compared in {self._text(e, scope)}{_place(scope)}")
        op, swapped, opposite = _COMPARED[e.op]
        found = self._of(op, right, left) if swapped else self._of(op, left, right)
        return self._of("not", found) if opposite else found

    def _where(self, condition: Expr, holds: bool, scope: _Scope) -> _Scope:
        """Return the scope in which a condition holds, or does not: its consequences for names are known."""
        inner = scope.inner()
        pending = [(condition, holds)]
        while pending:
            e, holds = pending.pop()
            if isinstance(e, Unary) and e.op == "not":
                pending.append((e.operand, not holds))
            elif isinstance(e, Binary) and e.op == ("and" if holds else "or"):
                pending += [(e.right, holds), (e.left, holds)]
            elif isinstance(e, Compare) and e.left.type == INDEX and not _varies(e):
                op = e.op if holds else _OPPOSITE[e.op]
                if op == "ne" and b.is_const(e.right, 0):  # 0 may lie within the interval of a sum
                    inner.claimed.add((self.integer(e.left, inner), -1))
                inner = self._narrowed(e.left, op, e.right, inner)
                inner = self._narrowed(e.right, _SWAPPED[op], e.left, inner)
        return inner

    def _narrowed(self, left: Expr, op: str, right: Expr, scope: _Scope) -> _Scope:
        if not isinstance(left, Var) or left.name in free_vars(right):
            return scope
        step, bound = scope.names[left.name], right
        if op in ("lt", "gt"):
            bound = b.sub(right, 1) if op == "lt" else b.add(right, 1)
        limit = self.integer(bound, scope)
        if op in ("lt", "le", "eq"):
            step = self._of("upto", step, limit)
        if op in ("gt", "ge", "eq"):
            step = self._of("from", step, limit)
        if op == "ne":
            step = self._of("apart", step, limit)
        return scope.renamed(left.name, step)


def _place(scope: _Scope) -> str:
    return f" in '{scope.target}'" if scope.target else ""


def _varies(e: Expr) -> bool:
    """Return True if an expression depends on elements, is arithmetic of elements, or is not a single number."""
    return any(
        isinstance(n, Load)
        or n.type.lanes != 1
        or n.type.dtype.is_float
        or (isinstance(n, Binary) and n.type.dtype.is_int and n.op not in _ARITHMETIC)
        for n in walk_expr(e)
    )
