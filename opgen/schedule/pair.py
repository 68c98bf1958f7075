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
from opgen.loop.walk import free_vars, walk
from opgen.passes.simplify import simplify_expr
from opgen.passes.unroll import constant_extent
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import require_fresh, require_loops, rewrite_loops, with_body


def pair(kernel: Kernel, loop: str, first: str, second: str) -> Kernel:
    """Take two steps of a reduction at once, with the CPU's dot product of bfloat16 pairs where it has one.

                                                  alloc first: int32[c/2]
                                                  for first_0 in 0..c/2:
        for k in 0..c:                              first[first_0] = pair(x[2*first_0], x[2*first_0 + 1])
          acc = fma(float32(x[k]),          ->    (as much for second)
                    float32(y[k]), acc)           for k in 0..c/2:
                                                    acc = dot(acc, first[k], second[k])

    `first` and `second` name the copies, made before the nest.  The number of steps must be constant and even, and both
    factors bfloat16.  The higher element of a pair is added first: the order of the sum changes within pairs, and
    numbers below 2**-126 may count as 0.
    """
    require_loops(kernel, "pair", [loop])
    found = [s for s in walk(kernel.body) if isinstance(s, For) and s.var == loop]
    if len(found) != 1:
        raise ScheduleError(f"pair {loop}: there are {len(found)} loops of that name")
    steps = _Steps.of(found[0])
    copies = [_Copy.of(kernel, load, loop, name) for load, name in zip(steps.factors, (first, second), strict=True)]
    require_fresh(kernel, "pair", [n for copy in copies for n in (copy.name, *copy.counters)])

    def paired(s: For, context: Context) -> Stmt:
        left, right = (copy.read(context) for copy in copies)
        target = Load(steps.store.buffer, steps.store.indices, FLOAT32)
        body = Store(steps.store.buffer, steps.store.indices, Dot(target, left, right))
        return For(s.var, s.start, Const(steps.count // 2), body, s.kind)

    after = rewrite_loops(kernel, loop, paired)
    return with_body(kernel, _before_nest(after.body, loop, copies))


@dataclass(frozen=True)
class _Steps:
    """A loop whose body adds one product."""

    store: Store
    factors: tuple[Load, Load]
    count: int

    @staticmethod
    def of(loop: For) -> _Steps:
        count = constant_extent(loop)
        if count is None or count % 2 or loop.start != Const(0):
            raise _refusal(loop.var, "its number of steps is not known to be even")
        store = loop.body
        factors = _factors(store) if isinstance(store, Store) else None
        if not isinstance(store, Store) or factors is None:
            raise _refusal(loop.var, "it does not add one product of two bfloat16 elements")
        return _Steps(store, factors, count)


def _factors(s: Store) -> tuple[Load, Load] | None:
    """The two elements of which a store adds the product to what it stores to."""
    total = Load(s.buffer, s.indices, FLOAT32)
    if (
        not isinstance(s.value, Call)
        or s.value.function != "fma"
        or s.mask is not None
        or s.value.arguments[2] != total
    ):
        return None
    match s.value.arguments[:2]:
        case (Cast(operand=Load(dtype=d, mask=None) as x), Cast(operand=Load(dtype=e, mask=None) as y)):
            return (x, y) if d == e == BFLOAT16 and x.buffer != y.buffer else None
    return None


@dataclass(frozen=True)
class _Copy:
    """A buffer copied with two elements along one dimension, `axis`, in one."""

    source: Buffer
    name: str
    load: Load
    loop: str
    axis: int
    rest: Expr
    """What is added to the loop's variable in that dimension's index."""

    @staticmethod
    def of(kernel: Kernel, load: Load, loop: str, name: str) -> _Copy:
        axes = [i for i, e in enumerate(load.indices) if loop in free_vars(e)]
        form = linear(load.indices[axes[0]], loop) if len(axes) == 1 else None
        if form is None or form[0] != Const(1):
            raise _refusal(loop, f"its steps do not read neighbours of '{load.buffer}'")
        local = {s.buffer.name: s.buffer for s in walk(kernel.body) if isinstance(s, Alloc)}
        source = ({i.name: i for i in kernel.inputs} | local)[load.buffer]
        size = source.shape[axes[0]]
        if not isinstance(size, Const) or int(size.value) % 2:
            raise _refusal(loop, f"dimension {axes[0]} of '{load.buffer}' is not known to be even")
        return _Copy(source, name, load, loop, axes[0], form[1])

    @property
    def counters(self) -> list[str]:
        return [f"{self.name}_{d}" for d in range(len(self.source.shape))]

    @property
    def buffer(self) -> Buffer:
        shape = list(self.source.shape)
        shape[self.axis] = b.floordiv(shape[self.axis], 2)
        return Buffer(self.name, INT32, tuple(shape), "heap")

    def read(self, context: Context) -> Expr:
        """The pair that a step reads."""
        if simplify_expr(b.mod(self.rest, 2), context) != Const(0):
            raise _refusal(self.loop, f"its steps do not begin at an even place of '{self.load.buffer}'")
        indices = list(self.load.indices)
        indices[self.axis] = simplify_expr(b.add(b.floordiv(self.rest, 2), b.var(self.loop)), context)
        return Load(self.name, tuple(indices), INT32)

    def fill(self) -> Stmt:
        """The nest that makes the copy."""
        places: list[Expr] = [b.var(c) for c in self.counters]
        halves = []
        for half in (0, 1):
            at = [*places]
            at[self.axis] = b.add(b.mul(places[self.axis], 2), half)
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
                return Alloc(s.buffer, visit(s.body))
            case Let():
                return Let(s.var, s.value, visit(s.body))
            case Block():
                return b.block(visit(p) if _holds(p, loop) else p for p in s.statements)
            case _:
                made = b.block((*(copy.fill() for copy in copies), s))
                for copy in copies:
                    made = Alloc(copy.buffer, made)
                return made

    return visit(body)


def _holds(s: Stmt, loop: str) -> bool:
    return any(isinstance(p, For) and p.var == loop for p in walk(s))


def _refusal(loop: str, why: str) -> ScheduleError:
    return ScheduleError(f"pair {loop}: {why}")
