"""pair: two steps of a bfloat16 reduction in one, over inputs copied as pairs."""

from __future__ import annotations

from dataclasses import dataclass

from opgen.dtypes import BFLOAT16, FLOAT32, INT32
from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.analysis.polynomial import linear
from opgen.loop.nodes import (
    Alloc,
    Block,
    Buffer,
    Call,
    Cast,
    Const,
    Dot,
    Expr,
    For,
    Kernel,
    Let,
    Load,
    Pair,
    Stmt,
    Store,
)
from opgen.loop.walk import free_vars, holds_loop, loops_in, stores, substitute
from opgen.passes.fold import fold_all
from opgen.passes.simplify import simplify_expr
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import buffer_at, extent, require_fresh, require_loops, rewrite_loops, with_body


def pair(kernel: Kernel, loop: str, first: str, second: str) -> Kernel:
    """Take two steps of a reduction at once, with the CPU's dot product of bfloat16 pairs where it has one.

                                                  alloc first: int32[c/2]
                                                  for first_0 in 0..c/2:
        for k in 0..c:                              first[first_0] = pair(x[2*first_0], x[2*first_0 + 1])
          acc = fma(float32(x[k]),          ->    (as much for second)
                    float32(y[k]), acc)           for k in 0..c/2:
                                                    acc = dot(acc, first[k], second[k])

    `first` and `second` name the copies, made before the nest; the name of the buffer itself stands for no copy, where
    the two of a pair lie next to each other.  Where the steps do not begin at an even place, or go
    more than one place at a time, a copy has a pair at every place.  An odd last step is left to a loop of its own,
    `k_last`.  Both factors must be bfloat16.  The higher element of a pair is added first: the order of the sum changes
    within pairs, and numbers below 2**-126 may count as 0.
    """
    require_loops(kernel, "pair", [loop])
    found = [s for s in loops_in(kernel.body) if s.var == loop]
    if len(found) != 1:
        raise ScheduleError(f"pair {loop}: there are {len(found)} loops of that name")
    copies: list[_Copy] = []

    def paired(s: For, context: Context) -> Stmt:
        store, factors = _step(s)
        sides = [_Copy.of(kernel, load, s, name, context) for load, name in zip(factors, (first, second), strict=True)]
        copies.extend(side for side in sides if not side.in_place)
        left, right = (side.read(s, context) for side in sides)
        body = Store(store.buffer, store.indices, Dot(Load(store.buffer, store.indices, FLOAT32), left, right))
        count = _count(s, context)
        pairs = For(s.var, Const(0), fold_all(b.floordiv(count, 2)), body, s.kind)
        if isinstance(count, Const) and int(count.value) % 2 == 0:
            return pairs
        done = simplify_expr(b.add(s.start, b.mul(b.floordiv(count, 2), 2)), context)
        last = f"{s.var}_last"
        return b.block((pairs, For(last, done, s.stop, substitute(s.body, {s.var: b.var(last)}))))

    after = rewrite_loops(kernel, loop, paired)
    fresh = [n for copy in copies for n in (copy.name, *copy.counters)]
    require_fresh(kernel, "pair", [*fresh, f"{loop}_last"])
    return with_body(kernel, _before_nest(after.body, loop, copies))


def _count(loop: For, context: Context) -> Expr:
    """How often a loop runs: no less than 0 even where its bounds are out of order, as halves are rounded down."""
    count = extent(loop)
    return count if context.proves(b.compare("ge", count, 0)) else fold_all(b.maximum(count, 0))


def _step(loop: For) -> tuple[Store, tuple[Load, Load]]:
    """The store of a loop whose body adds one product, and the two factors."""
    store = loop.body
    factors = _factors(store) if isinstance(store, Store) else None
    if not isinstance(store, Store) or factors is None:
        raise _refusal(loop.var, "it does not add one product of two bfloat16 elements")
    return store, factors


def _factors(s: Store) -> tuple[Load, Load] | None:
    """The two elements of which a store adds the product to what it stores to."""
    total = Load(s.buffer, s.indices, FLOAT32)
    if s.mask is not None or not isinstance(s.value, Call) or s.value.function != "fma":
        return None
    match s.value.arguments:
        case (Cast(operand=Load(dtype=d, mask=None) as x), Cast(operand=Load(dtype=e, mask=None) as y), last):
            return (x, y) if d == e == BFLOAT16 and x.buffer != y.buffer and last == total else None
    return None


@dataclass(frozen=True)
class _Copy:
    """A buffer copied with two elements along one dimension, `axis`, in one: element i and element i + `apart`."""

    source: Buffer
    name: str
    load: Load
    axis: int
    apart: int
    rest: Expr
    """What is added to `apart` times the loop's variable in that dimension's index."""
    halved: bool
    """Whether only even places have a pair."""

    @staticmethod
    def of(kernel: Kernel, load: Load, loop: For, name: str, context: Context) -> _Copy:
        axes = [i for i, e in enumerate(load.indices) if loop.var in free_vars(e)]
        form = linear(load.indices[axes[0]], loop.var) if len(axes) == 1 else None
        if form is None or not isinstance(form[0], Const) or int(form[0].value) < 1:
            raise _refusal(loop.var, f"its steps do not walk along one dimension of '{load.buffer}'")
        apart, rest = int(form[0].value), form[1]
        source = buffer_at(kernel, load.buffer, loop)
        size = source.shape[axes[0]]
        if not isinstance(size, Const) or int(size.value) <= apart:
            raise _refusal(loop.var, f"dimension {axes[0]} of '{load.buffer}' is not known to hold two steps")
        even = loop.start == Const(0) and int(size.value) % 2 == 0
        halved = apart == 1 and even and simplify_expr(b.mod(rest, 2), context) == Const(0)
        if name == source.name and (apart != 1 or axes[0] != len(source.shape) - 1):
            raise _refusal(loop.var, f"two steps are not next to each other in '{name}', which is not to be copied")
        return _Copy(source, name, load, axes[0], apart, rest, halved)

    @property
    def in_place(self) -> bool:
        """Whether there is no copy: its pairs are read where they are."""
        return self.name == self.source.name

    @property
    def counters(self) -> list[str]:
        return [f"{self.name}_{d}" for d in range(len(self.source.shape))]

    @property
    def buffer(self) -> Buffer:
        shape = list(self.source.shape)
        size = shape[self.axis]
        shape[self.axis] = fold_all(b.floordiv(size, 2) if self.halved else b.sub(size, self.apart))
        return Buffer(self.name, INT32, tuple(shape), "heap")

    def read(self, loop: For, context: Context) -> Expr:
        """The pair that a step of the new loop reads."""
        if self.in_place:
            low, high = (self._element(loop, k, context) for k in (0, 1))
            return Pair(low, high)
        if self.halved:
            place = b.add(b.floordiv(self.rest, 2), b.var(loop.var))
        else:
            first = b.add(loop.start, b.mul(b.var(loop.var), 2))
            place = b.add(b.mul(first, self.apart), self.rest)
        indices = list(self.load.indices)
        indices[self.axis] = simplify_expr(place, context)
        return Load(self.name, tuple(indices), INT32)

    def _element(self, loop: For, k: int, context: Context) -> Load:
        """One of the two that a step of the new loop reads in place."""
        step = b.add(b.add(loop.start, b.mul(b.var(loop.var), 2)), k)
        *others, _ = self.load.indices
        return Load(self.source.name, (*others, simplify_expr(b.add(self.rest, step), context)), BFLOAT16)

    def fill(self) -> Stmt:
        """The nest that makes the copy."""
        places: list[Expr] = [b.var(c) for c in self.counters]
        first = b.mul(places[self.axis], 2) if self.halved else places[self.axis]
        halves = []
        for place in (first, b.add(first, self.apart)):
            at = [*places]
            at[self.axis] = place
            halves.append(Load(self.source.name, tuple(at), BFLOAT16))
        move: Stmt = Store(self.name, tuple(places), Pair(halves[0], halves[1]))
        for counter, size in zip(reversed(self.counters), reversed(self.buffer.shape), strict=True):
            move = For(counter, b.index(0), size, move)
        return move


def _before_nest(body: Stmt, loop: str, copies: list[_Copy]) -> Stmt:
    """The copies, made just before the outermost statement that holds the loop and no buffer's whole life."""

    def visit(s: Stmt) -> Stmt:
        match s:
            case Alloc():
                return b.alloc(s.buffers, visit(s.body))
            case Let():
                return Let(s.var, s.value, visit(s.body))
            case Block():
                return b.block(visit(p) if holds_loop(p, loop) else p for p in s.statements)
            case _:
                _require_finished(s, loop, copies)
                made = b.block((*(copy.fill() for copy in copies), s))
                return b.alloc([copy.buffer for copy in reversed(copies)], made)

    return visit(body)


def _require_finished(nest: Stmt, loop: str, copies: list[_Copy]) -> None:
    """What is copied before a nest is not made in it."""
    made = {p.buffer for p in stores(nest)}
    for copy in copies:
        if copy.source.name in made:
            raise _refusal(loop, f"'{copy.source.name}' is written in the nest that would read a copy of it")


def _refusal(loop: str, why: str) -> ScheduleError:
    return ScheduleError(f"pair {loop}: {why}")
