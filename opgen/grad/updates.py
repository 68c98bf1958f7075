"""Adjoints of updates, and adjoints that are updates.

    y[p] = x[p]                               dx[p] = dy[p]
    y[ids[i]] add= v[i]                       dv[i] = dy[ids[i]]

If only the last `set=`, or the first extreme value, counts, a tensor holds the number of that update.  The adjoint of
an indirect read, `y[i] = x[ids[i]]`, is an update: `dx[ids[i]] add= dy[i]`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from opgen.grad.algebra import ONE, ZERO, add, choose, conjunction, divide, mul
from opgen.grad.equations import refused
from opgen.spec.model.model import (
    Conditional,
    Definition,
    Expr,
    Index,
    IndexRange,
    Number,
    Operation,
    OpSpec,
    Read,
    Reduce,
    Scatter,
)
from opgen.spec.model.walk import index_names, reads, subexpressions
from opgen.spec.resolve.updates import renamed

_START = Number(-1)
"""The update number of the initial value of an element."""
_NEVER = Number(2**62)
"""Greater than the number of any update."""
_RIGHT = 2
"""The greatest order of derivatives of `mul=`: `_factors` is right for this many factors that are 0."""

Define = Callable[[str, Definition, Expr, str], str]
"""Defines a tensor like that of a definition, with a value and a type, and returns its name."""


def apart(definition: Definition, fresh: Callable[[Definition], str]) -> tuple[Definition, ...]:
    """Split a definition into one for each update, and one for the initial value if that is not elementwise.

    `fresh` returns an unused name derived from that of a definition's tensor.
    """
    found = [definition]
    while True:
        e = found[0].value
        if not isinstance(e, Scatter) or not any(isinstance(n, Reduce) for n in subexpressions(e.start)):
            return tuple(found)
        if not all(isinstance(s, Index) for s in definition.subscripts):
            raise refused(f"updates of '{definition.tensor}', which is indexed by composites, have no gradient", e.span)
        before = replace(definition, tensor=fresh(definition), value=e.start, is_output=False)
        read = Read(before.tensor, definition.subscripts, span=e.span)
        found[:1] = [before, replace(found[0], value=replace(e, start=read))]


def check_order(op: OpSpec, varying: Collection[str]) -> None:
    """Refuse a derivative of products of updates beyond the highest correct order.

    `varying` are the tensors that depend on the input of differentiation.
    """
    for d in op.definitions:
        e = d.value
        if not isinstance(e, Scatter) or e.kind != "prod" or max(_left_out(e.body), _left_out(e.start)) < _RIGHT:
            continue
        if any(r.tensor in varying for r in reads(e)):
            which = f"'{op.name}' is a derivative of order {_RIGHT} of `mul=`"
            why = "it would be wrong where several factors are 0"
            raise refused(f"{which}, which has no derivative of order {_RIGHT + 1}: {why}", e.span)


def _left_out(factor: Expr) -> int:
    """Return how often factors of 0 were left out of a product: once for each derivative (`_factors`)."""
    match factor:
        case Conditional(Operation("==", value, Number(0)), Number(1), otherwise) if value == otherwise:
            return 1 + _left_out(value)
        case _:
            return 0


def weights(
    d: Definition, e: Scatter, seed: Expr, there: Expr, define: Define, value_of: Callable[[Definition], str]
) -> tuple[Expr, Expr]:
    """Return the adjoints of the initial element, and of the value of an update.

    `e` is the value of `d`; its condition says if an update is made at all.  `seed` is the adjoint of an element,
    `there` the adjoint of the updated element.
    """
    if e.kind == "sum":
        return seed, there
    if e.kind == "prod":
        return _factors(d, e, seed, there, define)
    number = _number(e.indices)
    if e.kind == "set":
        last = replace(e, body=number, start=_START)
        winner = define(f"{d.tensor}_winner", d, last, "int64")
    else:
        value = value_of(d)
        here, at = Read(value, d.subscripts), Read(value, e.at)
        wins = conjunction([*([] if e.condition is None else [e.condition]), _equal(e.body, at)])
        start = Conditional(_equal(e.start, here), _START, _NEVER)
        first = replace(e, kind="min", body=number, condition=wins, start=start)
        winner = define(f"{d.tensor}_winner", d, first, "int64")
    stays = Operation("==", Read(winner, d.subscripts), _START)
    return choose(stays, seed, ZERO), choose(Operation("==", Read(winner, e.at), number), there, ZERO)


def _equal(value: Expr, extreme: Expr) -> Expr:
    """Return the condition that a value is the extreme one, or NaN."""
    return Operation("or", Operation("==", value, extreme), Operation("!=", value, value))


def _number(indices: Sequence[IndexRange]) -> Expr:
    """Return the position of an update in their order, from 0."""
    number: Expr = ZERO
    for r in indices:
        number = add(mul(number, r.extent), Index(r.name))
    return number


def _factors(d: Definition, e: Scatter, seed: Expr, there: Expr, define: Define) -> tuple[Expr, Expr]:
    """Return the adjoints of a product's factors: the product of the other factors.

    It needs the product of all nonzero factors and the number of zeros.  If another factor is 0, the result is 0, but
    its derivative by that factor is not.  The term has the sum of all factors that are 0 in its place, so that second
    derivatives are right, too.
    """

    def zero(value: Expr, taken: Expr, otherwise: Expr) -> Expr:
        return Conditional(Operation("==", value, ZERO), taken, otherwise)

    count = replace(e, kind="sum", body=zero(e.body, ONE, ZERO), start=zero(e.start, ONE, ZERO))
    zeros = define(f"{d.tensor}_zeros", d, count, d.dtype)
    product = replace(e, body=zero(e.body, ONE, e.body), start=zero(e.start, ONE, e.start))
    rest = define(f"{d.tensor}_rest", d, product, d.dtype)
    null = replace(e, kind="sum", body=zero(e.body, e.body, ZERO), start=zero(e.start, e.start, ZERO))
    nulls = define(f"{d.tensor}_nulls", d, null, d.dtype)

    def others(value: Expr, seed: Expr, place: tuple[Expr, ...]) -> Expr:
        number, left, sum_of_nulls = Read(zeros, place), mul(seed, Read(rest, place)), Read(nulls, place)

        def of(least: int, product: Expr, another: Expr) -> Expr:
            second = choose(Operation("==", number, Number(least + 1)), mul(product, another), ZERO)
            return choose(Operation("==", number, Number(least)), product, second)

        one = of(1, left, Operation("-", sum_of_nulls, value))
        return zero(value, one, of(0, divide(left, value), sum_of_nulls))

    return others(e.start, seed, d.subscripts), others(e.body, there, e.at)


def scattered(
    read: Read,
    weight: Expr,
    ranges: tuple[IndexRange, ...],
    conditions: Sequence[Expr],
    actual: Sequence[Expr | None],
    so_far: Expr,
    own: Sequence[IndexRange],
) -> Scatter:
    """Return an adjoint with the contribution of an indirect read; `own` are the indices of the adjoint's definition.

    `actual` holds the sizes of broadcast dimensions: if one is 1, all subscripts share an element.
    """
    last = [None if a is None else Operation("-", a, ONE) for a in actual]
    at = tuple(i if n is None else Operation("min", i, n) for i, n in zip(read.indices, last, strict=True))
    e = Scatter("sum", ranges, weight, read.span, conjunction(list(dict.fromkeys(conditions))), at=at, start=so_far)
    inner = {r.name for n in subexpressions(so_far) if isinstance(n, Reduce) for r in n.indices}
    clashes = {r.name for r in own} | inner
    used = clashes | index_names(e) | {r.name for n in subexpressions(e) if isinstance(n, Reduce) for r in n.indices}
    names: dict[str, str] = {}
    for r in ranges:
        if r.name in clashes:
            free = (f"{r.name}_{n}" for n in ("", *range(2, len(used) + 3)))  # two underscores are no name in C
            names[r.name] = next(name for name in free if name not in used)
            used.add(names[r.name])
    return renamed(e, names)
