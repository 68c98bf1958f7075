"""Declarations that make an op generic."""

from __future__ import annotations

from collections.abc import Iterable

from opgen.spec.generic.trees import everything_in, expressions_of
from opgen.spec.syntax import nodes as s


def is_generic(items: Iterable[s.Item]) -> bool:
    """Return True if declarations (with fragments expanded) leave something open that a form has to fix."""
    return any(map(_opens, items))


def _opens(item: s.Item) -> bool:
    match item:
        case s.SeveralDecl() | s.StaticDecl() | s.RankDecl() | s.PackLet():
            return True
        case s.TensorDecl() if item.optional:
            return True
        case s.AttrDecl() if item.type.kind.name in ("type", "equation") or not all(
            e.isdigit() for e in _written(item)
        ):
            return True
        case s.AlgorithmDecl():
            return is_generic(item.items)
        case s.OpCall():
            return any(isinstance(node, s.Expansion | s.Chain) for node in everything_in(item.call))
        case s.DefinitionDecl() if item.pack or any(r.pack for r in item.where):
            return True
    return any(
        isinstance(node, s.Expansion | s.Listed | s.Chain) or (isinstance(node, s.Reduction) and _packs(node))
        for tree in expressions_of(item)
        for node in everything_in(tree)
    )


def _written(item: s.AttrDecl) -> Iterable[str]:
    return (e if isinstance(e, str) else "" for e in item.type.shape)


def _packs(tree: s.Reduction) -> bool:
    return any(r.pack for r in tree.ranges)
