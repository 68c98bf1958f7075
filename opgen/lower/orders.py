"""Orders: how the values of an index are sorted.

    let at[i, p] = ascending[j](x[i, j], p)

The values are copied, one row for each of the other indices, and each row is sorted by itself:

* Few places are wanted: the best so far are kept in order, and each value that is among them is put in its place,
  O(values * places).
* At most half of them are wanted: the last of them is found bit by bit, each by counting the values that do not come
  after it, in lanes; those before it and the first of its equals are merged, O(values * bits + places * log(places)).
* Else runs of 1, 2, 4, ... values are merged, from the copy to other memory and back, O(n log n).

All are stable.  A NaN is above all numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from opgen.dtypes import BOOL, INT32, INT64, UINT8, UINT16, UINT32, UINT64, DType
from opgen.loop import build as b
from opgen.loop.nodes import Binary, Buffer, Compare, CompareOp, Expr, For, Let, Load, Select, Stmt, Store, Var
from opgen.lower.scope import TensorAccess
from opgen.spec.model.model import Definition, Index, Read, Reduce
from opgen.spec.model.model import Expr as SpecExpr
from opgen.spec.model.walk import is_order

FEW = 16
"""Number of places up to which the best so far are kept, for any number of values."""

HALF = 2
"""Ratio of values to places from which the last place is searched for."""

TOGETHER = 64
"""Number of values tested together for a value that is searched for."""

COUNTED = 1 << 31
"""Values of a row that are counted in 32 bits."""

DOUBLED = 31
"""Merges from the copy to other memory and back that any row could need: each makes runs 4 times as long."""

Fresh = Callable[[str], str]


def with_keys(
    definitions: Sequence[Definition], type_of: Callable[[SpecExpr], str], fresh: Fresh
) -> tuple[tuple[Definition, ...], tuple[Definition, ...]]:
    """Return the definitions, those of orders after their keys, and the tensors of keys alone.

    Keys are tensors of their own, sorted along the last dimension.
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
    """The state of sorting one row: the buffers, and the variables and sizes of the other indices."""

    keys: Buffer
    spare: Buffer
    order: Buffer
    spare_order: Buffer
    outer: tuple[Expr, ...]
    size: Expr
    descending: bool
    fresh: Fresh

    def before(self, first: Expr, second: Expr) -> Expr:
        """Return a condition: a value comes before another; neither does if they are equal."""
        if not self.keys.dtype.is_float:
            return Compare("gt" if self.descending else "lt", first, second)
        if self.descending:
            return b.both(b.negate(Compare("le", first, second)), Compare("eq", second, second))
        return b.both(b.negate(Compare("ge", first, second)), Compare("eq", first, first))

    def number_before(self, first: Expr, second: Expr) -> Expr:
        """Return `before` for a value that is not a NaN before another."""
        if self.descending or not self.keys.dtype.is_float:
            return Compare("gt" if self.descending else "lt", first, second)
        return b.negate(Compare("ge", first, second))

    def nan_before(self, second: Expr) -> Expr:
        """Return a condition: a NaN comes before a value."""
        return Compare("eq", second, second) if self.descending else b.FALSE

    def perhaps_before(self, first: Expr, second: Expr) -> Expr:
        """Return a condition: a value may come before another, by one comparison; it does if neither is NaN."""
        op: CompareOp = "le" if self.descending else "ge"
        return b.negate(Compare(op, first, second)) if self.keys.dtype.is_float else self.before(first, second)

    def at(self, buffer: Buffer, place: Expr) -> Load:
        return Load(buffer.name, (*self.outer, place), buffer.dtype)

    def put(self, buffer: Buffer, place: Expr, value: Expr) -> Store:
        return Store(buffer.name, (*self.outer, place), value)

    def inside(self, place: Expr) -> Expr:
        """Return a place of the row; the row is not empty."""
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
    """Return the memory and the nests that fill an order from its values; `sizes` are those of its indices."""
    e = d.value
    assert isinstance(e, Reduce)
    shape = keys.buffer.shape
    numbered = Buffer(names(f"{d.tensor}_order"), INT64, shape, "heap")
    spare_order = replace(numbered, name=names(f"{d.tensor}_spare_order"))
    spare = replace(keys.buffer, name=names(f"{d.tensor}_spare"))
    others = [r.name for r in d.indices if Index(r.name) != e.place]
    outer, other_outer = (tuple(b.var(names(f"{d.tensor}_{name}")) for name in others) for _ in range(2))
    places = next(size for r, size in zip(d.indices, sizes, strict=True) if Index(r.name) == e.place)

    def fresh(name: str) -> str:
        return names(f"{d.tensor}_{name}")

    row = _Row(keys.buffer, spare, numbered, spare_order, outer, shape[-1], e.kind == "descending", fresh)
    few = b.compare("le", places, FEW)

    def each_row(body: Stmt, along: Sequence[Var] = outer) -> Stmt:
        for var, size in reversed(list(zip(along, shape[:-1], strict=True))):
            body = For(var.name, b.index(0), size, body)
        return body

    part = each_row(_merged(row))
    if row.keys.dtype != BOOL:
        counted = each_row(_counted(replace(row, outer=other_outer), places), other_outer)
        half = b.both(b.compare("le", b.mul(places, HALF), row.size), b.compare("lt", row.size, COUNTED))
        part = b.when(half, counted, part)
    sort = b.when(few, each_row(_selected(row, places)), part)
    return [numbered, spare_order, spare], [sort, _taken(d, e, row, order, sizes, names)]


def _taken(d: Definition, e: Reduce, row: _Row, order: TensorAccess, sizes: Sequence[Expr], names: Fresh) -> Stmt:
    """Return the loops that put the wanted places of the sorted values into the memory of the tensor."""
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
    """Return the first `places` values in order, by putting each that is among the best so far in its place.

    They are kept in the spare memory; once one is put in, each after it moves on by one.
    """
    key, number = row.number("key", row.keys.dtype), row.number("number")
    moved = row.number("moved", BOOL)
    held, held_number = row.number("held", row.keys.dtype), row.number("held_number")
    kept = b.minimum(places, row.size)

    def moves(upto: Expr, before: Callable[[Expr], Expr]) -> Stmt:
        q = b.var(row.fresh("best"))
        step = (
            held.set(row.at(row.spare, q)),
            held_number.set(row.at(row.order, q)),
            moved.set(b.either(moved.now, before(held.now))),
            row.put(row.spare, q, Select(moved.now, key.now, held.now)),
            row.put(row.order, q, Select(moved.now, number.now, held_number.now)),
            key.set(Select(moved.now, held.now, key.now)),
            number.set(Select(moved.now, held_number.now, number.now)),
        )
        return For(q.name, b.index(0), upto, b.block(step), "ordered")

    def put(value: Expr, upto: Expr) -> tuple[Stmt, ...]:
        found = moves(upto, lambda other: row.number_before(key.now, other))
        if row.keys.dtype.is_float:
            of_nan = moves(upto, row.nan_before) if row.descending else b.EMPTY
            found = b.when(Compare("eq", key.now, key.now), found, of_nan)
        return number.set(value), moved.set(b.FALSE), found

    first, rest = b.var(row.fresh("first")), b.var(row.fresh("value"))
    filled = (*put(first, first), row.put(row.spare, first, key.now), row.put(row.order, first, number.now))
    fill = For(first.name, b.index(0), kept, b.block((key.set(row.at(row.keys, first)), *filled)), "ordered")
    worst = row.at(row.spare, row.inside(b.sub(kept, 1)))
    better = b.when(row.before(key.now, worst), b.block(put(rest, kept)))
    each = b.block((key.set(row.at(row.keys, rest)), b.when(row.perhaps_before(key.now, worst), better)))
    scan = b.when(b.compare("ge", places, 1), For(rest.name, kept, row.size, each, "ordered"))
    return b.alloc((n.buffer for n in (key, number, moved, held, held_number)), b.block((fill, scan)))


def _counted(row: _Row, places: Expr) -> Stmt:
    """Store the first `places` values in order, by searching for the last of them.

    It is found bit by bit, by counting the values that do not come after it.  Then all before it, and the first of its
    equals, are merged.
    """
    kept = b.minimum(places, row.size)
    search = _Search(row, row.number("last", row.keys.dtype), row.number("seen"))
    key, equal, count = row.number("key", row.keys.dtype), row.number("equals"), row.number("count")
    value = b.var(row.fresh("value"))
    here = row.inside(count.now)
    put = row.put(row.keys, here, key.now), row.put(row.order, here, value), count.set(b.add(count.now, 1))
    equals = b.when(b.compare("gt", equal.now, 0), b.block((*put, equal.set(b.sub(equal.now, 1)))))
    put_or_equal = b.when(search.is_before(key.now), b.block(put), equals)
    taken = key.set(row.at(row.keys, value)), b.when(search.is_within(key.now), put_or_equal)
    statements = (
        search.run(kept),
        search.count(row.size, search.is_before),
        equal.set(b.sub(kept, search.seen.now)),
        count.set(0),
        search.each(value, b.block(taken)),
        _merged(row, kept),
    )
    numbers = (search.last, search.seen, key, equal, count)
    return b.alloc((n.buffer for n in numbers), b.when(b.compare("ge", places, 1), b.block(statements)))


@dataclass(frozen=True)
class _Search:
    """The last of the first values of a row, and a number of values that were seen."""

    row: _Row
    last: _Number
    seen: _Number

    def is_within(self, value: Expr) -> Expr:
        """Return a condition: a value does not come after the last one."""
        return b.negate(self.row.before(self.last.now, value))

    def is_before(self, value: Expr) -> Expr:
        return self.row.before(value, self.last.now)

    def count(self, size: Expr, is_counted: Callable[[Expr], Expr], start: Expr | int = 0) -> Stmt:
        """Count values from a place on, among `size` of them; in 32 bits, as many lanes as for most values."""
        row = self.row
        j, total = b.var(row.fresh("value")), row.number("total", INT32)
        one = Select(is_counted(row.at(row.keys, b.add(start, j))), b.const(1, INT32), b.const(0, INT32))
        count = For(j.name, b.index(0), size, total.set(Binary("add", total.now, one)))
        steps = total.set(b.const(0, INT32)), count, self.seen.set(b.cast(INT64, total.now))
        return b.alloc(total.buffer, b.block(steps))

    def run(self, kept: Expr) -> Stmt:
        """Find the last value of the first `kept` ones: the greatest code that covers that many."""
        row, codes = self.row, _Codes(self.row.keys.dtype)
        code, found, bit = row.number("code", codes.dtype), row.number("found", BOOL), b.var(row.fresh("bit"))
        tried = codes.with_bit(code.now, bit)
        each = (
            self.last.set(codes.value(tried, row.descending)),
            self.count(row.size, self.is_within),
            code.set(Select(b.compare("ge", self.seen.now, kept), tried, code.now)),
            found.set(b.compare("eq", self.seen.now, kept)),
        )
        step = b.when(b.negate(found.now), b.block(each))
        bits = For(bit.name, b.index(0), b.index(codes.dtype.bits), step, "ordered")
        start = code.set(b.const(0, codes.dtype)), found.set(b.FALSE)
        end = self.last.set(codes.value(code.now, row.descending))
        return b.alloc((code.buffer, found.buffer), b.block((*start, bits, end)))

    def each(self, value: Var, taken: Stmt) -> Stmt:
        """Something for each value, in order, that does not come after the last one: blocks that hold none are left
        out.
        """
        row = self.row
        block, place, rest = (b.var(row.fresh(name)) for name in ("block", "in_block", "rest"))
        blocks = b.floordiv(row.size, TOGETHER)
        begin = b.mul(block, TOGETHER)
        inner = For(place.name, b.index(0), b.index(TOGETHER), Let(value, b.add(begin, place), taken), "ordered")
        some = b.when(b.compare("gt", self.seen.now, 0), inner)
        one = b.block((self.count(b.index(TOGETHER), self.is_within, begin), some))
        last = Let(value, rest, taken)
        return b.block(
            (
                For(block.name, b.index(0), blocks, one, "ordered"),
                For(rest.name, b.mul(blocks, TOGETHER), row.size, last, "ordered"),
            )
        )


@dataclass(frozen=True)
class _Codes:
    """Unsigned integers for the values of a type, in their order."""

    of: DType

    @property
    def dtype(self) -> DType:
        return {8: UINT8, 16: UINT16, 32: UINT32, 64: UINT64}[self.of.bits]

    def with_bit(self, code: Expr, bit: Expr) -> Expr:
        """Return a code with the bit of a number, counted from the top."""
        one = Binary("shl", b.const(1, self.dtype), b.cast(self.dtype, b.sub(self.dtype.bits - 1, bit)))
        return Binary("or", code, one)

    def value(self, code: Expr, descending: bool) -> Expr:
        """Return the value of a code, in the order of descending values, or of ascending ones reversed.

        Codes below minus infinity count as minus infinity, so that no number comes before all values.
        """
        everything = b.const((1 << self.dtype.bits) - 1, self.dtype)
        top = b.const(1 << (self.dtype.bits - 1), self.dtype)
        if not descending:
            code = Binary("xor", code, everything)
        if not self.of.is_float:
            return b.cast(self.of, Binary("xor", code, top) if self.of.signed else code)
        fraction = self.of.precision - 1
        least = b.const((1 << fraction) - 1, self.dtype)
        code = Select(Compare("lt", code, least), least, code)
        positive = Compare("ge", code, top)
        return b.bit_cast(self.of, Select(positive, Binary("xor", code, top), Binary("xor", code, everything)))


def _merged(row: _Row, count: Expr | None = None) -> Stmt:
    """Store all values in order, or `count` numbered ones, by merging runs.

    The runs go from the copy to the spare memory, and back.
    """
    width, step, numbering = row.number("width"), b.var(row.fresh("merge")), b.var(row.fresh("value"))
    numbered = For(numbering.name, b.index(0), row.size, row.put(row.order, numbering, numbering), "ordered")
    row = row if count is None else replace(row, size=count)
    there = _one_merge(row, width)
    back = replace(row, keys=row.spare, spare=row.keys, order=row.spare_order, spare_order=row.order)
    first = b.block((width.set(1), *([numbered] if count is None else [])))
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
    """Merge pairs of runs of a width, each into one of twice the width, in the spare memory.

    The merge runs from both ends at once, and the two do not depend on each other.
    """
    low, middle, end, pairs = (row.number(name) for name in ("low", "middle", "end", "until"))
    front, back = _End.of(row, "front"), _End.of(row, "back")
    t = b.var(row.fresh("pair"))
    pair = b.block(
        (
            low.set(end.now),
            middle.set(b.minimum(b.add(low.now, width.now), row.size)),
            end.set(b.minimum(b.add(middle.now, width.now), row.size)),
            pairs.set(b.add(t, b.ceildiv(b.sub(end.now, low.now), 2))),
            front.left.set(low.now),
            front.right.set(middle.now),
            front.place.set(low.now),
            back.left.set(b.sub(middle.now, 1)),
            back.right.set(b.sub(end.now, 1)),
            back.place.set(b.sub(end.now, 1)),
        )
    )
    of_front = b.both(
        b.compare("lt", front.right.now, end.now),
        b.either(b.compare("ge", front.left.now, middle.now), row.before(front.second.now, front.first.now)),
    )
    of_back = b.either(
        b.compare("lt", back.left.now, low.now),
        b.both(b.compare("ge", back.right.now, middle.now), b.negate(row.before(back.second.now, back.first.now))),
    )
    one = (b.when(b.compare("eq", t, pairs.now), pair), *front.read(), *back.read())
    moves = (*front.move(of_front, 1), *back.move(of_back, -1))
    steps = For(t.name, b.index(0), b.ceildiv(row.size, 2), b.block((*one, *moves)), "ordered")
    numbers = (low, middle, end, pairs, *front.numbers, *back.numbers)
    start = tuple(n.set(0) for n in numbers if n.buffer.dtype == INT64)
    merged = b.when(b.compare("ge", row.size, 1), b.block((*start, steps)))  # a row has a last place then
    return b.alloc((n.buffer for n in numbers), merged)


@dataclass(frozen=True)
class _End:
    """One end of two runs that are merged: the elements of both that come next, and where the one taken goes."""

    row: _Row
    left: _Number
    right: _Number
    place: _Number
    first: _Number
    second: _Number
    taken: _Number

    @staticmethod
    def of(row: _Row, name: str) -> _End:
        dtype = row.keys.dtype
        left, right, place = (row.number(f"{name}_{n}") for n in ("left", "right", "place"))
        first, second = (row.number(f"{name}_{n}", dtype) for n in ("first", "second"))
        return _End(row, left, right, place, first, second, row.number(f"{name}_from_right", BOOL))

    @property
    def numbers(self) -> tuple[_Number, ...]:
        return self.left, self.right, self.place, self.first, self.second, self.taken

    def read(self) -> tuple[Stmt, ...]:
        row = self.row
        return (
            self.first.set(row.at(row.keys, row.inside(self.left.now))),
            self.second.set(row.at(row.keys, row.inside(self.right.now))),
        )

    def move(self, from_right: Expr, step: int) -> tuple[Stmt, ...]:
        row, now = self.row, self.taken.now
        source = row.inside(Select(now, self.right.now, self.left.now))
        place = row.inside(self.place.now)
        return (
            self.taken.set(from_right),
            row.put(row.spare, place, Select(now, self.second.now, self.first.now)),
            row.put(row.spare_order, place, row.at(row.order, source)),
            self.left.set(b.add(self.left.now, Select(now, b.index(0), b.index(step)))),
            self.right.set(b.add(self.right.now, Select(now, b.index(step), b.index(0)))),
            self.place.set(b.add(self.place.now, step)),
        )
