"""Work of a scheduled kernel, estimated from its loops: arithmetic, accesses, bytes between the levels of memory.

A cache is assumed to hold everything that fits into it, regardless of its associativity.  The accesses of a loop are
bounded by a box for each buffer.  If a whole loop's boxes fit, they move once.  If one iteration's boxes fit, the
loop's boxes move once too, since data shared by consecutive iterations stays.  Otherwise every iteration moves its own.
Conditions and sizes that differ from iteration to iteration are evaluated in a typical one, away from the ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass

from opgen.loop import walk
from opgen.loop.analysis.tiles import Move, Multiply, Operation, operation
from opgen.loop.nodes import (
    INDEX,
    Alloc,
    Binary,
    Block,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    Const,
    Dot,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    Ramp,
    Select,
    Stmt,
    Store,
    Unary,
    Var,
)

Interval = tuple[float, float]
Ranges = Mapping[str, Interval]
Box = tuple[Interval, ...]
Boxes = dict[str, Box]

IN_REGISTERS = ("register",)
ON_CHIP = ("register", "stack", "shared")
"""Memory spaces that a CUDA device has besides its caches."""
SLOW: Mapping[str, int] = {"div": 16, "floordiv": 16, "mod": 16, "sqrt": 16}
"""Number of multiply-adds that each operation takes as long as; other functions are counted as FUNCTION."""
FUNCTION = 20
TYPICAL = 0.382
"""Position of a loop's typical iteration.  It is not the middle: where two loops were fused, that is an end of one."""

SAMPLES = 7
"""Iterations of an outermost loop over which is averaged."""


@dataclass(frozen=True)
class Executed:
    """Instructions of one run of the kernel: multiply-adds (of scalars; a vector has several), and loads and stores.

    `paired` of the multiply-adds are made two at a time, by dot products of pairs, `tiled` in products of tiles; a row
    of a tile is one access.  `instructions` are vectors of arithmetic on elements, multiply-adds among them, but for
    tiles; a division counts as many.
    """

    multiply_adds: float
    accesses: float
    paired: float = 0.0
    tiled: float = 0.0
    instructions: float = 0.0

    def times(self, count: float) -> Executed:
        return Executed(*(count * each for each in astuple(self)))

    def __add__(self, other: Executed) -> Executed:
        each = zip(astuple(self), astuple(other), strict=True)
        return Executed(*(a + b for a, b in each))


class Movement:
    """The work of a kernel without parameters, scheduled and legalised.

    Buffers in the spaces `near` do not count as memory; a vector has `vector_bytes`.
    """

    def __init__(self, kernel: Kernel, vector_bytes: int = 64, near: Sequence[str] = IN_REGISTERS) -> None:
        local = walk.buffers_in(kernel.body)
        buffers: list[Buffer] = [*kernel.buffers, *local]
        self._sizes = {b.name: b.dtype.bytes for b in buffers if b.space not in near}
        self._body = kernel.body
        self._vector_bytes = vector_bytes

    @property
    def element_bytes(self) -> int:
        """Return the bytes of the widest type that is multiplied and added; 4 if none is."""
        found = (e.type.dtype.bytes for s in walk.walk(self._body) for top in walk.expressions(s) for e in _fmas(top))
        return max(found, default=4)

    def between(self, size: int) -> float:
        """Return the bytes that pass between a cache of that size and the next level, for a kernel that runs
        repeatedly.
        """
        whole = self._bytes(self._boxes(self._body, {}))
        return 0.0 if whole <= size else self._moved(self._body, {}, size)

    def executed(self) -> Executed:
        return self._executed(self._body, {})

    def runs(self) -> dict[str, float]:
        """Return how often the body of each loop runs, by the variable; loops on a side not taken are left out."""
        found: dict[str, float] = {}
        for name, number in _runs(self._body, {}, 1.0):
            found[name] = max(number, found.get(name, 0.0))
        return found

    def _moved(self, s: Stmt, ranges: Ranges, size: int) -> float:
        boxes = self._boxes(s, ranges)
        whole = self._bytes(boxes)
        if whole <= size or isinstance(s, Store):
            return whole
        if isinstance(s, For):
            inside = typical(s, ranges)
            if self._bytes(self._boxes(s.body, inside)) <= size:
                return whole
            return count(s, ranges) * self._moved(s.body, inside, size)
        return sum(self._moved(child, inner, size) for child, inner in _children(s, ranges))

    def _boxes(self, s: Stmt, ranges: Ranges) -> Boxes:
        """Return a box for each buffer that the statement touches, over all its iterations."""
        found: Boxes = {}
        for access, inner in _accesses(s, ranges):
            if access.buffer in self._sizes:
                box = tuple(_subscripts(i, inner) for i in access.indices)
                other = found.get(access.buffer)
                found[access.buffer] = box if other is None else _hull(box, other)
        return found

    def _bytes(self, boxes: Boxes) -> float:
        elements = {name: math.prod(high - low + 1 for low, high in box) for name, box in boxes.items()}
        return float(sum(self._sizes[name] * number for name, number in elements.items()))

    def _executed(self, s: Stmt, ranges: Ranges) -> Executed:
        if isinstance(s, For) and (tile := operation(s)) is not None:
            return _of_tiles(tile)
        if isinstance(s, For):
            points = [typical(s, ranges)] if ranges else samples(s)
            each = [self._executed(s.body, point) for point in points]
            return sum(each, Executed(0, 0)).times(count(s, ranges) / len(points))
        children = list(_children(s, ranges))
        straight = [child for child, _ in children if isinstance(child, Store)]
        total = self._straight(straight if isinstance(s, Block) else [s])
        for child, inner in children:
            if not (isinstance(s, Block) and isinstance(child, Store)):
                total += self._executed(child, inner)
        return total

    def _straight(self, statements: Sequence[Stmt]) -> Executed:
        """Count the statements' own expressions.  A load that several of them share counts once."""
        expressions = [e for s in statements for top in walk.expressions(s) for e in walk.walk_expr(top)]
        adds = sum(e.type.lanes for e in expressions if isinstance(e, Call) and e.function == "fma")
        paired = sum(2 * e.type.lanes for e in expressions if isinstance(e, Dot))
        loads = {e for e in expressions if isinstance(e, Load) and e.buffer in self._sizes}
        stores = [s for s in statements if isinstance(s, Store) and s.buffer in self._sizes]
        vectors = sum(self._instructions(e) for s in statements for top in _values(s) for e in _arithmetic(top))
        return Executed(adds + paired, len(loads) + len(stores), paired, instructions=vectors)

    def _instructions(self, e: Expr) -> float:
        """Return the number of vectors of multiply-adds that take as long as an operation."""
        name = e.op if isinstance(e, Binary | Unary) else e.function if isinstance(e, Call) else ""
        each = SLOW.get(name, FUNCTION if isinstance(e, Call) and name not in ("fma", "abs", "floor", "ceil") else 1)
        return each * math.ceil(e.type.lanes * e.type.dtype.bytes / self._vector_bytes)


def _arithmetic(e: Expr) -> Iterator[Expr]:
    """Yield the operations on elements in a value, each once: not those of subscripts."""
    left, seen = [e], set[int]()
    while left:
        found = left.pop()
        if id(found) in seen or isinstance(found, Load | Ramp):
            continue
        seen.add(id(found))
        if isinstance(found, Binary | Unary | Call | Dot | Select | Compare | Cast):
            yield found
        left += walk.operands(found)


def _fmas(top: Expr) -> Iterator[Call]:
    return (e for e in walk.walk_expr(top) if isinstance(e, Call) and e.function == "fma")


def _values(s: Stmt) -> Iterator[Expr]:
    """Yield the values that a statement stores or names; those of subscripts are not counted."""
    if isinstance(s, Store) or (isinstance(s, Let) and s.var.type != INDEX):
        yield s.value


def _subscripts(e: Expr, ranges: Ranges) -> Interval:
    """Return the values of a subscript; if elements decide it, a single one, to count no more than moves."""
    return (0.0, 0.0) if walk.reads_memory(e) else interval(e, ranges)


def _of_tiles(tile: Operation) -> Executed:
    """Count each operand's load for two products, as four registers hold sums of two by two."""
    match tile:
        case Multiply():
            products = 2.0 * tile.rows * tile.columns * tile.depth
            return Executed(products, (tile.rows + tile.depth) / 2, tiled=products)
        case Move():
            return Executed(0, tile.rows)
        case _:
            return Executed(0, 0)


def _children(s: Stmt, ranges: Ranges) -> Iterator[tuple[Stmt, Ranges]]:
    """Yield the statements within, with their ranges; for a branch, only the side that is taken."""
    match s:
        case Block(statements):
            yield from ((child, ranges) for child in statements)
        case For():
            yield s.body, {**ranges, s.var: _span(s, ranges)}
        case If(condition, then, otherwise):
            low, high = interval(condition, ranges)
            if low + high >= 1:
                yield then, ranges
            elif otherwise is not None:
                yield otherwise, ranges
        case Let(var, value, body):
            yield body, {**ranges, var.name: _subscripts(value, ranges)}
        case Alloc(_, body):
            yield body, ranges


def _runs(s: Stmt, ranges: Ranges, outside: float) -> Iterator[tuple[str, float]]:
    if isinstance(s, For):
        outside *= count(s, ranges)
        yield s.var, outside
        yield from _runs(s.body, typical(s, ranges), outside)
        return
    for child, inner in _children(s, ranges):
        yield from _runs(child, inner, outside)


def _accesses(s: Stmt, ranges: Ranges) -> Iterator[tuple[Load | Store, Ranges]]:
    for top in walk.expressions(s):
        for e in walk.walk_expr(top):
            if isinstance(e, Load):
                yield e, ranges
    if isinstance(s, Store):
        yield s, ranges
    for child, inner in _children(s, ranges):
        yield from _accesses(child, inner)


def _span(loop: For, ranges: Ranges) -> Interval:
    low, high = interval(loop.start, ranges)[0], interval(loop.stop, ranges)[1] - 1
    return low, max(low, high)


def typical(loop: For, ranges: Ranges) -> Ranges:
    """Within the loop, in its typical iteration."""
    low, high = _span(loop, ranges)
    return {**ranges, loop.var: (low + math.floor(TYPICAL * (high - low)),) * 2}


def samples(loop: For) -> list[Ranges]:
    """Within an outermost loop, in several iterations spread over it: its ends differ from the rest."""
    low, high = _span(loop, {})
    number = min(SAMPLES, int(high - low) + 1)
    return [{loop.var: (low + math.floor((i + 0.5) / number * (high - low + 1)),) * 2} for i in range(number)]


def count(loop: For, ranges: Ranges) -> float:
    """Return the number of iterations of the loop, in the typical iteration of those around it."""
    start, stop = (sum(interval(e, ranges)) / 2 for e in (loop.start, loop.stop))
    return max(0.0, stop - start)


def _hull(a: Box, b: Box) -> Box:
    return tuple((min(p[0], q[0]), max(p[1], q[1])) for p, q in zip(a, b, strict=True))


def interval(e: Expr, ranges: Ranges) -> Interval:
    """Return the values of an integer or bool expression (bools are 0 and 1), by the ranges of its variables."""
    match e:
        case Const(value):
            return float(value), float(value)
        case Var(name):
            return ranges.get(name, (0.0, 0.0))
        case Unary(op, operand):
            low, high = interval(operand, ranges)
            return (-high, -low) if op == "neg" else (1 - high, 1 - low)
        case Cast(_, operand) | Broadcast(operand, _):
            return interval(operand, ranges)
        case Ramp(base, stride, lanes):
            (low, high), steps = interval(base, ranges), interval(stride, ranges)
            ends = [step * (lanes - 1) for step in steps]
            return low + min(0.0, *ends), high + max(0.0, *ends)
        case Select(_, if_true, if_false):
            return _hull((interval(if_true, ranges),), (interval(if_false, ranges),))[0]
        case Compare(op, left, right):
            return _compared(op, interval(left, ranges), interval(right, ranges))
        case Binary(op, left, right):
            return _combined(op, interval(left, ranges), interval(right, ranges))
    return 0.0, 0.0


def _compared(op: str, a: Interval, b: Interval) -> Interval:
    """Return (1, 1) if it always holds, (0, 0) if never."""
    if op in ("gt", "ge"):
        return _compared({"gt": "lt", "ge": "le"}[op], b, a)
    if op in ("eq", "ne"):
        same = a == b and a[0] == a[1]
        apart = a[1] < b[0] or b[1] < a[0]
        always, never = (same, apart) if op == "eq" else (apart, same)
    elif op == "lt":
        always, never = a[1] < b[0], a[0] >= b[1]
    else:
        always, never = a[1] <= b[0], a[0] > b[1]
    return (1.0, 1.0) if always else (0.0, 0.0) if never else (0.0, 1.0)


def _combined(op: str, a: Interval, b: Interval) -> Interval:
    corners: Iterable[float]
    match op:
        case "add":
            return a[0] + b[0], a[1] + b[1]
        case "sub":
            return a[0] - b[1], a[1] - b[0]
        case "mul":
            corners = [x * y for x in a for y in b]
        case "floordiv":
            corners = [x // y for x in a for y in b if y] or [0.0]
        case "mod":
            top = max(map(abs, b)) - 1
            inside = a[0] // (top + 1) == a[1] // (top + 1) if top >= 0 else False
            return (a[0] % (top + 1), a[1] % (top + 1)) if inside else (0.0, max(0.0, top))
        case "min" | "and":
            return min(a[0], b[0]), min(a[1], b[1])
        case "max" | "or":
            return max(a[0], b[0]), max(a[1], b[1])
        case _:
            return 0.0, 1.0
    return min(corners), max(corners)
