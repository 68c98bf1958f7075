"""Dimensions of inputs and outputs: their form, their symbols, and a check that the inputs determine them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from opgen.diagnostics import Span
from opgen.spec.model import model as m
from opgen.spec.resolve.kinds import number
from opgen.spec.resolve.mathematics import show
from opgen.spec.resolve.resolve import Resolver
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.report import Report
from opgen.spec.syntax.strings import plural


def symbols_of(tree: s.Expression) -> Iterator[s.Named]:
    """Yield the names in a product, in order."""
    if isinstance(tree, s.Named):
        yield tree
    elif isinstance(tree, s.Binary):
        yield from symbols_of(tree.left)
        yield from symbols_of(tree.right)


def input_dimension(report: Report, tree: s.Dim) -> m.Dimension | None:
    """Return a dimension of an input: a product of names and integers, or one name that broadcasts."""
    factors = _factors(report, tree.size)
    if factors is None:
        return None
    if tree.broadcast is not None and (tree.broadcast != "1" or len(factors) != 1 or isinstance(factors[0], int)):
        report.add("S041", "a dimension that broadcasts is written `name | 1`", tree.span)
        return None
    parts: list[m.Expr] = [m.Number(f) if isinstance(f, int) else m.Symbol(f, tree.span) for f in factors]
    size = reduce(lambda left, right: m.Operation("*", left, right, tree.span), parts)
    return m.Dimension(size, factors, tree.broadcast is not None, tree.span)


def _factors(report: Report, tree: s.Expression) -> tuple[str | int, ...] | None:
    if isinstance(tree, s.Named):
        return (tree.name,)
    if isinstance(tree, s.Constant):
        value = number(tree)
        if isinstance(value, int) and not isinstance(value, bool):
            return (value,)
    if isinstance(tree, s.Binary) and tree.op == "*":
        left, right = _factors(report, tree.left), _factors(report, tree.right)
        return None if left is None or right is None else left + right
    report.add(
        "S041", "a dimension of an input is a product of names and integers", tree.span, "compute others with `let`"
    )
    return None


def output_dimension(resolver: Resolver, tree: s.Dim) -> m.Dimension | None:
    """Return a dimension of an output: any integer of the shape language."""
    if tree.broadcast is not None:
        resolver.report.add("S041", "a dimension of an output does not broadcast", tree.span)
        return None
    size = resolver.integer(tree.size)
    return None if size is None else m.Dimension(size, _plain_factors(size), False, tree.span)


def _plain_factors(size: m.Expr) -> tuple[str | int, ...]:
    if isinstance(size, m.Symbol):
        return (size.name,)
    if isinstance(size, m.Number) and isinstance(size.value, int):
        return (size.value,)
    if isinstance(size, m.Operation) and size.op == "*":
        left, right = _plain_factors(size.left), _plain_factors(size.right)
        return left + right if left and right else ()
    return ()


@dataclass(frozen=True)
class _World:
    """Choice of one form for every sizes input."""

    dims: tuple[m.Dimension, ...]
    fixed: frozenset[str]
    chosen: tuple[str, ...]


def check_determined(
    report: Report, inputs: Sequence[m.Tensor | m.Sizes], symbols: Mapping[str, Span], lets: Iterable[str]
) -> None:
    """Note every symbol that the inputs leave undetermined under some choice of forms; `lets` count as known."""
    computed = set(lets)
    told: set[str] = set()
    for world in _worlds(inputs):
        known = determined(world.dims, set(world.fixed) | computed)
        for name, span in symbols.items():
            if name in known or name in told:
                continue
            told.add(name)
            where = f" where {' and '.join(world.chosen)}" if world.chosen else ""
            help = "a product can be solved for one factor: give the others as dimensions of their own"
            report.add("S040", f"the inputs do not determine '{name}'{where}", span, help)


def determined(dims: Iterable[m.Dimension], known: set[str]) -> set[str]:
    """Return the known and solvable symbols; a dimension is solved for its only unknown factor."""
    found = set(known)
    waiting = list(dims)
    while True:
        solved = set()
        for dim in waiting:
            unknown = Counter(f for f in dim.factors if isinstance(f, str) and f not in found)
            if sum(unknown.values()) == 1:
                solved |= set(unknown)
        if not solved:
            return found
        found |= solved


def told_elsewhere(dims: Iterable[m.Dimension], following: Iterable[m.Dimension], known: set[str]) -> set[str]:
    """Return the stretching symbols that only products, or the shapes in `following`, determine.

    Symbols that a dimension with a single factor determines are excluded.  The remaining stretching symbols take the
    first size that is not 1.
    """
    given = list(dims)
    firm = [d for d in given if not d.broadcast]
    alone = {f for d in firm if len(d.factors) == 1 for f in d.factors}
    stretching = {str(d.factors[0]) for d in given if d.broadcast}
    return (determined([*firm, *following], known) & stretching) - alone - known


def told_only_by_stretching(inputs: Sequence[m.Tensor | m.Sizes], lets: Iterable[str]) -> set[str]:
    """Return the symbols that, for some form of the sizes, are only the largest size of stretching dimensions."""
    computed = set(lets)
    loose: set[str] = set()
    for world in _worlds(inputs):
        stretching = {str(d.factors[0]) for d in world.dims if d.broadcast}
        firm = (d for d in world.dims if not d.broadcast)
        loose |= stretching - determined(firm, set(world.fixed) | computed)
    return loose


def _worlds(inputs: Sequence[m.Tensor | m.Sizes]) -> Iterator[_World]:
    tensors = tuple(d for i in inputs if isinstance(i, m.Tensor) for d in i.dims)
    sizes = [i for i in inputs if isinstance(i, m.Sizes)]
    choices = [range(len(i.forms)) for i in sizes]
    for picks in itertools.islice(itertools.product(*choices), 64):
        dims, fixed, chosen = list(tensors), set[str](), []
        for vector, pick in zip(sizes, picks, strict=True):
            dims += vector.forms[pick]
            fixed |= {name for name, _ in (vector.bindings[pick] if vector.bindings else ())}
            if len(vector.forms) > 1:
                chosen.append(f"'{vector.name}' has {plural(len(vector.forms[pick]), 'element')}")
        yield _World(tuple(dims), frozenset(fixed), tuple(chosen))


def size_name(dim: m.Dimension) -> str:
    """Describe a dimension for a message."""
    if dim.factors:
        return " * ".join(str(f) for f in dim.factors)
    if isinstance(dim.size, m.SizeOf):
        return f"dimension {dim.size.axis} of {dim.size.tensor}"
    return show(dim.size)
