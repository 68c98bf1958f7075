"""distribute: a sum of products of shifted factors, as a sum of products and sums of the factors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Annotated

from opgen.dtypes import INT32
from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Binary, Block, Buffer, Cast, Expr, For, Kernel, Load, Stmt, Store
from opgen.loop.walk import (
    free_vars,
    holds_loop,
    loops_in,
    parts,
    stores,
    substitute_expr,
    walk_expr,
    with_parts,
)
from opgen.passes.unroll import constant_extent
from opgen.schedule.declaration import Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import before_nest, buffer_at, require_fresh, require_loops, with_body
from opgen.schedule.values import LoopName, Made

_ZERO = b.const(0, INT32)


@primitive("sums", "distribute c -> x_sums, w_sums")
class Distribute(Step):
    """Makes of sums in int32 of `(x + p) * (w + q)` sums of `x * w`, with those of `x` and of `w` alone computed
    before.
    """

    loop: LoopName
    first: Annotated[str, Made("{loop}_left_sums")]
    second: Annotated[str, Made("{loop}_right_sums")]

    def run(self, kernel: Kernel) -> Kernel:
        return distribute(kernel, self.loop, self.first, self.second)


def distribute(kernel: Kernel, loop: str, first: str, second: str) -> Kernel:
    """Split a sum of int32 products of shifted factors into a sum of plain products and a sum of each factor.

                                                first[i] = sum[k](int32(x[i, k])) for all i
        acc = 0                                 second[j] = sum[k](int32(y[k, j])) for all j
        for k in 0..c:                    ->    acc = c*p*q + q*first[i] + p*second[j]
          acc += (int32(x[i, k]) + p)           for k in 0..c:
               * (int32(y[k, j]) + q)             acc += int32(x[i, k]) * int32(y[k, j])

    `loop` is the outermost loop of the sum.  The offsets must be the same for all terms, and no term may be under a
    condition (`pad` removes it).  Sums of a factor are computed for all iterations of the loops around, even where a
    condition skips the products.  Their reads must therefore be in bounds without it.  If a factor has no offset, the
    other one is not summed by itself.  Sums of int32 are the same in any order.
    """
    require_loops(kernel, "distribute", [loop])
    found = [s for s in loops_in(kernel.body) if s.var == loop]
    if len(found) != 1:
        raise ScheduleError(f"distribute {loop}: there are {len(found)} loops of that name")
    around = [s for s in loops_in(kernel.body) if s is not found[0] and holds_loop(s, loop)]
    terms, store = _terms(found[0])
    left, right = _factors(loop, store)
    counts = [constant_extent(s) or 0 for s in terms]
    if not all(counts):
        raise _refusal(loop, "how many terms there are is not known")
    if {s.var for s in terms} & {n for e in (left.added, right.added, *store.indices) for n in free_vars(e)}:
        raise _refusal(loop, "what is added to a factor is not the same for all terms")
    written = {s.buffer for s in stores((around or found)[0])}
    if written & {e.buffer for side in (left, right) for e in (side.read, *_reads(side.added))}:
        raise _refusal(loop, "a factor is written in the nest that would read sums of it")
    start = b.mul(b.const(prod(counts), INT32), b.mul(left.added, right.added))
    sums = []
    for name, of, by in ((first, left, right), (second, right, left)):
        if by.added != _ZERO:
            sums.append(_Sum.of(kernel, name, of.read, around, terms))
            start = b.add(start, b.mul(by.added, sums[-1].here))
    if not sums:
        raise _refusal(loop, "nothing is added to a factor")
    require_fresh(kernel, "distribute", [n for s in sums for n in s.names])
    plain = Store(store.buffer, store.indices, b.add(_total(store), b.mul(left.cast, right.cast)))
    body = _rewritten(kernel.body, loop, store, plain, start)
    if body is None:
        raise _refusal(loop, "its sum does not begin with 0 just before")
    return with_body(kernel, before_nest(body, loop, [s.buffer for s in sums], [s.code() for s in sums]))


@dataclass(frozen=True)
class _Factor:
    """An element as int32, and the offset added to it."""

    cast: Cast
    read: Load
    added: Expr


def _terms(loop: For) -> tuple[list[For], Store]:
    """Return the loops of a sum and the store that they repeat."""
    terms = [loop]
    while isinstance(terms[-1].body, For):
        terms.append(terms[-1].body)
    store = terms[-1].body
    if not isinstance(store, Store) or store.mask is not None:
        raise _refusal(loop.var, "it does not add one product of two factors without a condition")
    return terms, store


def _total(s: Store) -> Load:
    return Load(s.buffer, s.indices, INT32)


def _factors(loop: str, s: Store) -> tuple[_Factor, _Factor]:
    """Return the two factors whose product a store accumulates."""
    match s.value:
        case Binary("add", one, Binary("mul", x, y)) | Binary("add", Binary("mul", x, y), one) if one == _total(s):
            left, right = _factor(x), _factor(y)
            if left is not None and right is not None:
                return left, right
    raise _refusal(loop, "it does not add a product of two elements as int32, or of what is added to such elements")


def _factor(e: Expr) -> _Factor | None:
    match e:
        case Cast(operand=Load(mask=None) as read) if e.type.dtype == INT32:
            return _Factor(e, read, _ZERO)
        case Binary("add" | "sub", x, other) if (inner := _factor(x)) is not None:
            return _Factor(inner.cast, inner.read, b.binary(e.op, inner.added, other))
        case Binary("add", other, x) if (inner := _factor(x)) is not None:
            return _Factor(inner.cast, inner.read, b.add(inner.added, other))
    return None


@dataclass(frozen=True)
class _Sum:
    """Sum of one factor over `terms`, for each iteration of the surrounding loops that it depends on."""

    name: str
    read: Load
    along: list[For]
    terms: list[For]

    @staticmethod
    def of(kernel: Kernel, name: str, read: Load, around: list[For], terms: list[For]) -> _Sum:
        used = {n for e in (*read.indices, *(s.start for s in terms)) for n in free_vars(e)}
        along = [s for s in around if s.var in used]
        known = all(constant_extent(s) is not None and s.start == b.index(0) for s in along)
        if not known or not used <= {s.var for s in (*along, *terms)}:
            raise _refusal(terms[0].var, f"how many sums of '{read.buffer}' there are is not known")
        context = Context.of(kernel)
        for s in (*along, *terms):
            context = context.with_loop(s.var, s.start, s.stop)
        shape = buffer_at(kernel, read.buffer, terms[0]).shape
        for i, size in zip(read.indices, shape, strict=True):
            if not (context.proves(b.compare("ge", i, 0)) and context.proves(b.compare("lt", i, size))):
                raise _refusal(terms[0].var, f"without the conditions around, reads of '{read.buffer}' may lie outside")
        return _Sum(name, read, along, terms)

    @property
    def names(self) -> list[str]:
        return [self.name, f"{self.name}_acc", *(f"{self.name}_{s.var}" for s in (*self.along, *self.terms))]

    @property
    def buffer(self) -> Buffer:
        return Buffer(self.name, INT32, tuple(s.stop for s in self.along), "heap")

    @property
    def here(self) -> Load:
        return Load(self.name, tuple(b.var(s.var) for s in self.along), INT32)

    def code(self) -> Stmt:
        """Return the loop nest that sums."""
        moved: Mapping[str, Expr] = {s.var: b.var(f"{self.name}_{s.var}") for s in (*self.along, *self.terms)}
        acc = Buffer(f"{self.name}_acc", INT32, (), "register")
        indices = tuple(substitute_expr(i, moved) for i in self.read.indices)
        term = b.cast(INT32, Load(self.read.buffer, indices, self.read.dtype))
        step: Stmt = Store(acc.name, (), b.add(Load(acc.name, (), INT32), term))
        for s in reversed(self.terms):
            step = For(f"{self.name}_{s.var}", substitute_expr(s.start, moved), substitute_expr(s.stop, moved), step)
        end = Store(self.name, tuple(moved[s.var] for s in self.along), Load(acc.name, (), INT32))
        made = b.alloc(acc, b.block((Store(acc.name, (), _ZERO), step, end)))
        for s in reversed(self.along):
            made = For(f"{self.name}_{s.var}", s.start, s.stop, made)
        return made


def _reads(e: Expr) -> Iterator[Load]:
    return (x for x in walk_expr(e) if isinstance(x, Load))


def _rewritten(s: Stmt, loop: str, old: Store, new: Store, start: Expr) -> Stmt | None:
    """Return a statement whose sum has other terms and begins with `start`.

    None if the sum did not begin with 0 just before.
    """
    if isinstance(s, Block):
        place = next(i for i, p in enumerate(s.statements) if holds_loop(p, loop))
        inner, others = s.statements[place], list(s.statements)
        if isinstance(inner, For) and inner.var == loop:
            if place == 0 or others[place - 1] != Store(old.buffer, old.indices, _ZERO):
                return None
            others[place - 1 : place + 1] = [Store(old.buffer, old.indices, start), _with_terms(inner, new)]
            return b.block(others)
        changed = _rewritten(inner, loop, old, new, start)
        return None if changed is None else b.block((*others[:place], changed, *others[place + 1 :]))
    if isinstance(s, For) and s.var == loop:
        return None
    found = [_rewritten(p, loop, old, new, start) if holds_loop(p, loop) else p for p in parts(s)]
    whole = [p for p in found if p is not None]
    return with_parts(s, tuple(whole)) if len(whole) == len(found) else None


def _with_terms(s: Stmt, new: Store) -> Stmt:
    """Return the loops of a sum around other terms."""
    return For(s.var, s.start, s.stop, _with_terms(s.body, new), s.kind) if isinstance(s, For) else new


def _refusal(loop: str, why: str) -> ScheduleError:
    return ScheduleError(f"distribute {loop}: {why}")
