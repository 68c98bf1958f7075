"""pair: dot-product packing: two bfloat16 steps of a reduction in one, or four of bytes, over copies as words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from opgen.dtypes import BFLOAT16, FLOAT32, INT8, INT32, UINT8, DType
from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.analysis.polynomial import linear
from opgen.loop.nodes import (
    Binary,
    Buffer,
    Call,
    Cast,
    Const,
    Dot,
    Expr,
    For,
    Kernel,
    Load,
    Stmt,
    Store,
    Word,
)
from opgen.loop.walk import free_vars, loops_in, stores, substitute
from opgen.passes.fold import fold_all
from opgen.passes.simplify import simplify_expr
from opgen.schedule.declaration import Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import (
    before_nest,
    buffer_at,
    extent,
    nest_to_precede,
    require_fresh,
    require_loops,
    rewrite_loops,
    with_body,
)
from opgen.schedule.values import LoopName, Made


@primitive("sums", "pair c -> x, w_pairs", target="cpu", reorders_sums=True)
class Pair(Step):
    """Takes two steps of a bfloat16 sum at once, by the dot product of pairs: `x` in place, a copy of `w`. Takes four
    of a sum of uint8 times int8 in int32; those left over with zeros, if both are copied.
    """

    loop: LoopName
    first: Annotated[str, Made("{loop}_left")]
    second: Annotated[str, Made("{loop}_right")]

    def run(self, kernel: Kernel) -> Kernel:
        return pair(kernel, self.loop, self.first, self.second)


def pair(kernel: Kernel, loop: str, first: str, second: str) -> Kernel:
    """Take two steps of a reduction at once by the dot product of bfloat16 pairs, or four by that of bytes.

    The CPU's instruction is used where it has one.

                                                  alloc first: int32[c/2]
                                                  for first_0 in 0..c/2:
        for k in 0..c:                              first[first_0] = pair(x[2*first_0], x[2*first_0 + 1])
          acc = fma(float32(x[k]),          ->    (as much for second)
                    float32(y[k]), acc)           for k in 0..c/2:
                                                    acc = dot(acc, first[k], second[k])

    `first` and `second` name the copies, made before the loop nest.  The name of a buffer itself stands for no copy;
    the elements of a pair must then be adjacent.  If the steps do not begin at an even place, or advance by more than
    one place, a copy has a pair at every place.  An odd last step is left to a loop of its own, `k_last`.

    Both factors must be bfloat16, or one uint8 and the other int8, which are summed in int32 four at a time.  Leftover
    bytes become a word, too, if both factors are copied along a dimension that is not the last, and one of them ends
    with the last step.  Such copies have zeros beyond their ends.

    The higher element of a pair is added first.  So the order of the sum changes within pairs, and numbers below
    2**-126 may count as 0.  Sums of bytes are exact, modulo 2**32.
    """
    require_loops(kernel, "pair", [loop])
    found = [s for s in loops_in(kernel.body) if s.var == loop]
    if len(found) != 1:
        raise ScheduleError(f"pair {loop}: there are {len(found)} loops of that name")
    copies: list[_Copy] = []

    def paired(s: For, context: Context) -> Stmt:
        store, factors = _step(s)
        size = _SIZES[factors[0].dtype]
        sides = _sides(kernel, factors, s, (first, second), context)
        copies.extend(side for side in sides if not side.in_place)
        left, right = (side.read(s, context) for side in sides)
        if factors[0].dtype == INT8:
            left, right = right, left
        total = Load(store.buffer, store.indices, store.value.type.dtype)
        body = Store(store.buffer, store.indices, Dot(total, left, right))
        count = _count(s, context)
        if sides[0].filled:
            return For(s.var, Const(0), fold_all(b.ceildiv(count, size)), body, s.kind)
        pairs = For(s.var, Const(0), fold_all(b.floordiv(count, size)), body, s.kind)
        if isinstance(count, Const) and int(count.value) % size == 0:
            return pairs
        done = simplify_expr(b.add(s.start, b.mul(b.floordiv(count, size), size)), context)
        last = f"{s.var}_last"
        return b.block((pairs, For(last, done, s.stop, substitute(s.body, {s.var: b.var(last)}))))

    after = rewrite_loops(kernel, loop, paired)
    fresh = [n for copy in copies for n in (copy.name, *copy.counters)]
    require_fresh(kernel, "pair", [*fresh, f"{loop}_last"])
    _require_finished(after, loop, copies)
    made = before_nest(after.body, loop, [copy.buffer for copy in copies], [copy.fill() for copy in copies])
    return with_body(kernel, made)


def _count(loop: For, context: Context) -> Expr:
    """Return the number of iterations: at least 0 even if the bounds are out of order, as halves are rounded down."""
    count = extent(loop)
    return count if context.proves(b.compare("ge", count, 0)) else fold_all(b.maximum(count, 0))


def _sides(
    kernel: Kernel, factors: tuple[Load, Load], loop: For, names: tuple[str, str], context: Context
) -> tuple[_Copy, _Copy]:
    """Return the copies of both factors, with zeros beyond their ends if the leftover steps become a word."""
    count, size = _count(loop, context), _SIZES[factors[0].dtype]
    rest = isinstance(count, Const) and int(count.value) % size != 0 and factors[0].dtype != BFLOAT16

    def sides(filled: bool) -> tuple[_Copy, _Copy]:
        left, right = (
            _Copy.of(kernel, load, loop, name, context, filled) for load, name in zip(factors, names, strict=True)
        )
        return left, right

    if rest and all(load.buffer != name for load, name in zip(factors, names, strict=True)):
        found = sides(True)
        if any(side.ends_with(loop, context) for side in found) and not any(side.is_last for side in found):
            return found
    return sides(False)


def _step(loop: For) -> tuple[Store, tuple[Load, Load]]:
    """Return the store of a loop whose body adds one product, and the two factors."""
    store = loop.body
    factors = _factors(store) if isinstance(store, Store) else None
    if not isinstance(store, Store) or factors is None:
        raise _refusal(loop.var, "it does not add one product of two bfloat16 elements, or of a uint8 and an int8")
    return store, factors


_SIZES = {BFLOAT16: 2, UINT8: 4, INT8: 4}
"""Number of elements in a word."""


def _factors(s: Store) -> tuple[Load, Load] | None:
    """Return the two elements whose product a store accumulates."""
    total = Load(s.buffer, s.indices, s.value.type.dtype)
    match s.value:
        case Call("fma", (Cast() as x, Cast() as y, last)) if last == total:
            return _elements(x, y, FLOAT32, [{BFLOAT16}]) if s.mask is None else None
        case Binary("add", one, other) if total in (one, other):
            product = other if one == total else one
            match product:
                case Binary("mul", Cast() as x, Cast() as y) if s.mask is None:
                    return _elements(x, y, INT32, [{UINT8, INT8}])
    return None


def _elements(x: Cast, y: Cast, total: DType, wanted: list[set[DType]]) -> tuple[Load, Load] | None:
    """Return two elements of different buffers, if the types can be multiplied so and cast to the type of the sum."""
    match x.operand, y.operand:
        case Load(mask=None) as left, Load(mask=None) as right:
            fit = {left.dtype, right.dtype} in wanted and x.type.dtype == y.type.dtype == total
            return (left, right) if fit and left.buffer != right.buffer else None
    return None


@dataclass(frozen=True)
class _Copy:
    """A copy of a buffer that packs `count` elements along `axis` in a word: element i, element i + `apart`, ..."""

    source: Buffer
    name: str
    load: Load
    axis: int
    apart: int
    rest: Expr
    """The part of that dimension's index beside `apart` times the loop's variable."""
    dense: bool
    """True if each element is part of one word only."""
    count: int
    filled: bool
    """True if the copy has zeros beyond its end."""

    @staticmethod
    def of(kernel: Kernel, load: Load, loop: For, name: str, context: Context, filled: bool) -> _Copy:
        axes = [i for i, e in enumerate(load.indices) if loop.var in free_vars(e)]
        form = linear(load.indices[axes[0]], loop.var) if len(axes) == 1 else None
        if form is None or not isinstance(form[0], Const) or int(form[0].value) < 1:
            raise _refusal(loop.var, f"its steps do not walk along one dimension of '{load.buffer}'")
        apart, rest = int(form[0].value), form[1]
        source = buffer_at(kernel, load.buffer, loop)
        size = source.shape[axes[0]]
        count = _SIZES[load.dtype]
        words = "two" if count == 2 else "four"
        if not isinstance(size, Const) or (int(size.value) <= apart * (count - 1) and not filled):
            raise _refusal(loop.var, f"dimension {axes[0]} of '{load.buffer}' is not known to hold {words} steps")
        even = loop.start == Const(0) and (int(size.value) % count == 0 or rest == Const(0))
        dense = apart == 1 and even and simplify_expr(b.mod(rest, count), context) == Const(0)
        if name == source.name and (apart != 1 or axes[0] != len(source.shape) - 1):
            raise _refusal(loop.var, f"{words} steps are not next to each other in '{name}', which is not to be copied")
        return _Copy(source, name, load, axes[0], apart, rest, dense, count, filled)

    @property
    def is_last(self) -> bool:
        """Return True if words are along the last dimension."""
        return self.axis == len(self.source.shape) - 1

    def ends_with(self, loop: For, context: Context) -> bool:
        """Return True if no elements follow that of the last step."""
        behind = simplify_expr(b.add(b.mul(loop.stop, self.apart), self.rest), context)
        return context.proves(b.compare("ge", behind, self.source.shape[self.axis]))

    @property
    def in_place(self) -> bool:
        """Return True if there is no copy: the words are read directly from the source."""
        return self.name == self.source.name

    @property
    def counters(self) -> list[str]:
        return [f"{self.name}_{d}" for d in range(len(self.source.shape))]

    @property
    def buffer(self) -> Buffer:
        shape = list(self.source.shape)
        size = shape[self.axis]
        others = 0 if self.filled else self.apart * (self.count - 1)
        words = b.ceildiv(size, self.count) if self.filled else b.floordiv(size, self.count)
        shape[self.axis] = fold_all(words if self.dense else b.sub(size, others))
        return Buffer(self.name, INT32, tuple(shape), "heap")

    def read(self, loop: For, context: Context) -> Expr:
        """Return the word that a step of the new loop reads."""
        if self.in_place:
            return Word(tuple(self._element(loop, k, context) for k in range(self.count)))
        if self.dense:
            place = b.add(b.floordiv(self.rest, self.count), b.var(loop.var))
        else:
            first = b.add(loop.start, b.mul(b.var(loop.var), self.count))
            place = b.add(b.mul(first, self.apart), self.rest)
        indices = list(self.load.indices)
        indices[self.axis] = simplify_expr(place, context)
        return Load(self.name, tuple(indices), INT32)

    def _element(self, loop: For, k: int, context: Context) -> Load:
        """Return element `k` of the word that a step of the new loop reads without a copy."""
        step = b.add(b.add(loop.start, b.mul(b.var(loop.var), self.count)), k)
        *others, _ = self.load.indices
        return Load(self.source.name, (*others, simplify_expr(b.add(self.rest, step), context)), self.source.dtype)

    def fill(self) -> Stmt:
        """Return the loop nest that fills the copy."""
        places: list[Expr] = [b.var(c) for c in self.counters]
        first = b.mul(places[self.axis], self.count) if self.dense else places[self.axis]
        parts: list[Expr] = []
        for k in range(self.count):
            at = [*places]
            at[self.axis] = place = b.add(first, self.apart * k)
            if self.filled and k > 0:
                at[self.axis] = b.minimum(place, b.sub(self.source.shape[self.axis], 1))
            part: Expr = Load(self.source.name, tuple(at), self.source.dtype)
            if self.filled and k > 0:
                inside = b.compare("lt", place, self.source.shape[self.axis])
                part = b.select(inside, part, b.const(0, self.source.dtype))
            parts.append(part)
        move: Stmt = Store(self.name, tuple(places), Word(tuple(parts)))
        for counter, size in zip(reversed(self.counters), reversed(self.buffer.shape), strict=True):
            move = For(counter, b.index(0), size, move)
        return move


def _require_finished(kernel: Kernel, loop: str, copies: list[_Copy]) -> None:
    """Refuse copies of buffers that the loop nest itself writes."""
    made = {p.buffer for p in stores(nest_to_precede(kernel.body, loop))}
    for copy in copies:
        if copy.source.name in made:
            raise _refusal(loop, f"'{copy.source.name}' is written in the nest that would read a copy of it")


def _refusal(loop: str, why: str) -> ScheduleError:
    return ScheduleError(f"pair {loop}: {why}")
