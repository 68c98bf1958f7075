"""Small rewrites of a model's expressions, shared by the modules of composition."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from opgen.spec.model import model as m
from opgen.spec.model.walk import operands, subexpressions, substitute_indices, transform, with_operands
from opgen.spec.resolve.names import why_illegal

TRUE = m.Number(value=True)
FALSE = m.Number(value=False)


def is_bool(e: m.Expr) -> bool:
    """Return whether an expression is `true` or `false`."""
    return isinstance(e, m.Number) and isinstance(e.value, bool)


def _says(e: m.Expr, value: bool) -> bool:
    return isinstance(e, m.Number) and e.value is value


def folded(e: m.Expr) -> m.Expr:
    """Return an expression with the effects of `true` and `false` folded; its operands are folded already."""
    match e:
        case m.Not(m.Number(bool() as value)):
            return m.Number(not value)
        case m.Conditional(m.Number(bool() as value), if_true, if_false):
            return if_true if value else if_false
        case m.Reduce(condition=m.Number(bool() as value)) if value:
            return replace(e, condition=None)
        case m.Operation("and" | "or", left, right):
            decides = e.op == "or"
            if _says(left, decides) or _says(right, not decides):
                return left
            return right if _says(left, not decides) or _says(right, decides) else e
        case m.Operation("==" | "!=", m.Number(bool() as left), m.Number(bool() as right)):
            return m.Number((left is right) == (e.op == "=="))
        case m.Operation("==" | "!=", m.Number(int() as left), m.Number(int() as right)):
            return m.Number((left == right) == (e.op == "=="))
        case m.Operation("==" | "!=", other, m.Number(bool() as value)):
            return other if value == (e.op == "==") else folded(m.Not(other))
        case _:
            return e


def with_children(e: m.Expr, fn: Callable[[m.Expr], m.Expr]) -> m.Expr:
    """Return an expression with `fn` applied to its operands; the extents of reductions stay."""
    return with_operands(e, tuple(map(fn, operands(e))))


def factors(size: m.Expr) -> tuple[str | int, ...]:
    """Return the names and integers whose product a size is, like `Dimension.factors`; () if it is not a product."""
    match size:
        case m.Symbol():
            return (size.name,)
        case m.Number(int() as value):
            return (value,)
        case m.Operation("*"):
            left, right = factors(size.left), factors(size.right)
            return left + right if left and right else ()
        case _:
            return ()


def product_of(sizes: Sequence[m.Expr]) -> m.Expr:
    """Return the product of sizes, at least one."""
    return reduce(lambda left, right: m.Operation("*", left, right), sizes)


def indices_in(subscripts: tuple[m.Expr, ...]) -> Iterator[str]:
    """Yield the indices of subscripts, in order of occurrence."""
    for e in subscripts:
        for n in subexpressions(e):
            if isinstance(n, m.Index):
                yield n.name


def in_order(ranges: tuple[m.IndexRange, ...], subscripts: tuple[m.Expr, ...]) -> tuple[m.IndexRange, ...]:
    """Return the ranges of a definition's indices, in the order of its left side."""
    by_name = {r.name: r for r in ranges}
    return tuple(by_name[name] for name in dict.fromkeys(indices_in(subscripts)))


def without_ones(d: m.Definition) -> m.Definition:
    """Return a definition with 0 in place of indices of extent 1 in composed subscripts."""
    composed = set(indices_in(tuple(s for s in d.subscripts if not isinstance(s, m.Index))))
    zeros: dict[str, m.Expr] = {
        r.name: m.Number(0) for r in d.indices if r.extent == m.Number(1) and r.name in composed
    }
    if not zeros:
        return d
    subscripts = tuple(transform(_shorter, substitute_indices(s, zeros)) for s in d.subscripts)
    if any(isinstance(s, m.Number) for s in subscripts):
        return d
    ranges = tuple(r for r in d.indices if r.name not in zeros)
    value = transform(_with_shorter_places, substitute_indices(d.value, zeros))
    return replace(d, indices=in_order(ranges, subscripts), subscripts=subscripts, value=value)


def _with_shorter_places(e: m.Expr) -> m.Expr:
    if isinstance(e, m.Read | m.Element):
        return replace(e, indices=tuple(transform(_shorter, i) for i in e.indices))
    return e


def _shorter(e: m.Expr) -> m.Expr:
    """Return an integer without terms that are 0 and factors that are 1."""
    match e:
        case m.Operation("+", m.Number(0), other) | m.Operation("+", other, m.Number(0)):
            return other
        case m.Operation("*", m.Number(1), other) | m.Operation("*", other, m.Number(1)):
            return other
        case m.Operation("*", m.Number(0), _) | m.Operation("*", _, m.Number(0)):
            return m.Number(0)
    return e


def clear_indices(d: m.Definition, taken: Collection[str]) -> m.Definition:
    """Return a definition whose indices use no taken name, and whose reductions rebind no name of an outer index."""
    own = _new_names((r.name for r in d.indices), set(taken))
    outer = {name: m.Index(new) for name, new in own.items()}
    return replace(
        d,
        indices=tuple(m.IndexRange(own[r.name], r.extent) for r in d.indices),
        subscripts=tuple(substitute_indices(s, outer) for s in d.subscripts),
        value=_clear(d.value, own, {*taken, *own.values()}),
    )


def _clear(e: m.Expr, names: Mapping[str, str], taken: Collection[str]) -> m.Expr:
    if isinstance(e, m.Index):
        return replace(e, name=names.get(e.name, e.name))
    if isinstance(e, m.Reduce):
        own = _new_names((r.name for r in e.indices), set(taken))
        names, taken = {**names, **own}, {*taken, *own.values()}
        e = replace(e, indices=tuple(m.IndexRange(own[r.name], r.extent) for r in e.indices))
    return with_children(e, lambda o: _clear(o, names, taken))


def _new_names(names: Iterable[str], taken: set[str]) -> dict[str, str]:
    """Return for each name itself, or one made from it that is not taken."""
    found: dict[str, str] = {}
    for name in names:
        found[name] = untaken(name, taken)
        taken.add(found[name])
    return found


def untaken(name: str, taken: Collection[str]) -> str:
    """Return a name, or one made from it with a number, that a spec may have and that is not taken."""
    plain = re.sub(r"_+", "_", name).strip("_") or "x"
    numbered = (made for count in itertools.count(2) for made in (f"{plain}_{count}", f"{plain}{count}"))
    return next(n for n in itertools.chain((name,), numbered) if n not in taken and why_illegal(n) is None)
