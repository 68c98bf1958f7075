"""transpose: a square block copied with its rows and columns exchanged, by vectors."""

from __future__ import annotations

from dataclasses import dataclass

from opgen.dtypes import DType
from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.analysis.polynomial import linear
from opgen.loop.nodes import Buffer, Const, Expr, For, Kernel, Load, Ramp, Shuffle, Stmt, Store, Word
from opgen.loop.walk import free_vars, substitute_expr
from opgen.passes.fold import fold_all
from opgen.passes.simplify import simplify_expr
from opgen.passes.unroll import constant_extent
from opgen.schedule.declaration import Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import require_fresh, require_loops, rewrite_loops
from opgen.schedule.values import LoopName

MOST = 64
"""Largest number of rows of a block."""
Indices = tuple[Expr, ...]


@primitive("memory", "transpose k_i, c_i")
class Transpose(Step):
    """Transposes a square block of a copy in registers."""

    outer: LoopName
    inner: LoopName

    def run(self, kernel: Kernel) -> Kernel:
        return transpose(kernel, self.outer, self.inner)


def transpose(kernel: Kernel, outer: str, inner: str) -> Kernel:
    """Transpose a square block in registers: rows are loaded, lanes exchanged in log2(n) rounds, columns stored.

        for i in 0..4: for j in 0..4:          alloc t[3, 4, 4]
          y[j, i] = x[i, j]              ->    t[0, 0, ramp(0, 1, 4)] = x[0, ramp(0, 1, 4)]  (and 1, 2, 3)
                                               t[1, 0, ...] = shuffle(t[0, 0, ...], t[0, 2, ...], 0, 1, 4, 5)
                                               ...
                                               y[0, ramp(0, 1, 4)] = t[2, 0, ramp(0, 1, 4)]  (and 1, 2, 3)

    Both loops have the same constant extent, a power of two.  The reads are contiguous along one of them, the writes
    along the other.
    """
    require_loops(kernel, "transpose", [outer, inner])
    name = f"{outer}_{inner}"
    require_fresh(kernel, "transpose", [name])

    def rewrite(s: For, context: Context) -> Stmt:
        block = _matched(s, inner, context)
        if isinstance(block, str):
            raise ScheduleError(f"transpose {outer}, {inner}: {block}")
        return block.code(name, context)

    return rewrite_loops(kernel, outer, rewrite)


@dataclass(frozen=True)
class _Block:
    """A copy of `count` x `count` elements, written contiguously along the loop `row` and read along `column`."""

    copy: Store
    row: For
    column: For
    count: int

    def code(self, name: str, context: Context) -> Stmt:
        """Return the loads, rounds of shuffles and stores."""
        rounds, dtype = self.count.bit_length() - 1, self._dtype
        buffer = Buffer(name, dtype, (Const(rounds + 1), Const(self.count), Const(self.count)), "register")
        body: list[Stmt] = []
        for k in range(self.count):
            body.append(Store(name, self._line(0, k), self._read(self.copy.value, k, context)))
        for number in range(rounds):
            body += self._round(name, number, self.count >> (number + 1))
        for k in range(self.count):
            line = Load(name, self._line(rounds, k), dtype)
            body.append(Store(self.copy.buffer, self._at(self.copy.indices, k, self.column, context), line))
        return b.alloc(buffer, b.block(body))

    @property
    def _dtype(self) -> DType:
        return self.copy.value.type.dtype

    def _read(self, e: Expr, k: int, context: Context) -> Expr:
        """Return the k-th row of the elements to copy."""
        if isinstance(e, Word):
            return Word(tuple(self._read(p, k, context) for p in e.parts))
        assert isinstance(e, Load)
        return Load(e.buffer, self._at(e.indices, k, self.row, context), e.dtype)

    def _round(self, name: str, number: int, distance: int) -> list[Stmt]:
        """Exchange the quarters off the diagonal between lines that are `distance` apart."""
        upper = [k if not k & distance else self.count + k - distance for k in range(self.count)]
        lower = [k + distance if not k & distance else self.count + k for k in range(self.count)]
        steps: list[Stmt] = []
        for k in range(self.count):
            first = k & ~distance
            pair = [Load(name, self._line(number, at), self._dtype) for at in (first, first + distance)]
            order = lower if k & distance else upper
            steps.append(Store(name, self._line(number + 1, k), Shuffle(pair[0], pair[1], tuple(order))))
        return steps

    def _line(self, number: int, k: int) -> Indices:
        return Const(number), Const(k), Ramp(Const(0), Const(1), self.count)

    def _at(self, indices: Indices, k: int, fixed: For, context: Context) -> Indices:
        """Return the indices with one loop at its k-th iteration, and the other over all lanes."""
        along = self.row if fixed is self.column else self.column
        here = {fixed.var: fold_all(b.add(fixed.start, k)), along.var: along.start}
        places = [simplify_expr(substitute_expr(i, here), context) for i in indices]
        form = linear(indices[-1], along.var)
        return (*places[:-1], Ramp(places[-1], Const(1) if form is None else form[0], self.count))


def _matched(s: For, inner: str, context: Context) -> _Block | str:
    """Return the block that two loops copy, or the reason why they do not."""
    other, count = s.body, constant_extent(s)
    if not isinstance(other, For) or other.var != inner:
        return f"'{inner}' is not all that '{s.var}' holds"
    if s.kind != "serial" or other.kind != "serial" or s.var in free_vars(other.start):
        return "the loops are not two serial loops with bounds of their own"
    if count is None or count != constant_extent(other) or count & (count - 1) or not 2 <= count <= MOST:
        return f"the loops do not both have the same constant extent, a power of two up to {MOST}"
    copy = other.body
    read = _elements(copy.value) if isinstance(copy, Store) and copy.mask is None else None
    if read is None or not isinstance(copy, Store):
        return f"what '{inner}' holds is no plain copy of an element, or of a pair"
    if any(e.buffer == copy.buffer for e in read):
        return f"'{copy.buffer}' is both read and written"
    for row, column in ((s, other), (other, s)):
        along = all(_runs(e.indices, column.var, len(read)) for e in read)
        if along and _runs(copy.indices, row.var) and _apart(copy.indices, column.var):
            return _Block(copy, row, column, count)
    return "what is read does not lie consecutively along one loop, and what is written along the other"


def _elements(e: Expr) -> tuple[Load, ...] | None:
    """Return the elements that are copied: one, or those of a word."""
    match e:
        case Load(mask=None):
            return (e,)
        case Word():
            loads = tuple(p for p in e.parts if isinstance(p, Load) and p.mask is None)
            return loads if len(loads) == len(e.parts) else None
    return None


def _runs(indices: Indices, var: str, most: int = 1) -> bool:
    """Return True if a loop runs along the last dimension, and only there, by up to `most` places an iteration."""
    if not indices or any(var in free_vars(i) for i in indices[:-1]):
        return False
    form = linear(indices[-1], var)
    return form is not None and isinstance(form[0], Const) and 1 <= int(form[0].value) <= most


def _apart(indices: Indices, var: str) -> bool:
    """Return True if a loop runs along one dimension that is not the last: iterations then write different lines."""
    found = [i for i in indices if var in free_vars(i)]
    form = linear(found[0], var) if len(found) == 1 else None
    return form is not None and found[0] is not indices[-1] and isinstance(form[0], Const) and form[0].value != 0
