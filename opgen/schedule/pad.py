"""pad: an input copied with zeros around it, so that sums need no bounds checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

from opgen.diagnostics import did_you_mean
from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.declared import declared_names
from opgen.loop.nodes import Binary, Buffer, Call, Cast, Const, Expr, For, If, Kernel, Load, Stmt, Store
from opgen.loop.walk import (
    buffers_in,
    free_vars,
    loads,
    map_stmt,
    parts,
    stores,
    with_parts,
)
from opgen.lower.finite import unless_finite
from opgen.lower.scope import Names
from opgen.passes.scope import entered
from opgen.passes.tighten import conjuncts
from opgen.schedule.declaration import Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import require_fresh, with_body
from opgen.schedule.renaming import renamed, suffixed_names
from opgen.schedule.values import BufferName, Dimension, Made


@primitive("memory", "pad input 1, 2 -> input_padded")
class Pad(Step):
    """Sums over a copy with zeros beyond its ends, in place of conditions; again without, if a factor is not finite. A
    copy of integers has the zero point that is subtracted from each.
    """

    buffer: BufferName
    dimensions: tuple[Dimension, ...]
    name: Annotated[str, Made("{buffer}_padded")]

    def run(self, kernel: Kernel) -> Kernel:
        return pad(kernel, self.buffer, self.dimensions, self.name)


def pad(kernel: Kernel, buffer: str, dimensions: Sequence[int], name: str) -> Kernel:
    """Sum products with a copy of an input that has zeros beyond its ends, without bounds checks.

                                                 alloc x_padded[w + 2]
        for i in 0..w:                           x_padded = 0, x, 0
          acc = 0                                for i in 0..w:
          for s in 0..3:                           acc = 0
            if 0 <= i + s - 1 < w:        ->       for s in 0..3:
              acc += x[i + s - 1] * f[s]             acc += x_padded[i + s] * f[s]
          y[i] = acc                               y[i] = acc
                                                 if f is not all finite: (the nest as it was)

    Only `dimensions` of the input are padded; other conditions stay.  Zero times infinity is NaN, where the original
    skips the term.  So the loop nest runs once more as it was, with `name` appended to its names, unless all elements
    of the other factors are finite.  Sums that are -0 may become +0.  Integers have neither problem.  If a zero point
    is subtracted from each element, `int32(x[i]) - int32(zero[])`, the copy has that zero point beyond its ends.  The
    zero point must be known before the nest.
    """
    known = {i.name: i for i in kernel.inputs}
    if buffer not in known:
        raise ScheduleError(f"pad {buffer}: there is no such input", did_you_mean(buffer, known))
    source = known[buffer]
    if not dimensions or any(not 0 <= d < len(source.shape) for d in dimensions):
        raise ScheduleError(f"pad {buffer}: it has dimensions 0 to {len(source.shape) - 1}")
    nest = _nest(kernel.body, buffer)
    if nest is None:
        raise ScheduleError(f"pad {buffer}: not just one nest reads it")
    own = {o.name for o in buffers_in(nest)}
    again = {s.buffer for s in stores(nest)} & {e.buffer for e in loads(nest)} - own
    if again:
        raise ScheduleError(f"pad {buffer}: the nest reads '{min(again)}', which it writes, so it cannot be run again")
    names = suffixed_names(nest, name)
    counters = [f"{name}_{kind}{d}" for kind in ("", "zero_") for d in range(len(source.shape))]
    require_fresh(kernel, "pad", [name, *counters, *names.values()])
    found = _Pad(kernel, source, tuple(dict.fromkeys(dimensions)), name, own)
    padded = found.apply(nest)
    if not found.spared:
        raise ScheduleError(f"pad {buffer}: no sum of products with it is under a condition that zeros would spare")
    taken = Names(declared_names(kernel).union(names.values(), counters))
    factors = found.factors(nest)
    checked = (unless_finite(factors, renamed(nest, names, {}), taken),) if factors else ()
    new = b.alloc(found.copy, b.block((found.filled(), padded, *checked)))
    return with_body(kernel, _replaced(kernel.body, nest, new))


def _nest(s: Stmt, buffer: str) -> Stmt | None:
    """Return the outermost loop, if only one, that reads a buffer."""
    if isinstance(s, For):
        return s if any(e.buffer == buffer for e in loads(s)) else None
    found = [n for p in parts(s) if (n := _nest(p, buffer)) is not None]
    return found[0] if len(found) == 1 and not isinstance(s, If) else None


def _replaced(s: Stmt, old: Stmt, new: Stmt) -> Stmt:
    return new if s is old else with_parts(s, tuple(_replaced(p, old, new) for p in parts(s)))


class _Pad:
    """Padding of the reads of a buffer in a loop nest, along some dimensions."""

    def __init__(self, kernel: Kernel, source: Buffer, dimensions: tuple[int, ...], name: str, own: set[str]) -> None:
        self.kernel, self.source, self.dimensions, self.name = kernel, source, dimensions, name
        self.own = own
        """The buffers of the loop nest, which do not exist yet where the copy is made."""
        self.ends = {d: (0, self._size(d)) for d in dimensions}
        self.spared = False
        self.beyond: Expr | None = None
        """The value of the copy beyond its ends."""

    def _refusal(self, why: str) -> ScheduleError:
        return ScheduleError(f"pad {self.source.name}: {why}")

    def _size(self, d: int) -> int:
        size = self.source.shape[d]
        if not isinstance(size, Const):
            raise self._refusal(f"the size of dimension {d} is not a number")
        return int(size.value)

    @property
    def copy(self) -> Buffer:
        shape = list(self.source.shape)
        for d, (low, high) in self.ends.items():
            shape[d] = Const(high - low)
        return Buffer(self.name, self.source.dtype, tuple(shape), "heap")

    def apply(self, nest: Stmt) -> Stmt:
        """Return the loop nest over the copy."""
        around = Context.of(self.kernel)
        self._measure(nest, around)
        return self._visit(nest, around)

    def _measure(self, s: Stmt, free: Context) -> None:
        """Find the range of the reads without the conditions around them."""
        for e in self._reads(s):
            for d in self.dimensions:
                low, high = free.interval(e.indices[d])
                if low is None or high is None:
                    raise self._refusal(f"how far its reads go in dimension {d} is not known")
                self.ends[d] = min(self.ends[d][0], low), max(self.ends[d][1], high + 1)
        for p, inner in zip(parts(s), (c for _, c in entered(s, free)), strict=True):
            self._measure(p, free if isinstance(s, If) else inner)

    def _visit(self, s: Stmt, context: Context) -> Stmt:
        """Return a statement over the copy; `context` has the conditions that stay."""
        if isinstance(s, If) and s.otherwise is None and (kept := self._kept(s, context)) is not None:
            self.spared = True
            inside = context if kept == b.TRUE else context.with_condition(kept)
            return b.when(kept, self._visit(s.then, inside))
        if isinstance(s, Store):
            return renamed(self._shifted(s), {self.source.name: self.name}, {})
        return with_parts(s, tuple(self._visit(p, c) for p, c in entered(s, context)))

    def _kept(self, s: If, context: Context) -> Expr | None:
        """Return the remaining condition on sums of products; None if no part of it can be left out."""
        added = list(stores(s.then))
        reads = [e for p in added for e in self._reads(p)]
        if not reads or len(reads) < sum(1 for e in loads(s.then) if e.buffer == self.source.name):
            return None
        beyond = {self._beyond(p) for p in added} | ({self.beyond} - {None})
        if len(beyond) != 1 or None in beyond:
            return None
        places = [(e, inside) for p, inside in _in_loops(s.then, context) for e in self._reads(p)]
        kept = [c for c in conjuncts(s.condition) if not all(self._says_inside(c, *place) for place in places)]
        if len(kept) == len(conjuncts(s.condition)):
            return None
        left = _all(kept)
        found = _stores(s.then, context if left == b.TRUE else context.with_condition(left))
        if not all(self._in_bounds(e, around) for p, around in found for e in loads(p)):
            return None
        (self.beyond,) = beyond
        return left

    def _beyond(self, s: Store) -> Expr | None:
        """Return an element whose product adds nothing to the sum; None if there is none."""
        if s.value.type.dtype.is_float:
            return b.const(0.0, self.source.dtype) if _factor(s, self.source.name, self._inputs) else None
        zero = _zero_point(s, self.source)
        if isinstance(zero, Load) and (zero.buffer in self.own or any(map(free_vars, zero.indices))):
            return None
        return zero

    @property
    def _inputs(self) -> set[str]:
        return {i.name for i in self.kernel.inputs}

    def _in_bounds(self, e: Load, context: Context) -> bool:
        """Return True if a read is in bounds without the dropped conditions; padded dimensions always are."""
        shape = {i.name: i.shape for i in self.kernel.inputs}.get(e.buffer)
        if shape is None:
            return True  # the sum, kept by the code that allocated it
        padded = self.dimensions if e.buffer == self.source.name else ()
        return all(
            context.proves(b.compare("ge", i, 0)) and context.proves(b.compare("lt", i, size))
            for d, (i, size) in enumerate(zip(e.indices, shape, strict=True))
            if d not in padded
        )

    def _says_inside(self, condition: Expr, read: Load, context: Context) -> bool:
        """Return True if a condition holds wherever a read is inside the buffer; elsewhere the copy has its padding."""
        for d in self.dimensions:
            context = context.with_condition(b.compare("ge", read.indices[d], 0))
            context = context.with_condition(b.compare("lt", read.indices[d], self.source.shape[d]))
        return context.proves(condition)

    def _shifted(self, s: Store) -> Stmt:
        def moved(e: Expr) -> Expr:
            if not isinstance(e, Load) or e.buffer != self.source.name:
                return e
            indices = tuple(b.sub(i, self.ends[d][0]) if d in self.ends else i for d, i in enumerate(e.indices))
            return Load(e.buffer, indices, e.dtype, e.mask)

        return map_stmt(s, expr=moved)

    def factors(self, nest: Stmt) -> list[Buffer]:
        """Return the inputs that elements of the buffer are multiplied by."""
        found = {_factor(s, self.source.name, self._inputs) for s in stores(nest)}
        return [i for i in self.kernel.inputs if i.name in found]

    def _reads(self, s: Stmt) -> list[Load]:
        """Return the reads of the buffer in a store's value and indices."""
        return [e for e in loads(s) if e.buffer == self.source.name] if isinstance(s, Store) else []

    def filled(self) -> Stmt:
        """Return the nests that fill the copy: padding at both ends of each dimension, and the elements between."""
        rank = len(self.source.shape)
        places = [b.var(f"{self.name}_{d}") for d in range(rank)]
        offset = [b.sub(v, self.ends[d][0]) if d in self.ends else v for d, v in enumerate(places)]
        move: Stmt = Store(self.name, tuple(offset), Load(self.source.name, tuple(places), self.source.dtype))
        for d in reversed(range(rank)):
            move = For(places[d].name, b.index(0), self.source.shape[d], move)
        return b.block((*self._zeros(), move))

    def _zeros(self) -> Iterable[Stmt]:
        rank = len(self.source.shape)
        places = [b.var(f"{self.name}_zero_{d}") for d in range(rank)]
        assert self.beyond is not None
        for d, (low, high) in self.ends.items():
            for first, last in ((0, -low), (self._size(d) - low, high - low)):
                s: Stmt = Store(self.name, tuple(places), self.beyond)
                for i in reversed(range(rank)):
                    start, stop = (b.index(first), b.index(last)) if i == d else (b.index(0), self.copy.shape[i])
                    s = For(places[i].name, start, stop, s)
                if last > first:
                    yield s


def _all(conditions: Iterable[Expr]) -> Expr:
    whole: Expr = b.TRUE
    for c in conditions:
        whole = b.both(whole, c)
    return whole


def _stores(s: Stmt, context: Context) -> Iterator[tuple[Store, Context]]:
    """Yield the stores in a statement, with the facts known at each."""
    if isinstance(s, Store):
        yield s, context
    for p, inner in entered(s, context):
        yield from _stores(p, inner)


def _in_loops(s: Stmt, context: Context) -> Iterator[tuple[Store, Context]]:
    """Yield the stores in a statement, with the facts known about the loops around: parts of a loop share a name."""
    if isinstance(s, Store):
        yield s, context
    inside = context.with_loop(s.var, s.start, s.stop) if isinstance(s, For) else context
    for p in parts(s):
        yield from _in_loops(p, inside)


def _factor(s: Store, buffer: str, inputs: set[str]) -> str | None:
    """Return the other factor's input if a store accumulates a product with an element of `buffer`; else None."""
    if s.mask is not None or not isinstance(s.value, Call) or s.value.function != "fma":
        return None
    *factors, total = s.value.arguments
    read = [e.operand if isinstance(e, Cast) else e for e in factors]
    names = [e.buffer for e in read if isinstance(e, Load) and e.mask is None and e.buffer in inputs]
    if total != Load(s.buffer, s.indices, total.type.dtype) or names.count(buffer) != 1 or len(names) != len(factors):
        return None
    return next(n for n in names if n != buffer)


def _zero_point(s: Store, source: Buffer) -> Expr | None:
    """Return the zero point that a store subtracts, as int32, from an element before it accumulates a product with it.

    None if the store does not.
    """
    total = Load(s.buffer, s.indices, s.value.type.dtype)
    match s.value:
        case Binary("add", one, other) if total in (one, other) and s.mask is None:
            product = other if one == total else one
            sides = (product.left, product.right) if isinstance(product, Binary) and product.op == "mul" else ()
            found = [_subtracted(e, source) for e in sides]
            return next((e for e in found if e is not None), None) if found.count(None) == 1 else None
    return None


def _subtracted(e: Expr, source: Buffer) -> Expr | None:
    match e:
        case Cast(operand=Load(mask=None) as read) if read.buffer == source.name:
            return b.const(0, source.dtype)
        case Binary("sub", Cast(operand=Load(mask=None) as read), Cast(operand=Load(mask=None) as zero)):
            alike = read.buffer == source.name and zero.dtype == source.dtype and e.left.type == e.right.type
            return zero if alike and zero.buffer != source.name else None
    return None
