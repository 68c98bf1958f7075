"""Definitions of a generic op, expanded for a form."""

from __future__ import annotations

from collections.abc import Iterator

from opgen.spec import syntax as s
from opgen.spec.generic.evaluate import Evaluator
from opgen.spec.generic.lengths import Lengths
from opgen.spec.generic.values import known_integer
from opgen.spec.generic.world import Tensor


def definition(evaluator: Evaluator, decl: s.DefinitionDecl) -> Iterator[s.DefinitionDecl]:
    """The definition of a tensor; one of several outputs is made for each, one of an output that is absent for none."""
    world, name = evaluator.world, decl.target.name
    if world.present.get(name) is False:
        return
    Lengths(evaluator, decl).solve()
    several = world.tensors_of.get(name)
    for at, target in enumerate(several if several is not None else (name,)):
        yield _one(evaluator, decl, target, at if several is not None else None)
    if decl.let:
        parts = tuple(
            (isinstance(e, s.Expansion), len(evaluator.all(e.pattern)) if isinstance(e, s.Expansion) else 1)
            for e in decl.subscripts
        )
        world.tensors[name] = Tensor(parts)
    evaluator.lengths.clear()


def _one(evaluator: Evaluator, decl: s.DefinitionDecl, target: str, at: int | None) -> s.DefinitionDecl:
    with evaluator.demanding():
        subscripts = evaluator.spread(decl.subscripts, at)
    named = tuple(_index(e, k, target) for k, e in enumerate(subscripts))
    ident = s.Ident(decl.target.span, target)
    where = evaluator.ranges(decl.where, at)
    return s.DefinitionDecl(decl.span, decl.let, ident, named, evaluator.one(decl.value, at), where)


def _index(subscript: s.Expression, at: int, target: str) -> s.Expression:
    """A subscript of the left side; where that is 0, along a dimension of 1, an index stands for it."""
    if known_integer(subscript) == 0:
        return s.Named(subscript.span, f"{target}_at_{at}")
    return subscript
