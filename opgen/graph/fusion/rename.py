"""Renaming of an op's declarations, and values for its sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from opgen.graph.fusion.rewrite import factors, untaken
from opgen.spec.model import model as m
from opgen.spec.model.visit import everything_in
from opgen.spec.model.walk import transform
from opgen.spec.resolve.words import MODULE


class Namer:
    """Generator of unique names."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken)

    def fresh(self, name: str) -> str:
        """Return the name, or one made from it that a spec may have and that is free."""
        found = untaken(name, self.taken | MODULE)
        self.taken.add(found)
        return found


def declared(op: m.OpSpec) -> Iterator[str]:
    """Yield every name in an op except those of its tensors, its indices and its algorithms' intermediates."""
    for entry in op.inputs:
        for dims in (entry.dims,) if isinstance(entry, m.Tensor) else entry.forms:
            yield from (f for d in dims for f in d.factors if isinstance(f, str))
    for entry in op.inputs:
        if isinstance(entry, m.Sizes):
            yield entry.name
            yield from (n for bound in entry.bindings for n, _ in bound)
    yield from (a.name for a in op.attrs)
    yield from (n for c in op.checks if isinstance(c, m.ShapeLet) for n in c.names)
    for d in (*op.definitions, *(d for a in op.algorithms for d in a.definitions)):
        if not d.is_output:
            yield d.tensor
        yield from (n.constant.name for n in everything_in(d.value) if isinstance(n, m.Element))


def rewritten(
    op: m.OpSpec, expression: Callable[[m.Expr], m.Expr], name: Callable[[str], str] = lambda name: name
) -> m.OpSpec:
    """Return an op with all its expressions and names rewritten."""

    def dimension(d: m.Dimension) -> m.Dimension:
        size = expression(d.size)
        return replace(d, size=size, factors=factors(size))

    def entry(i: m.Tensor | m.Sizes) -> m.Tensor | m.Sizes:
        if isinstance(i, m.Tensor):
            return replace(i, name=name(i.name), dims=tuple(map(dimension, i.dims)))
        forms = tuple(tuple(map(dimension, form)) for form in i.forms)
        bindings = tuple(tuple((name(n), v) for n, v in bound) for bound in i.bindings)
        return replace(i, name=name(i.name), forms=forms, bindings=bindings)

    def check(c: m.ShapeLet | m.Require) -> m.ShapeLet | m.Require:
        if isinstance(c, m.ShapeLet):
            return replace(c, names=tuple(map(name, c.names)), value=expression(c.value))
        expected = tuple(p if isinstance(p, str) else expression(p) for p in c.expected)
        return replace(c, condition=expression(c.condition), argument=name(c.argument), expected=expected)

    def definition(d: m.Definition) -> m.Definition:
        return replace(definition_with(d, expression), tensor=name(d.tensor))

    def algorithm(a: m.Algorithm) -> m.Algorithm:
        return replace(
            a,
            condition=None if a.condition is None else expression(a.condition),
            facts=tuple((expression(e), v) for e, v in a.facts),
            definitions=tuple(map(definition, a.definitions)),
        )

    return replace(
        op,
        inputs=tuple(map(entry, op.inputs)),
        attrs=tuple(replace(a, name=name(a.name)) for a in op.attrs),
        outputs=tuple(replace(o, name=name(o.name), dims=tuple(map(dimension, o.dims))) for o in op.outputs),
        checks=tuple(map(check, op.checks)),
        definitions=tuple(map(definition, op.definitions)),
        algorithms=tuple(map(algorithm, op.algorithms)),
    )


def definition_with(d: m.Definition, expression: Callable[[m.Expr], m.Expr]) -> m.Definition:
    """Return a definition with all its expressions rewritten."""
    return replace(
        d,
        indices=tuple(m.IndexRange(r.name, expression(r.extent)) for r in d.indices),
        subscripts=tuple(map(expression, d.subscripts)),
        value=expression(d.value),
        dims=tuple(map(expression, d.dims)),
    )


def renamed(op: m.OpSpec, names: Mapping[str, str], functions: Mapping[str, str]) -> m.OpSpec:
    """Return an op under other names; indices keep theirs."""

    def name(old: str) -> str:
        return names.get(old, old)

    def node(e: m.Expr) -> m.Expr:
        match e:
            case m.Symbol():
                return replace(e, name=name(e.name))
            case m.AttrValue():
                return replace(e, attr=name(e.attr))
            case m.Read():
                return replace(e, tensor=name(e.tensor))
            case m.Element():
                return replace(e, constant=replace(e.constant, name=name(e.constant.name)))
            case m.FunctionCall():
                return replace(e, function=functions.get(e.function, e.function))
            case _:
                return e

    return rewritten(op, lambda e: transform(node, e), name)
