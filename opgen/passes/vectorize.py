"""Expansion of "vector" loops into vector code.

    for i in 0..8 vector:                   if lane-dependent, an If becomes a mask:
      y[b + i] = x[b + i]                     y[ramp(b, 1, 8)] = x[ramp(b, 1, 8)]

* A buffer allocated inside the loop gets a last dimension of one element a lane.
* An `If` whose condition differs from lane to lane becomes a mask on loads and stores; nested conditions are and-ed.
  A mask is computed before anything in the branch runs.  A store to a buffer of the loop's own becomes a select
  instead: every lane owns its element, so nothing can race.  The select has only the conditions met since the
  allocation: nothing sees the values of other lanes.  So does a masked store of adjacent elements to a register
  buffer that was allocated outside the loop.
* A load that is the same for all lanes stays scalar if it is provably in bounds without the masks.
* Loops inside must have the same bounds in all lanes.  Stores must differ from lane to lane, or have masks that leave
  one active lane for an element.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from opgen.diagnostics import InternalError
from opgen.dtypes import BOOL
from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import (
    Alloc,
    Barrier,
    Binary,
    BitCast,
    Block,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Check,
    Compare,
    Const,
    Dot,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    Prefetch,
    Ramp,
    Select,
    Shuffle,
    Stmt,
    Store,
    Unary,
    Var,
    Word,
)
from opgen.loop.walk import (
    expressions,
    loops_in,
    operands,
    stores,
    substitute_expr,
    walk_expr,
    with_expressions,
    with_operands,
    with_parts,
)
from opgen.passes import lanes as v
from opgen.passes.fold import fold
from opgen.passes.scope import entered
from opgen.passes.unroll import constant_extent, expand


def vectorize(kernel: Kernel) -> Kernel:
    """Replace every "vector" loop (of constant extent) by vector code."""
    if not any(s.kind == "vector" for s in loops_in(kernel.body)):
        return kernel
    shapes = {buffer.name: buffer.shape for buffer in kernel.buffers}
    body = _find(kernel.body, Context.of(kernel), shapes, _Registers())
    return Kernel(kernel.name, kernel.inputs, kernel.outputs, kernel.parameters, body, kernel.assumptions)


Shapes = Mapping[str, tuple[Expr, ...]]


@dataclass(frozen=True)
class _Registers:
    """Register buffers around a loop, and those that get masked stores as selects."""

    names: frozenset[str] = frozenset()
    selected: set[str] = field(default_factory=set)


def _find(s: Stmt, context: Context, shapes: Shapes, registers: _Registers) -> Stmt:
    """Expand the vector loops in a statement."""
    if isinstance(s, For) and s.kind == "vector":
        return _expand_loop(s, context, shapes, registers)
    if isinstance(s, Alloc):
        shapes = {**shapes, **{o.name: o.shape for o in s.buffers}}
        if s.space == "register":
            registers = replace(registers, names=registers.names | {s.buffer.name})
    new = with_parts(s, tuple(_find(p, c, shapes, registers) for p, c in entered(s, context)))
    if isinstance(new, Alloc) and new.space == "register" and new.buffer.name in registers.selected:
        return b.alloc(new.buffer, b.block((_filled(new.buffer), new.body)))
    return new


def _filled(buffer: Buffer) -> Stmt:
    """Fill every element with zeros: selects also read lanes that are never stored to."""
    *sizes, width = buffer.shape
    lanes = int(width.value) if isinstance(width, Const) else 1
    counters = [f"{buffer.name}_{d}" for d in range(len(sizes))]
    places = (*(b.var(c) for c in counters), Ramp(Const(0), Const(1), lanes) if lanes > 1 else Const(0))
    s: Stmt = Store(buffer.name, places, b.const(0, buffer.dtype, lanes))
    for counter, size in zip(reversed(counters), reversed(sizes), strict=True):
        s = For(counter, Const(0), size, s, "unroll" if isinstance(size, Const) else "serial")
    return s


def _expand_loop(loop: For, context: Context, shapes: Shapes, registers: _Registers) -> Stmt:
    lanes = constant_extent(loop)
    if lanes is None:
        raise InternalError(f"the loop '{loop.var}' is to be vectorised, and its extent is not constant")
    if lanes == 0:
        return b.EMPTY
    if lanes == 1:
        return expand(loop.body, {loop.var: loop.start})
    ramp = Ramp(loop.start, Const(1), lanes)
    return _Vectorizer(loop.var, lanes, registers).stmt(loop.body, _Scope({loop.var: ramp}, {}, (), context, shapes))


@dataclass(frozen=True)
class _Scope:
    """Surroundings of a statement.

    `values` are the values of names with lanes.  `private` has the number of masks at the allocation of each private
    buffer.  `masks` are those in force; `context` has the facts known without them, and `shapes` those of buffers.
    """

    values: Mapping[str, Expr]
    private: Mapping[str, int]
    masks: tuple[Expr, ...]
    context: Context
    shapes: Mapping[str, tuple[Expr, ...]]


class _Vectorizer:
    def __init__(self, var: str, lanes: int, registers: _Registers) -> None:
        self._var = var
        self._lanes = lanes
        self._registers = registers
        self._masked: set[str] = set()

    # Statements -------------------------------------------------------------------------------------

    def stmt(self, s: Stmt, scope: _Scope) -> Stmt:
        match s:
            case Block():
                return b.block(self.stmt(p, scope) for p in s.statements)
            case Store():
                return self._store(s, scope)
            case For():
                return self._loop(s, scope)
            case If():
                return self._branch(s, scope)
            case Alloc():
                return self._alloc(s, scope)
            case Let():
                return self._let(s, scope)
            case Prefetch():
                return self._prefetch(s, scope)
            case Check():
                raise InternalError(f"a check inside the vector loop '{self._var}'")
            case Barrier():
                raise InternalError(f"a barrier inside the vector loop '{self._var}'")

    def _prefetch(self, s: Prefetch, scope: _Scope) -> Stmt:
        """Return the first lane's prefetch; the other lanes' lines are the same or adjacent."""
        first = {self._var: scope.values[self._var]}
        at = {n: e.base if isinstance(e, Ramp) else e for n, e in first.items()}
        indices = tuple(substitute_expr(i, at) for i in s.indices)
        if any(e.type.lanes > 1 for e in (self.expr(i, scope) for i in indices)):
            return b.EMPTY  # each lane's line is elsewhere
        return with_expressions(s, tuple(self.expr(i, scope) for i in indices))

    def _loop(self, s: For, scope: _Scope) -> Stmt:
        new = with_expressions(s, tuple(self.expr(e, scope) for e in expressions(s)))
        assert isinstance(new, For)
        if new.start.type.lanes != 1 or new.stop.type.lanes != 1:
            raise InternalError(f"the bounds of '{s.var}' differ between the lanes of '{self._var}'")
        inner = replace(scope, context=scope.context.with_loop(s.var, new.start, new.stop))
        return For(s.var, new.start, new.stop, self.stmt(s.body, inner), s.kind)

    def _branch(self, s: If, scope: _Scope) -> Stmt:
        if s.otherwise is None and isinstance(s.condition, Binary) and s.condition.op == "and":
            return self._nested(s.condition, s.then, scope)
        condition = self.expr(s.condition, scope)
        if condition.type.lanes == 1:
            positive = replace(scope, context=scope.context.with_condition(condition))
            negative = replace(scope, context=scope.context.with_condition(fold(b.negate(condition))))
            otherwise = None if s.otherwise is None else self.stmt(s.otherwise, negative)
            return b.when(condition, self.stmt(s.then, positive), otherwise)
        if not isinstance(s.then, Store) or s.otherwise is not None:
            changed = {p.buffer for p in stores(s)}
            if any(isinstance(e, Load) and e.buffer in changed for e in walk_expr(condition)):
                return self._remembered(condition, s, scope)
        return self._masked_branch(condition, s, scope)

    def _masked_branch(self, condition: Expr, s: If, scope: _Scope) -> Stmt:
        then = self.stmt(s.then, replace(scope, masks=(*scope.masks, condition)))
        if s.otherwise is None:
            return then
        opposite = fold(Unary("not", condition))
        return b.block((then, self.stmt(s.otherwise, replace(scope, masks=(*scope.masks, opposite)))))

    def _remembered(self, condition: Expr, s: If, scope: _Scope) -> Stmt:
        """Return a branch that changes its condition's inputs: the mask is computed once, and kept."""
        names = (f"{self._var}_held_{n}" for n in count())
        name = next(n for n in names if n not in scope.shapes)
        buffer = Buffer(name, BOOL, (Const(self._lanes),), "register")
        body = self._masked_branch(Load(name, (self._lane(),), BOOL), s, self._with_private(scope, buffer))
        return b.alloc(buffer, b.block((Store(name, (self._lane(),), condition), body)))

    def _nested(self, condition: Binary, then: Stmt, scope: _Scope) -> Stmt:
        """Test the condition that is the same in all lanes around the other one, so that it stays a branch."""
        outer, inner = condition.left, condition.right
        if self.expr(outer, scope).type.lanes != 1 and self.expr(inner, scope).type.lanes == 1:
            outer, inner = inner, outer
        return self._branch(If(outer, If(inner, then)), scope)

    def _alloc(self, s: Alloc, scope: _Scope) -> Stmt:
        made: list[Buffer] = []
        for buffer in s.buffers:
            shape = tuple(self.expr(e, scope) for e in buffer.shape)
            if any(e.type.lanes != 1 for e in shape):
                raise InternalError(f"the size of '{buffer.name}' differs between the lanes of '{self._var}'")
            made.append(Buffer(buffer.name, buffer.dtype, (*shape, Const(self._lanes)), buffer.space))
            scope = self._with_private(scope, made[-1])
        body = self.stmt(s.body, scope)
        for widened in reversed(made):
            if widened.name in self._masked and not _stores_first(body, widened.name):
                body = b.block((_filled(widened), body))
        return b.alloc(made, body)

    def _with_private(self, scope: _Scope, buffer: Buffer) -> _Scope:
        return replace(
            scope,
            private={**scope.private, buffer.name: len(scope.masks)},
            shapes={**scope.shapes, buffer.name: buffer.shape},
        )

    def _let(self, s: Let, scope: _Scope) -> Stmt:
        """Inline index arithmetic with lanes, and keep other values with lanes in a buffer: they have no names."""
        value = self.expr(s.value, scope)
        if value.type.lanes == 1:
            inner = replace(scope, context=scope.context.with_let(s.var, value))
            return Let(s.var, value, self.stmt(s.body, inner))
        if isinstance(value, Ramp):
            return self.stmt(s.body, replace(scope, values={**scope.values, s.var.name: value}))
        buffer = Buffer(s.var.name, value.type.dtype, (Const(self._lanes),), "register")
        here = Load(buffer.name, (self._lane(),), buffer.dtype)
        inner = self._with_private(replace(scope, values={**scope.values, s.var.name: here}), buffer)
        return b.alloc(buffer, b.block((Store(buffer.name, (self._lane(),), value), self.stmt(s.body, inner))))

    def _store(self, s: Store, scope: _Scope) -> Stmt:
        indices = tuple(self.expr(i, scope) for i in s.indices)
        value = v.widen(self.expr(s.value, scope), self._lanes)
        masks = scope.masks if s.mask is None else (*scope.masks, v.widen(self.expr(s.mask, scope), self._lanes))
        if s.buffer in scope.private:
            return self._private_store(s.buffer, indices, value, masks[scope.private[s.buffer] :], scope)
        if all(i.type.lanes == 1 for i in indices):
            if not indices or not masks:
                raise InternalError(f"every lane of '{self._var}' stores to the same element of '{s.buffer}'")
            indices = (*indices[:-1], v.widen(indices[-1], self._lanes))
        mask = v.conjunction(masks)
        if mask is not None and self._distinct(s.buffer, indices, scope):
            self._registers.selected.add(s.buffer)
            return Store(s.buffer, indices, Select(mask, value, Load(s.buffer, indices, value.type.dtype)))
        return Store(s.buffer, indices, value, mask)

    def _distinct(self, buffer: str, indices: tuple[Expr, ...], scope: _Scope) -> bool:
        """Return True if lanes access adjacent elements of a register buffer, in bounds whatever the masks are."""
        if buffer not in self._registers.names or not indices:
            return False
        *others, last = indices
        if not isinstance(last, Ramp) or last.stride != Const(1) or any(i.type.lanes != 1 for i in others):
            return False
        ends = (last.base, fold(b.add(last.base, self._lanes - 1)))
        return all(self._in_bounds(buffer, (*others, end), scope) for end in ends)

    def _private_store(
        self, buffer: str, indices: tuple[Expr, ...], value: Expr, masks: tuple[Expr, ...], scope: _Scope
    ) -> Stmt:
        place = (*indices, self._lane())
        mask = v.conjunction(masks)
        if mask is not None and not self._all_in_bounds(buffer, indices, scope):
            return Store(buffer, place, value, mask)
        if mask is not None:
            self._masked.add(buffer)
            value = Select(mask, value, Load(buffer, place, value.type.dtype))
        return Store(buffer, place, value)

    def _lane(self) -> Expr:
        return Ramp(Const(0), Const(1), self._lanes)

    # Expressions ------------------------------------------------------------------------------------

    def expr(self, e: Expr, scope: _Scope) -> Expr:
        """Return the expression for all lanes at once; scalar if all lanes agree."""
        match e:
            case Const():
                return e
            case Var():
                return scope.values.get(e.name, e)
            case Load():
                return self._load(e, scope)
            case Ramp() | Broadcast() | Shuffle():
                raise InternalError(f"vector code inside the vector loop '{self._var}'")
            case Unary():
                return fold(Unary(e.op, self.expr(e.operand, scope)))
            case Cast():
                return v.cast(e, self.expr(e.operand, scope))
            case BitCast():
                return v.bit_cast(e, self.expr(e.operand, scope))
            case Binary():
                return self._binary(e, scope)
            case Compare():
                left, right = self.expr(e.left, scope), self.expr(e.right, scope)
                if left.type.lanes == right.type.lanes == 1:
                    return fold(Compare(e.op, left, right))
                return v.compare(e, left, right, self._lanes)
            case Select():
                return self._select(e, scope)
            case Word() | Dot():
                parts = tuple(self.expr(o, scope) for o in operands(e))
                scalar = all(p.type.lanes == 1 for p in parts)
                return with_operands(e, parts if scalar else tuple(v.widen(p, self._lanes) for p in parts))
            case Call():
                arguments = tuple(self.expr(a, scope) for a in e.arguments)
                if all(a.type.lanes == 1 for a in arguments):
                    return Call(e.function, arguments)
                return v.call(e.function, arguments, self._lanes)

    def _select(self, e: Select, scope: _Scope) -> Expr:
        condition = self.expr(e.condition, scope)
        if_true, if_false = self.expr(e.if_true, scope), self.expr(e.if_false, scope)
        if condition.type.lanes == if_true.type.lanes == if_false.type.lanes == 1:
            return fold(Select(condition, if_true, if_false))
        return v.select(condition, if_true, if_false, self._lanes)

    def _binary(self, e: Binary, scope: _Scope) -> Expr:
        left, right = self.expr(e.left, scope), self.expr(e.right, scope)
        if e.op in ("floordiv", "mod") and scope.masks:
            right = self._safe_divisor(right, scope)
        if left.type.lanes == right.type.lanes == 1:
            return fold(Binary(e.op, left, right))
        return v.binary(e.op, left, right, self._lanes)

    def _safe_divisor(self, divisor: Expr, scope: _Scope) -> Expr:
        """Return the divisor with 1 in the inactive lanes, unless it is known not to be 0 there."""
        if isinstance(divisor, Const) or scope.context.proves(b.compare("gt", divisor, Const(0, divisor.type))):
            return divisor
        mask = v.conjunction(scope.masks)
        assert mask is not None
        return v.select(mask, divisor, Const(1, divisor.type), self._lanes)

    def _load(self, e: Load, scope: _Scope) -> Expr:
        indices = tuple(self.expr(i, scope) for i in e.indices)
        own = None if e.mask is None else self.expr(e.mask, scope)
        if e.buffer in scope.private:
            return self._private_load(e, indices, own, scope)
        masks = scope.masks if own is None else (*scope.masks, v.widen(own, self._lanes))
        if own is None and self._distinct(e.buffer, indices, scope):
            masks = ()
        if any(i.type.lanes != 1 for i in indices):
            return Load(e.buffer, indices, e.dtype, v.conjunction(masks))
        if not masks or self._in_bounds(e.buffer, indices, scope):
            return Load(e.buffer, indices, e.dtype)
        if not indices:
            return Load(e.buffer, indices, e.dtype)
        gathered = (*indices[:-1], v.widen(indices[-1], self._lanes))
        return Load(e.buffer, gathered, e.dtype, v.conjunction(masks))

    def _private_load(self, e: Load, indices: tuple[Expr, ...], own: Expr | None, scope: _Scope) -> Expr:
        masks = scope.masks[scope.private[e.buffer] :]
        if not masks or self._all_in_bounds(e.buffer, indices, scope):
            return Load(e.buffer, (*indices, self._lane()), e.dtype, own)
        own_masks = () if own is None else (v.widen(own, self._lanes),)
        return Load(e.buffer, (*indices, self._lane()), e.dtype, v.conjunction((*masks, *own_masks)))

    def _all_in_bounds(self, buffer: str, indices: tuple[Expr, ...], scope: _Scope) -> bool:
        """Return True if all lanes' accesses of a buffer of the loop's own are in bounds whatever the masks are."""
        for i, size in zip(indices, scope.shapes[buffer][:-1], strict=True):
            ends = [i]
            if isinstance(i, Ramp):
                ends = [i.base, fold(b.add(i.base, b.mul(i.stride, self._lanes - 1)))]
            elif i.type.lanes != 1:
                return False
            for end in ends:
                inside = (b.compare("ge", end, 0), b.compare("lt", end, size))
                if not all(scope.context.proves(condition) for condition in inside):
                    return False
        return True

    def _in_bounds(self, buffer: str, indices: tuple[Expr, ...], scope: _Scope) -> bool:
        """Return True if an access is in bounds whatever the masks are."""
        return all(
            scope.context.proves(b.compare("ge", i, 0)) and scope.context.proves(b.compare("lt", i, size))
            for i, size in zip(indices, scope.shapes[buffer], strict=True)
        )


def _stores_first(s: Stmt, buffer: str) -> bool:
    """Return True if a statement begins with a store of all of a buffer that has one element a lane."""
    first = s.statements[0] if isinstance(s, Block) and s.statements else s
    if not isinstance(first, Store) or first.buffer != buffer or len(first.indices) != 1:
        return False
    return not any(isinstance(e, Load) and e.buffer == buffer for e in walk_expr(first.value))
