"""The value of a definition as loop IR: expressions, and the statements that compute their reductions first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from opgen.diagnostics import InternalError
from opgen.dtypes import BOOL, FLOAT32, FLOAT64, INT64, DType
from opgen.loop import build as b
from opgen.loop import nodes as loop
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Buffer, Call, Compare, For, Load, Select, Stmt, Store, Type, Unary
from opgen.loop.walk import free_vars, walk_expr
from opgen.lower.chance import drawn
from opgen.lower.constants import Term, terms
from opgen.lower.functions import applied, combined
from opgen.lower.parameters import Parameters
from opgen.lower.repeated import repeated
from opgen.lower.scalars import COMPARE, INTEGER, Scalars, has_floats
from opgen.lower.scope import Names, Scope, Spare, TensorAccess
from opgen.lower.variant import Variant
from opgen.spec.model.model import (
    PREDICATES,
    Apply,
    AttrValue,
    BitCast,
    Conditional,
    Convert,
    Element,
    EnumIs,
    Expr,
    FunctionCall,
    Index,
    MultiplyAdd,
    Negate,
    Not,
    Number,
    Operation,
    OpSpec,
    Present,
    Read,
    Real,
    Reduce,
    Scatter,
    SizeOf,
    Symbol,
    Whole,
)
from opgen.spec.model.walk import conjuncts, operands, reads_values, subexpressions

_STEP: dict[str, loop.BinaryOp] = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}


class Mathematics:
    """Lowers the values of one kernel's definitions.

    `partial`: some values are computed and not stored, because their indices are beyond their range; their reads are
    checked before.  `stepping` are the tensors that are computed step by step: rows read before the first step exist.
    """

    def __init__(
        self,
        op: OpSpec,
        variant: Variant,
        parameters: Parameters,
        tensors: Mapping[str, TensorAccess],
        names: Names,
        partial: bool = False,
        stepping: frozenset[str] = frozenset(),
    ) -> None:
        self._partial = partial
        self._stepping = stepping
        self._op = op
        self._variant = variant
        self._parameters = parameters
        self._scalars = Scalars(parameters, variant)
        self._tensors = tensors
        self._names = names
        self._shared: dict[tuple[Expr, DType, tuple[loop.Expr, ...]], Load] = {}
        self._rooms: dict[DType, Buffer] = {}
        self._proved: dict[tuple[int, loop.Expr], tuple[Context, bool]] = {}
        self._once: dict[Expr, loop.Expr] = {}

    # Types ------------------------------------------------------------------------------------------

    def compute_type(self, name: str) -> DType:
        return self._variant.dtype(name).compute_type

    def type_of(self, e: Expr) -> DType | None:
        """Return the scalar type of an expression; None if it takes the type of the other operand."""
        match e:
            case Number():
                return BOOL if isinstance(e.value, bool) else None
            case Element() | Real():
                return None
            case Symbol() | Index() | SizeOf() | FunctionCall() | Whole():
                return INT64
            case AttrValue():
                return {"int": INT64, "bool": BOOL}.get(self._op.attr(e.attr).kind)
            case EnumIs() | Present() | Not():
                return BOOL
            case Operation():
                if e.op in COMPARE or e.op in ("and", "or"):
                    return BOOL
                return self.type_of(e.left) or self.type_of(e.right)
            case Negate() | MultiplyAdd():
                return next((t for t in map(self.type_of, operands(e)) if t is not None), None)
            case Conditional():
                return self.type_of(e.if_true) or self.type_of(e.if_false)
            case Apply():
                return BOOL if e.function in PREDICATES else self.type_of(e.argument)
            case Convert() | BitCast():
                return self.compute_type(e.to)
            case Read():
                return self._tensors[e.tensor].buffer.dtype.compute_type
            case Reduce():
                return self.type_of(e.body) if e.place is None else INT64

    # Values -----------------------------------------------------------------------------------------

    def value(self, e: Expr, want: DType, scope: Scope) -> loop.Expr:
        """Return an expression of type `want` (the compute type of its surroundings)."""
        match e:
            case Number():
                return b.const(e.value, want)
            case AttrValue():
                return b.cast(want, self._parameters.variable(e))
            case Symbol() | Index() | SizeOf() | FunctionCall() | Whole():
                return b.cast(want, self._scalars.lower(e, scope.indices))
            case Operation():
                return self._operation(e, want, scope)
            case Negate():
                return Unary("neg", self.value(e.operand, want, scope))
            case Conditional():
                condition = self.condition(e.condition, scope)
                if isinstance(condition, loop.Const):
                    return self.value(e.if_true if condition.value else e.if_false, want, scope)
                if _is_seldom(e):
                    return self._seldom(e, condition, want, scope)
                if_true = self.value(e.if_true, want, scope.under(condition))
                return Select(condition, if_true, self.value(e.if_false, want, scope.under(b.negate(condition))))
            case Apply() if e.function not in PREDICATES:
                return applied(e.function, self.value(e.argument, want, scope))
            case MultiplyAdd():
                return loop.Call("fma", tuple(self.value(o, want, scope) for o in operands(e)))
            case Convert():
                return self._convert(e, want, scope)
            case BitCast():
                given = self.value(e.operand, self.type_of(e.operand) or want, scope)
                return b.cast(want, b.bit_cast(self.compute_type(e.to), given))
            case Read():
                return self._read(e, scope)
            case Element():
                return self._element(e, want, scope)
            case Reduce():
                if e in self._once:
                    return self._once[e]
                found = terms(e)
                return self._reduce(e, want, scope) if found is None else self._sum(found, want, scope)
        return b.cast(want, self.condition(e, scope))

    def definition(self, e: Expr, want: DType, scope: Scope) -> loop.Expr:
        """Return the value of a definition; a reduction that occurs in it several times is computed once, before it."""
        self._once.clear()
        for reduce in repeated(e):
            if self.type_of(reduce) == want:
                self._once[reduce] = self.value(reduce, want, scope)
        return self.value(e, want, scope)

    def _seldom(self, e: Conditional, condition: loop.Expr, want: DType, scope: Scope) -> loop.Expr:
        """Return a value with one side that is computed only when it is taken."""
        side = replace(scope.under(condition), before=[])
        if_true, if_false = self.value(e.if_true, want, side), self.value(e.if_false, want, scope)
        buffer = Buffer(self._names.fresh("element"), want, (), "register")
        scope.allocs.append(buffer)
        computed = b.block((*side.before, Store(buffer.name, (), if_true)))
        scope.before.append(b.when(condition, computed, Store(buffer.name, (), if_false)))
        return Load(buffer.name, (), want)

    def condition(self, e: Expr, scope: Scope) -> loop.Expr:
        """Return a bool; constant where the variant decides it."""
        if isinstance(e, Not):
            return b.negate(self.condition(e.operand, scope))
        if isinstance(e, Operation) and e.op in ("and", "or"):
            left = self.condition(e.left, scope)
            right = self.condition(e.right, scope.under(left if e.op == "and" else b.negate(left)))
            return b.both(left, right) if e.op == "and" else b.either(left, right)
        if isinstance(e, Operation) and e.op in COMPARE:
            dtype = self.type_of(e.left) or self.type_of(e.right) or self._untyped(e)
            if dtype is not None and (dtype not in (INT64, BOOL) or _of_elements(e)):
                left, right = self.value(e.left, dtype, scope), self.value(e.right, dtype, scope)
                return Compare(COMPARE[e.op], left, right)
        if isinstance(e, Conditional):
            condition = self.condition(e.condition, scope)
            if_true = self.condition(e.if_true, scope.under(condition))
            return b.select(condition, if_true, self.condition(e.if_false, scope.under(b.negate(condition))))
        if isinstance(e, Read | Convert):
            return self.value(e, BOOL, scope)
        if isinstance(e, Apply):
            return applied(e.function, self.value(e.argument, self.type_of(e.argument) or FLOAT64, scope))
        return self._scalars.lower(e, scope.indices)

    def _untyped(self, e: Operation) -> DType | None:
        """Return the type for comparing numbers that are not elements; None if they are integers of shapes."""
        if reads_values(e):
            return FLOAT32
        values = [v for n in subexpressions(e) if isinstance(n, Element) for v in n.constant.values]
        if has_floats(self._op, e) or any(v.denominator > 1 or not INT64.least <= v <= INT64.greatest for v in values):
            return FLOAT64
        return INT64 if values else None

    def _operation(self, e: Operation, want: DType, scope: Scope) -> loop.Expr:
        if e.op in COMPARE or e.op in ("and", "or"):
            return b.cast(want, self.condition(e, scope))
        if e.op == "random":
            seed, number = self.value(e.left, FLOAT64, scope), self.value(e.right, INT64, scope)
            return b.cast(want, drawn(seed, number, self._names, scope))
        if e.op in ("//", "%", "ceildiv"):
            if not _of_elements(e):
                return b.cast(want, self._scalars.lower(e, scope.indices))
            if want == INT64 and not _of_elements(e.right) and e.right != Number(0):
                return INTEGER[e.op](self.value(e.left, want, scope), self.value(e.right, want, scope))
        if e.op == "pow" and want == INT64 and not _of_elements(e):
            return self._scalars.lower(e, scope.indices)
        return combined(e.op, self.value(e.left, want, scope), self.value(e.right, want, scope))

    def _convert(self, e: Convert, want: DType, scope: Scope) -> loop.Expr:
        target = self.compute_type(e.to)
        source = self.type_of(e.operand) or (FLOAT64 if target == BOOL else target)
        value = self.value(e.operand, source, scope)
        dtype = self._variant.dtype(e.to)
        if e.to not in self._variant.types or (dtype.is_int and dtype.is_stored):  # which saturates, or wraps
            value = b.cast(dtype, value)
        return b.cast(want, b.cast(target, value))

    # Reads ------------------------------------------------------------------------------------------

    def _read(self, e: Read, scope: Scope) -> loop.Expr:
        access = self._tensors[e.tensor]
        subscripts = [self._subscript(i, scope) for i in e.indices]
        sizes: list[loop.Expr] = [b.index(0)] * len(subscripts)
        for position, axis in enumerate(access.order):
            sizes[axis] = access.buffer.shape[position]
        outside: list[loop.Expr] = []
        for axis, stretched in enumerate(access.stretched):
            size = sizes[axis] if stretched is None else stretched
            if reads_values(e.indices[axis]):
                spare = access.spare if access.spare is not None and access.spare.axis == axis else Spare(axis, 0, 0)
                own = b.sub(size, spare.before + spare.after)
                outside += self._beyond(subscripts[axis], own, e.outside is None, scope)
                kept = b.maximum(b.minimum(subscripts[axis], b.sub(own, 1)), b.index(0))
                subscripts[axis] = b.add(kept, spare.before)
            elif access.spare is not None and access.spare.axis == axis:
                subscripts[axis] = b.add(subscripts[axis], access.spare.before)
                outside += self._beyond_steps(subscripts[axis], size, access.spare, e.tensor, scope)
            else:
                outside += self._unproved(subscripts[axis], size, scope.context)
            if stretched is not None:
                subscripts[axis] = b.minimum(subscripts[axis], b.sub(sizes[axis], 1))
        load = Load(access.buffer.name, tuple(subscripts[axis] for axis in access.order), access.buffer.dtype)
        value = b.cast(access.buffer.dtype.compute_type, load)
        if not outside:
            fragile = scope.reached and any(_is_fragile(s) for s in subscripts)
            return self._guarded(value, [], b.const(0, value.type.dtype), scope) if fragile else value
        if e.outside is not None:
            beyond = scope.under(b.negate(b.all_of(outside)))
            return self._guarded(value, outside, self.value(e.outside, value.type.dtype, beyond), scope)
        made = any(reads_values(i) for i in e.indices)
        if scope.conditions is None and made and not scope.path and not self._partial:
            scope.around += outside
            return value
        if scope.conditions is None:  # of an op that a person wrote it is proved; of one that was composed it is so
            return self._guarded(value, outside, b.const(0, value.type.dtype), scope)
        if not scope.path:
            scope.conditions += outside
            return value
        taken = scope.context
        for condition in scope.path:
            taken = taken.with_condition(condition)
        scope.require(half for half in outside if not taken.proves(half))
        return self._guarded(value, outside, b.const(0, value.type.dtype), scope)

    def place(self, at: Sequence[Expr], access: TensorAccess, scope: Scope) -> tuple[loop.Expr, ...]:
        """Return the place of an update in a tensor's memory; where it would be outside, there is none."""
        assert scope.conditions is not None
        found: list[loop.Expr] = []
        for position, axis in enumerate(access.order):
            size, subscript = access.buffer.shape[position], self._subscript(at[axis], scope)
            if reads_values(at[axis]):
                scope.conditions += self._beyond(subscript, size, True, scope)
                subscript = b.maximum(b.minimum(subscript, b.sub(size, 1)), b.index(0))
            else:
                scope.conditions += self._unproved(subscript, size, scope.context)
            found.append(subscript)
        return tuple(found)

    def _subscript(self, e: Expr, scope: Scope) -> loop.Expr:
        """Return a subscript: an integer of the shape language, or one that is made of elements."""
        return self.value(e, INT64, scope) if _of_elements(e) else self._scalars.lower(e, scope.indices)

    def _beyond(self, subscript: loop.Expr, size: loop.Expr, checked: bool, scope: Scope) -> list[loop.Expr]:
        """Return the tests of a subscript that is made of elements, which is then kept inside all the same.

        If it was checked before, all are inside, unless the dimension is empty.
        """
        some = b.compare("ge", size, 1)
        asked = [] if scope.context.proves(some) else [some]
        return asked if checked else [*asked, b.compare("ge", subscript, 0), b.compare("lt", subscript, size)]

    def _beyond_steps(
        self, row: loop.Expr, rows: loop.Expr, spare: Spare, tensor: str, scope: Scope
    ) -> list[loop.Expr]:
        """Return the tests needed for a row: within a step all rows exist, else only those of the tensor itself."""
        if tensor in self._stepping:
            return self._unproved(row, rows, scope.context)
        inside = b.sub(rows, spare.before + spare.after)
        return self._unproved(b.sub(row, spare.before), inside, scope.context)

    def _unproved(self, subscript: loop.Expr, size: loop.Expr, context: Context) -> list[loop.Expr]:
        """Return the halves of 0 <= subscript < size that do not follow from the context."""
        halves = (b.compare("ge", subscript, 0), b.compare("lt", subscript, size))
        for half in halves:
            if (id(context), half) not in self._proved:
                self._proved[id(context), half] = context, context.proves(half)
        return [half for half in halves if not self._proved[id(context), half][1]]

    def _guarded(self, value: loop.Expr, inside: list[loop.Expr], otherwise: loop.Expr, scope: Scope) -> loop.Expr:
        """`value` where all conditions hold, else `otherwise`, through a local variable: a select would read anyway.

        Where it is not taken, the conditions may not make sense: they come after those that it is taken.
        """
        buffer = Buffer(self._names.fresh("element"), value.type.dtype, (), "register")
        scope.allocs.append(buffer)
        condition = b.all_of([*scope.reached, *inside])
        scope.before.append(b.when(condition, Store(buffer.name, (), value), Store(buffer.name, (), otherwise)))
        return Load(buffer.name, (), buffer.dtype)

    # Reductions -------------------------------------------------------------------------------------

    def _reduce(self, e: Reduce, want: DType, scope: Scope) -> loop.Expr:
        if isinstance(e, Scatter):
            raise InternalError(f"updates stand in a value: {e.kind}")
        dtype = self.type_of(e.body) or want
        accumulator = Buffer(self._names.fresh("acc"), dtype, (), "register")
        variables: dict[str, loop.Var] = {}
        extents: dict[str, loop.Expr] = {}
        context = scope.context
        for r in e.indices:
            extents[r.name] = self._scalars.lower(r.extent, {**scope.indices, **variables})
            variables[r.name] = b.var(self._names.fresh(r.name))
            context = context.with_loop(variables[r.name].name, b.index(0), extents[r.name])
        inner = Scope({**scope.indices, **variables}, context, [])
        if e.condition is not None:
            on_values = [c for c in conjuncts(e.condition) if reads_values(c)]
            condition = b.all_of([self.condition(c, inner) for c in conjuncts(e.condition) if c not in on_values])
            inner.conditions = [c for c in parted(condition) if not context.proves(c)]
            inner.context = context.with_condition(condition)
            inner.late += [self.condition(c, inner) for c in on_values]
        step = self._step(e, accumulator, inner)
        nest = inner.wrap([step])
        pending = list(dict.fromkeys(inner.conditions or []))
        for name in reversed(variables):
            here = [c for c in pending if variables[name].name in free_vars(c)]
            pending = [c for c in pending if c not in here]
            nest = _when_all(here, nest)
            nest = For(variables[name].name, b.index(0), extents[name], nest)
        scope.allocs.append(accumulator)
        scope.before.append(Store(accumulator.name, (), _neutral(e.kind, dtype)))
        scope.before.append(_when_all([*scope.reached, *pending], nest))
        return Load(accumulator.name, (), dtype)

    def _sum(self, found: tuple[Term, ...], dtype: DType, scope: Scope) -> loop.Expr:
        """Return a sum of terms with literal factors, from its first term on."""
        total: loop.Expr | None = None
        for factor, rest in found:
            number = b.const(float(factor) if dtype.is_float else int(factor), dtype)
            value = number if rest is None else self._term(rest, dtype, scope)
            if rest is not None and abs(factor) != 1:
                value = _multiplied(number, value, total)
            elif isinstance(total, Unary) and factor > 0:
                value = loop.Binary("sub", value, total.operand)
            elif total is not None:
                value = loop.Binary("add" if rest is None or factor > 0 else "sub", total, value)
            elif rest is not None and factor < 0:
                value = Unary("neg", value)
            total = value
        return b.const(0, dtype) if total is None else total

    def _term(self, e: Expr, dtype: DType, scope: Scope) -> loop.Expr:
        """Return the value of a term, 0 if a read of it is outside; values shared by several sums are computed once."""
        if scope.conditions is not None:
            return self.value(e, dtype, scope)
        reached = tuple(scope.reached)
        if (e, dtype, reached) in self._shared:
            return self._shared[e, dtype, reached]
        inner = replace(scope, conditions=[], allocs=[], before=[], late=[], path=())
        found = terms(e) if isinstance(e, Reduce) else None
        # The terms of a sum of terms exist or not one by one, and so have no conditions in common.
        value = self.value(e, dtype, inner) if found is None else self._sum(found, dtype, scope)
        scope.allocs += inner.allocs
        if dtype not in self._rooms:
            self._rooms[dtype] = Buffer(self._names.fresh("part"), dtype, (), "register")
        place = (b.index(sum(known == dtype for _, known, _ in self._shared)),)
        room = self._rooms[dtype].name
        if inner.late:
            value = Select(b.all_of(inner.late), value, b.const(0, dtype))
        computed = b.block((*inner.before, Store(room, place, value)))
        zero = Store(room, place, b.const(0, dtype))
        scope.before.append(_when_all([*reached, *dict.fromkeys(inner.conditions or [])], computed, zero))
        self._shared[e, dtype, reached] = Load(room, place, dtype)
        return self._shared[e, dtype, reached]

    def shared(self) -> list[Buffer]:
        """Return the buffers of values that several sums share."""
        counts = {dtype: sum(known == dtype for _, known, _ in self._shared) for dtype in self._rooms}
        return [replace(room, shape=(b.index(counts[dtype]),)) for dtype, room in self._rooms.items()]

    def _element(self, e: Element, dtype: DType, scope: Scope) -> loop.Expr:
        """Return an element of a constant: a literal, or a choice where loops give the indices."""
        position: loop.Expr = b.index(0)
        for size, index in zip(e.constant.shape, e.indices, strict=True):
            position = b.add(b.mul(position, size), self._subscript(index, scope))
        literals = [b.const(float(v) if dtype.is_float else int(v), dtype) for v in e.constant.values]
        if isinstance(position, loop.Const):
            return literals[int(position.value)]
        return _chosen(position, literals, 0)

    def _step(self, e: Reduce, accumulator: Buffer, scope: Scope) -> Stmt:
        """acc = acc (+, *, max, min) body; a sum of products of floats is a fused multiply-add."""
        dtype = accumulator.dtype
        so_far = Load(accumulator.name, (), dtype)
        if e.kind == "sum" and dtype.is_float and isinstance(e.body, Operation) and e.body.op == "*":
            factors = (self.value(e.body.left, dtype, scope), self.value(e.body.right, dtype, scope))
            total: loop.Expr = Call("fma", (*factors, so_far))
        else:
            total = loop.Binary(_STEP[e.kind], so_far, self.value(e.body, dtype, scope))
        if scope.late:
            total = Select(b.all_of(scope.late), total, so_far)
        return Store(accumulator.name, (), total)


def _of_elements(e: Expr) -> bool:
    """Return True if an expression is made of elements, not of integers of shapes and indices alone."""
    return any(isinstance(n, Read | Reduce | Element | Convert) for n in subexpressions(e))


def _chosen(position: loop.Expr, values: Sequence[loop.Expr], first: int) -> loop.Expr:
    """Return the value at a position, counted from `first`, by halving."""
    if len(values) == 1:
        return values[0]
    half = len(values) // 2
    below, above = _chosen(position, values[:half], first), _chosen(position, values[half:], first + half)
    return Select(b.compare("lt", position, first + half), below, above)


def parted(condition: loop.Expr) -> list[loop.Expr]:
    """Return the conjuncts of a condition."""
    if isinstance(condition, loop.Binary) and condition.op == "and":
        return parted(condition.left) + parted(condition.right)
    return [] if condition == b.TRUE else [condition]


def _is_seldom(e: Conditional) -> bool:
    """Return True if a reduction is taken only where an element is NaN."""
    test = e.condition
    is_nan = isinstance(test, Operation) and test.op == "!=" and test.left == test.right
    return is_nan and isinstance(e.if_false, Read) and any(isinstance(n, Reduce) for n in subexpressions(e.if_true))


def _is_fragile(subscript: loop.Expr) -> bool:
    """Return True if a subscript proved to be inside may be outside where its integers overflow.

    A subscript of additions and multiplications alone wraps to the same number.
    """
    parts = [n for n in walk_expr(subscript) if isinstance(n, loop.Binary | Select)]
    return any(isinstance(n, Select) or n.op not in ("add", "sub", "mul") for n in parts)


def _multiplied(number: loop.Expr, value: loop.Expr, total: loop.Expr | None) -> loop.Expr:
    """total + number * value, rounded once where the type is floating."""
    if total is None:
        return loop.Binary("mul", value, number)
    if number.type.dtype.is_float:
        return Call("fma", (value, number, total))
    return loop.Binary("add", total, loop.Binary("mul", value, number))


def _when_all(conditions: list[loop.Expr], body: Stmt, otherwise: Stmt | None = None) -> Stmt:
    return b.when(b.all_of(conditions), body, otherwise)


def _neutral(kind: str, dtype: DType) -> loop.Expr:
    """Return the result of a reduction over nothing."""
    if kind in ("sum", "prod"):
        return b.const(0 if kind == "sum" else 1, dtype)
    if dtype.is_float:
        return loop.Const(-math.inf if kind == "max" else math.inf, Type(dtype))
    return b.const(dtype.least if kind == "max" else dtype.greatest, dtype)
