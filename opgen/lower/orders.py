"""Orders: how the values of an index are sorted.

    let at[i, p] = ascending[j](x[i, j], p)

The values are copied, one row for each of the other indices, and each row is sorted by itself:

* Few places are wanted: the best so far are kept in order, and each value that is among them is put in its place,
  O(values * places).
* Else runs of 1, 2, 4, ... values are merged, from the copy to other memory and back, O(n log n).

Both are stable.  A NaN is above all numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from opgen.dtypes import BOOL, INT64, DType
from opgen.loop import build as b
from opgen.loop.nodes import Buffer, Compare, Expr, For, Load, Select, Stmt, Store
from opgen.lower.scope import TensorAccess
from opgen.spec.model import Definition, Index, Read, Reduce
from opgen.spec.model import Expr as SpecExpr
from opgen.spec.walk import is_order

FEW = 16
"""Places for which the best so far are kept, whatever the number of values is."""

MORE = 64
"""Places up to which this is done where there are `MANY` times as many values: few of them are among the best."""

MANY = 8

DOUBLED = 31
"""Merges from the copy to other memory and back that any row could need: each makes runs 4 times as long."""

Fresh = Callable[[str], str]


def with_keys(
    definitions: Sequence[Definition], type_of: Callable[[SpecExpr], str], fresh: Fresh
) -> tuple[tuple[Definition, ...], tuple[Definition, ...]]:
    """The definitions, those of orders after what they sort: tensors of their own, sorted along the last dimension;
    and these tensors alone.
    """
    found: list[Definition] = []
    keys: list[Definition] = []
    for d in definitions:
        if isinstance(d.value, Reduce) and is_order(d.value):
            key = _key_of(d, d.value, type_of(d.value.body), fresh(f"{d.tensor}_keys"))
            d = replace(d, value=replace(d.value, body=Read(key.tensor, key.subscripts)))
            keys.append(key)
            found.append(key)
        found.append(d)
    return tuple(found), tuple(keys)


def _key_of(d: Definition, e: Reduce, dtype: str, name: str) -> Definition:
    indices = (*(r for r in d.indices if Index(r.name) != e.place), *e.indices)
    return Definition(
        tensor=name,
        indices=indices,
        subscripts=tuple(Index(r.name) for r in indices),
        value=e.body,
        dtype=dtype,
        dims=tuple(r.extent for r in indices),
        is_output=False,
        span=d.span,
    )


@dataclass(frozen=True)
class _Row:
    """What sorts one row: the buffers, and the variables and sizes of the other indices."""

    keys: Buffer
    spare: Buffer
    order: Buffer
    spare_order: Buffer
    outer: tuple[Expr, ...]
    size: Expr
    descending: bool
    fresh: Fresh

    def before(self, first: Expr, second: Expr) -> Expr:
        """Whether a value comes before another, of which neither comes first if they are equal."""
        found = Compare("gt" if self.descending else "lt", first, second)
        if not self.keys.dtype.is_float:
            return found
        nan, number = (first, second) if self.descending else (second, first)
        return b.either(found, b.both(Compare("ne", nan, nan), Compare("eq", number, number)))

    def at(self, buffer: Buffer, place: Expr) -> Load:
        return Load(buffer.name, (*self.outer, place), buffer.dtype)

    def put(self, buffer: Buffer, place: Expr, value: Expr) -> Store:
        return Store(buffer.name, (*self.outer, place), value)

    def inside(self, place: Expr) -> Expr:
        """A place of the row; there is one."""
        return b.maximum(b.minimum(place, b.sub(self.size, 1)), 0)

    def number(self, name: str, dtype: DType = INT64) -> _Number:
        return _Number(Buffer(self.fresh(name), dtype, (), "register"))


@dataclass(frozen=True)
class _Number:
    """A number that changes."""

    buffer: Buffer

    @property
    def now(self) -> Load:
        return Load(self.buffer.name, (), self.buffer.dtype)

    def set(self, value: Expr | int) -> Store:
        return Store(self.buffer.name, (), b.index(value))


def sorted_rows(
    d: Definition, keys: TensorAccess, order: TensorAccess, sizes: Sequence[Expr], names: Fresh
) -> tuple[list[Buffer], list[Stmt]]:
    """The memory and the nests that fill an order from its values; `sizes` are those of its indices."""
    e = d.value
    assert isinstance(e, Reduce)
    shape = keys.buffer.shape
    numbered = Buffer(names(f"{d.tensor}_order"), INT64, shape, "heap")
    spare_order = replace(numbered, name=names(f"{d.tensor}_spare_order"))
    spare = replace(keys.buffer, name=names(f"{d.tensor}_spare"))
    outer = tuple(b.var(names(f"{d.tensor}_{r.name}")) for r in d.indices if Index(r.name) != e.place)
    places = next(size for r, size in zip(d.indices, sizes, strict=True) if Index(r.name) == e.place)

    def fresh(name: str) -> str:
        return names(f"{d.tensor}_{name}")

    row = _Row(keys.buffer, spare, numbered, spare_order, outer, shape[-1], e.kind == "descending", fresh)
    few = b.compare("le", places, FEW)
    more = b.both(b.compare("le", places, MORE), b.compare("le", b.mul(places, MANY), row.size))

    def each_row(body: Stmt) -> Stmt:
        for var, size in reversed(list(zip(outer, shape[:-1], strict=True))):
            body = For(var.name, b.index(0), size, body)
        return body

    sort = b.when(b.either(few, more), each_row(_selected(row, places)), each_row(_merged(row)))
    return [numbered, spare_order, spare], [sort, _taken(d, e, row, order, sizes, names)]


def _taken(d: Definition, e: Reduce, row: _Row, order: TensorAccess, sizes: Sequence[Expr], names: Fresh) -> Stmt:
    """The wanted places of what is sorted, in the memory of the tensor."""
    loops = {r.name: b.var(names(f"{d.tensor}_{r.name}")) for r in d.indices}
    assert isinstance(e.place, Index)
    place = loops[e.place.name]
    outer = tuple(loops[r.name] for r in d.indices if r.name != e.place.name)
    subscripts = tuple(loops[s.name] for s in d.subscripts if isinstance(s, Index))
    found = Store(order.buffer.name, subscripts, replace(row, outer=outer).at(row.order, place))
    none = Store(order.buffer.name, subscripts, b.index(-1))
    nest: Stmt = b.when(b.compare("lt", place, row.size), found, none)
    if e.indices[0].extent == next(r.extent for r in d.indices if r.name == e.place.name):
        nest = found
    for subscript in reversed(d.subscripts):
        assert isinstance(subscript, Index)
        size = next(size for r, size in zip(d.indices, sizes, strict=True) if r.name == subscript.name)
        nest = For(loops[subscript.name].name, b.index(0), size, nest)
    return nest


def _selected(row: _Row, places: Expr) -> Stmt:
    """The first `places` values in order, by putting each that is among the best so far in its place.

    They are kept in the spare memory; once one is put in, each after it moves on by one.
    """
    key, number = row.number("key", row.keys.dtype), row.number("number")
    moved = row.number("moved", BOOL)
    held, held_number = row.number("held", row.keys.dtype), row.number("held_number")
    j, q = b.var(row.fresh("value")), b.var(row.fresh("best"))
    kept = b.minimum(places, row.size)
    earlier = b.minimum(j, kept)
    step = b.block(
        (
            held.set(row.at(row.spare, q)),
            held_number.set(row.at(row.order, q)),
            moved.set(b.either(moved.now, row.before(key.now, held.now))),
            row.put(row.spare, q, Select(moved.now, key.now, held.now)),
            row.put(row.order, q, Select(moved.now, number.now, held_number.now)),
            key.set(Select(moved.now, held.now, key.now)),
            number.set(Select(moved.now, held_number.now, number.now)),
        )
    )
    last = b.when(
        b.compare("lt", j, kept), b.block((row.put(row.spare, j, key.now), row.put(row.order, j, number.now)))
    )
    put = b.block((number.set(j), moved.set(b.FALSE), For(q.name, b.index(0), earlier, step, "ordered"), last))
    worst = row.at(row.spare, row.inside(b.sub(kept, 1)))
    among = (
        moved.set(b.TRUE),
        b.when(b.compare("ge", j, kept), moved.set(row.before(key.now, worst))),
        b.when(moved.now, put),
    )
    each = b.block((key.set(row.at(row.keys, j)), b.when(b.compare("ge", places, 1), b.block(among))))
    numbers = (key, number, moved, held, held_number)
    return b.alloc((n.buffer for n in numbers), For(j.name, b.index(0), row.size, each, "ordered"))


def _merged(row: _Row) -> Stmt:
    """All values in order, by merging runs: from the copy to the spare memory, and back."""
    width, step, numbering = row.number("width"), b.var(row.fresh("merge")), b.var(row.fresh("value"))
    there = _one_merge(row, width)
    back = replace(row, keys=row.spare, spare=row.keys, order=row.spare_order, spare_order=row.order)
    first = b.block(
        (width.set(1), For(numbering.name, b.index(0), row.size, row.put(row.order, numbering, numbering), "ordered"))
    )
    merge = b.block(
        (
            there,
            width.set(b.add(width.now, width.now)),
            _one_merge(back, width),
            width.set(b.add(width.now, width.now)),
        )
    )
    each = b.block((b.when(b.compare("eq", step, 0), first), b.when(b.compare("lt", width.now, row.size), merge)))
    return b.alloc((width.buffer,), For(step.name, b.index(0), b.index(DOUBLED), each, "ordered"))


def _one_merge(row: _Row, width: _Number) -> Stmt:
    """Pairs of runs of a width, each merged into one of twice the width, in the spare memory."""
    left, middle, right, end = (row.number(name) for name in ("left", "middle", "right", "end"))
    first, second = (row.number(name, row.keys.dtype) for name in ("first", "second"))
    taken = row.number("from_right", BOOL)
    k = b.var(row.fresh("place"))
    upto = b.minimum(b.add(k, width.now), row.size)
    pair = b.block(
        (
            left.set(k),
            middle.set(upto),
            right.set(middle.now),
            end.set(b.minimum(b.add(middle.now, width.now), row.size)),
        )
    )
    from_right = b.both(
        b.compare("lt", right.now, end.now),
        b.either(b.compare("ge", left.now, middle.now), row.before(second.now, first.now)),
    )
    source = row.inside(Select(taken.now, right.now, left.now))
    one = b.block(
        (
            b.when(b.compare("eq", k, end.now), pair),
            first.set(row.at(row.keys, row.inside(left.now))),
            second.set(row.at(row.keys, row.inside(right.now))),
            taken.set(from_right),
            row.put(row.spare, k, Select(taken.now, second.now, first.now)),
            row.put(row.spare_order, k, row.at(row.order, source)),
            left.set(b.add(left.now, Select(taken.now, b.index(0), b.index(1)))),
            right.set(b.add(right.now, Select(taken.now, b.index(1), b.index(0)))),
        )
    )
    merged = b.block(
        (end.set(0), left.set(0), middle.set(0), right.set(0), For(k.name, b.index(0), row.size, one, "ordered"))
    )
    numbers = (left, middle, right, end, first, second, taken)
    return b.alloc((n.buffer for n in numbers), merged)
