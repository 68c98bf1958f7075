"""Expansion of a generic op's definitions for a form."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from opgen.spec.generic.evaluate import Evaluator
from opgen.spec.generic.lengths import Lengths
from opgen.spec.generic.trees import everything_in
from opgen.spec.generic.types import QUESTIONS
from opgen.spec.generic.values import Mistake, known_condition, known_integer
from opgen.spec.generic.world import Tensor
from opgen.spec.syntax import nodes as s


def definition(evaluator: Evaluator, decl: s.DefinitionDecl) -> Iterator[s.DefinitionDecl]:
    """Expand the definition of a tensor: one for each of several outputs, none for an absent output."""
    world, name = evaluator.world, decl.target.name
    if world.present.get(name) is False:
        return
    if decl.condition is not None and _of_the_form(evaluator, decl.condition):
        with evaluator.demanding():
            taken = known_condition(evaluator.one(decl.condition, None))
        if taken is False:
            return
        decl = decl if taken is None else dataclasses.replace(decl, condition=None)
    Lengths(evaluator, decl).solve()
    if decl.pack:
        world.tensors_of[name] = tuple(f"{name}_{k}" for k in range(_count(evaluator, decl)))
    several = world.tensors_of.get(name)
    for at, target in enumerate(several if several is not None else (name,)):
        yield _one(evaluator, decl, target, at if several is not None else None)
    if decl.let:
        parts = tuple(
            (isinstance(e, s.Expansion), len(evaluator.all(e.pattern)) if isinstance(e, s.Expansion) else 1)
            for e in decl.subscripts
        )
        world.tensors |= dict.fromkeys(world.tensors_of.get(name, (name,)), Tensor(parts))
    evaluator.lengths.clear()
    evaluator.decided.clear()


def _count(evaluator: Evaluator, decl: s.DefinitionDecl) -> int:
    """Return the number of tensors in a pack: the number of elements of the packs in its value and in its extents."""
    trees = (decl.value, *(r.extent for r in decl.where if r.extent is not None and not r.pack))
    counts = [(n, tree) for tree in trees for n in [evaluator.length(tree)] if n is not None]
    if not counts:
        help = "name something that there are several of, in it or after `where`"
        raise Mistake("there is no pack in what is expanded here", decl.value.span, help)
    for count, tree in counts[1:]:
        if count != counts[0][0]:
            raise Mistake(f"lists of {counts[0][0]} and of {count} elements do not go together", tree.span)
    return counts[0][0]


def _one(evaluator: Evaluator, decl: s.DefinitionDecl, target: str, at: int | None) -> s.DefinitionDecl:
    with evaluator.demanding():
        subscripts = evaluator.spread(decl.subscripts, at)
    named = tuple(_index(e, k, target) if decl.update is None else e for k, e in enumerate(subscripts))
    ident = s.Ident(decl.target.span, target)
    where = evaluator.ranges(decl.where, at)
    condition = None if decl.condition is None else evaluator.one(decl.condition, at)
    value = evaluator.one(decl.value, at)
    return s.DefinitionDecl(decl.span, decl.let, ident, named, value, where, decl.update, condition)


def _of_the_form(evaluator: Evaluator, condition: s.Expression) -> bool:
    """Return True if a condition reads only attributes and types, so that the form decides it."""
    known = {*evaluator.world.attributes, *evaluator.world.aliases}
    nodes = list(everything_in(condition))
    words = {id(n.right) for n in nodes if isinstance(n, s.Binary) and n.op in ("==", "!=")}
    words |= {id(a) for n in nodes if isinstance(n, s.Call) and n.function.name in QUESTIONS for a in n.arguments}
    named = [n for n in nodes if isinstance(n, s.Named) and id(n) not in words]
    plain = all(isinstance(n, s.Named | s.Binary | s.Unary | s.Constant | s.Call) for n in nodes)
    return plain and bool(words) and all(n.name in known for n in named)


def _index(subscript: s.Expression, at: int, target: str) -> s.Expression:
    """Return a subscript of the left side, with a new index in place of a literal 0 along a dimension of size 1."""
    if known_integer(subscript) == 0:
        return s.Named(subscript.span, f"{target}_at_{at}")
    return subscript
