"""What the mathematics of a resolved model are for one call: in float64, over whole index spaces, with bounds.

Written from the language page alone: nothing of the lowering, the loop IR or its interpreter is used.  Each index has
an axis of numpy's, those of inner reductions before those around them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from opgen.dtypes import DTYPES, lookup
from opgen.grad.algebra import conjunction
from opgen.spec.call.environment import Environment
from opgen.spec.call.environment import evaluate as shape_value
from opgen.spec.model import model as m
from tests.verification.random_programs import bounded
from tests.verification.random_programs.bounded import Array, Value, exact
from tests.verification.random_programs.reductions import reduced

MOST = 6_000_000
"""Most places of an index space."""


class TooLarge(Exception):
    """An index space is too large to be evaluated."""


class Contradiction(Exception):
    """A read that no reduction holds is outside its tensor, and says no value for that."""


@dataclass(frozen=True)
class Scope:
    """The indices in scope with their values; `taken` is where the expression counts, `doubted` where that cannot be
    told within the bounds; in a reduction, `missing` gathers the places whose term is left out, and may be.
    """

    indices: Mapping[str, Array]
    taken: Array = field(default_factory=lambda: np.ones((), np.bool_))
    doubted: Array = field(default_factory=lambda: np.zeros((), np.bool_))
    missing: list[tuple[Array, Array]] | None = None

    def under(self, condition: Array, doubt: Array) -> Scope:
        """Where a condition holds too, of which `doubt` is the bound."""
        doubted = self.doubted | (self.taken & (doubt > 0))
        return replace(self, taken=self.taken & condition, doubted=doubted)


@dataclass
class Evaluator:
    """`environment` is the call, `types` what stands for each type variable, `tensors` what is known so far."""

    environment: Environment
    types: Mapping[str, str]
    tensors: dict[str, Value]

    def run(self) -> dict[str, Value]:
        """The outputs, in logical order of dimensions, each rounded to its type."""
        op = self.environment.op
        outputs: dict[str, Value] = {}
        with np.errstate(all="ignore"):
            for definition in op.definitions:
                made = self._defined(definition)
                if not definition.is_output:
                    self.tensors[definition.tensor] = made
                    continue
                name = next(o.dtype for o in op.outputs if o.name == definition.tensor)
                dtype = self._dtype(name)
                stored = bounded.convert(made, dtype)
                outputs[definition.tensor] = stored
        return outputs

    def _dtype(self, name: str) -> str:
        found = lookup(self.types.get(name, name))
        assert found is not None, name
        return found.name

    def _compute(self, name: str) -> str:
        return DTYPES[self._dtype(name)].compute

    def _size(self, e: m.Expr) -> int:
        return int(shape_value(e, self.environment))

    def _defined(self, d: m.Definition) -> Value:
        """The tensor of a definition, before it is rounded to the output's type."""
        scope = self._ranged(Scope({}), d.indices, {r.name: self._size(r.extent) for r in d.indices})
        shape = tuple(self._size(e) for e in d.dims)
        space = tuple(self._size(r.extent) for r in d.indices)
        found = bounded.convert(self.value(_gathered(d.value, d.subscripts), scope), self._compute(d.dtype))
        places = tuple(np.broadcast_to(self.value(s, scope).v, space) for s in d.subscripts)

        def placed(part: Array) -> Array:
            whole = np.zeros(shape, part.dtype)
            whole[places] = np.broadcast_to(part, space)
            return whole

        t, size = (None if p is None else placed(p) for p in (found.t, found.m))
        return Value(placed(found.v), placed(found.e), found.dtype, t, size)

    def _ranged(self, scope: Scope, indices: tuple[m.IndexRange, ...], extents: Mapping[str, int]) -> Scope:
        """The scope with more indices: the first of them has the axis that comes first."""
        axes, known = len(scope.indices), dict(scope.indices)
        for i, r in enumerate(indices):
            after = axes + len(indices) - 1 - i
            known[r.name] = np.arange(extents[r.name]).reshape(-1, *(1,) * after)
        return Scope(known, scope.taken)

    # Expressions --------------------------------------------------------------------------------------

    def value(self, e: m.Expr, scope: Scope) -> Value:
        match e:
            case m.Number():
                return exact(e.value, "bool" if isinstance(e.value, bool) else None)
            case m.Index():
                return exact(scope.indices[e.name], "int64")
            case m.Symbol() | m.SizeOf() | m.FunctionCall() | m.Whole():
                return exact(self._size(e), "int64")
            case m.Real():
                return exact(shape_value(e, self.environment), None)
            case m.AttrValue():
                kind = self.environment.op.attr(e.attr).kind
                return exact(shape_value(e, self.environment), {"int": "int64", "bool": "bool"}.get(kind))
            case m.EnumIs() | m.Present():
                return exact(bool(shape_value(e, self.environment)), "bool")
            case m.Operation():
                return self._operation(e, scope)
            case m.Negate():
                return bounded.negated(self.value(e.operand, scope))
            case m.Not():
                a = self.value(e.operand, scope)
                return replace(a, v=~a.v)
            case m.Conditional():
                return self._conditional(e, scope)
            case m.Apply():
                return bounded.applied(e.function, self.value(e.argument, scope))
            case m.Convert():
                return self._converted(e, scope)
            case m.Read():
                return self._read(e, scope)
            case m.Reduce():
                return self._reduce(e, scope)
            case m.BitCast():
                return bounded.bits_as(self.value(e.operand, scope), self._dtype(e.to))
            case m.MultiplyAdd():
                product = bounded.arithmetic("*", self.value(e.left, scope), self.value(e.right, scope))
                return bounded.arithmetic("+", product, self.value(e.added, scope))
            case m.Element():
                raise NotImplementedError("elements of constants")

    def _operation(self, e: m.Operation, scope: Scope) -> Value:
        a = self.value(e.left, scope)
        if e.op in ("and", "or"):
            narrower = scope.under(a.v if e.op == "and" else ~a.v, a.e)
            return bounded.logic(e.op, a, self.value(e.right, narrower))
        b = self.value(e.right, scope)
        if e.op in ("==", "!=", "<", "<=", ">", ">="):
            return bounded.compared(e.op, a, b)
        if e.op in ("//", "%", "ceildiv"):
            return exact(_divided(e.op, a.v, b.v), "int64")
        return bounded.arithmetic(e.op, a, b)

    def _conditional(self, e: m.Conditional, scope: Scope) -> Value:
        c = self.value(e.condition, scope)
        a, b = self.value(e.if_true, scope.under(c.v, c.e)), self.value(e.if_false, scope.under(~c.v, c.e))
        return bounded.conditional(c, a, b)

    def _converted(self, e: m.Convert, scope: Scope) -> Value:
        """A cast to a type's name rounds to it, one to a type variable to its compute type."""
        a = self.value(e.operand, scope)
        if e.to not in self.types:
            a = bounded.convert(a, self._dtype(e.to))
        return bounded.convert(a, self._compute(e.to))

    def _read(self, e: m.Read, scope: Scope) -> Value:
        tensor = self.tensors[e.tensor]
        shape = tensor.v.shape
        subscripts = [self.value(i, scope).v for i in e.indices]
        outside = np.zeros((), np.bool_)
        places = []
        for axis, (at, size) in enumerate(zip(subscripts, shape, strict=True)):
            stands_for = self._stretched(e.tensor, axis, size)
            outside = outside | (at < 0) | (at >= stands_for)
            places.append(np.clip(at, 0, max(size - 1, 0)))
        found = _elements(tensor, tuple(places), 0 in shape)
        if e.outside is not None:
            other = self.value(e.outside, replace(scope, taken=scope.taken & outside))
            return bounded.conditional(exact(~outside, "bool"), found, other)
        if scope.missing is not None:
            scope.missing.append((outside & scope.taken, outside & scope.doubted))
        elif (outside & scope.taken).any():
            raise Contradiction(f"a read of '{e.tensor}' outside it")
        return found

    def _stretched(self, tensor: str, axis: int, size: int) -> int:
        """The size that a dimension stands for: more than it has where the caller's is 1 at will."""
        found = next((t for t in self.environment.op.tensors if t.name == tensor), None)
        return self._size(found.dims[axis].size) if found is not None and found.dims[axis].broadcast else size

    def _reduce(self, e: m.Reduce, scope: Scope) -> Value:
        extents: dict[str, int] = {}
        beyond: list[m.Expr] = []
        inner = scope
        for i, r in enumerate(e.indices):
            known = self._ranged(scope, e.indices[:i], extents)
            extent = self.value(r.extent, known).v
            extents[r.name] = int(extent.max(initial=0))
            if extent.ndim:
                beyond.append(m.Operation("<", m.Index(r.name), r.extent))
        certain = np.zeros((), np.bool_)
        inner = replace(self._ranged(scope, e.indices, extents), missing=[], taken=~certain, doubted=certain)
        for condition in (*beyond, *(() if e.condition is None else (e.condition,))):
            c = self.value(condition, inner)
            inner = inner.under(c.v, c.e)
        kept, doubted = inner.taken, inner.doubted
        body = self.value(e.body, inner)
        for gone, perhaps in inner.missing or []:
            kept, doubted = kept & ~gone, doubted | perhaps
        if doubted.any():  # whether a term is there cannot be told: nor what comes of it
            kept, body = kept | doubted, replace(body, e=np.where(doubted, np.inf, body.e))
        return _flat(e.kind, body, kept, tuple(extents.values()), len(scope.indices))


def _gathered(e: m.Expr, places: Sequence[m.Expr]) -> m.Expr:
    """What an element at some places is by updates, as the sum of those there; another value as it is."""
    if not isinstance(e, m.Scatter):
        return e
    if e.kind != "sum":
        raise NotImplementedError(f"updates by {e.kind}")
    here = [m.Operation("==", at, place) for at, place in zip(e.at, places, strict=True)]
    condition = conjunction([*([] if e.condition is None else [e.condition]), *here])
    return m.Operation("+", _gathered(e.start, places), m.Reduce("sum", e.indices, e.body, condition=condition))


def _flat(kind: str, body: Value, kept: Array, extents: tuple[int, ...], outer: int) -> Value:
    """The reduction over axes of these extents, which come before `outer` others."""
    parts = [p for p in (body.v, body.e, kept, body.t, body.m) if p is not None]
    whole = np.broadcast_shapes(*(p.shape for p in parts), (1,) * (len(extents) + outer))
    around = whole[len(extents) :]
    space = (*extents, *around)
    if np.prod(space, dtype=np.float64) > MOST:
        raise TooLarge
    count = int(np.prod(extents))

    def flat(p: Array) -> Array:
        return np.broadcast_to(p, space).reshape(count, *around)

    def maybe(p: Array | None) -> Array | None:
        return None if p is None else flat(p)

    v = body.v if body.dtype is not None else body.v.astype(np.float64)
    return reduced(kind, Value(flat(v), flat(body.e), body.dtype, maybe(body.t), maybe(body.m)), flat(kept))


def _divided(op: str, a: Array, b: Array) -> Array:
    safe = np.where(b == 0, 1, b)
    if op == "//":
        return np.asarray(a // safe)
    return np.asarray(a % safe if op == "%" else -(-a // safe))


def _elements(tensor: Value, places: tuple[Array, ...], empty: bool) -> Value:
    if empty:
        shape = np.broadcast_shapes(*(p.shape for p in places))
        return Value(np.zeros(shape, tensor.v.dtype), np.zeros(shape), tensor.dtype)

    def at(part: Array | None) -> Array | None:
        return None if part is None else np.asarray(part[places])

    return Value(tensor.v[places], tensor.e[places], tensor.dtype, at(tensor.t), at(tensor.m))
