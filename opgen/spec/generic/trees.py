"""Traversal of expressions in the syntax tree."""

from __future__ import annotations

from collections.abc import Iterator

from opgen.spec.syntax import nodes as s


def parts(tree: s.Expression) -> tuple[s.Expression, ...]:
    """Return the direct subexpressions, in source order."""
    match tree:
        case s.Member():
            return tree.subscripts
        case s.Subscripted():
            return tree.subscripts if tree.outside is None else (*tree.subscripts, tree.outside)
        case s.Call():
            return (*tree.arguments, *(k.value for k in tree.keywords if not isinstance(k.value, s.Text)))
        case s.Reduction():
            extents = tuple(r.extent for r in tree.ranges if r.extent is not None)
            given = tuple(e for e in (tree.condition, tree.body, tree.place) if e is not None)
            return (*extents, *given)
        case s.Unary():
            return (tree.operand,)
        case s.Binary():
            return (tree.left, tree.right)
        case s.Choice():
            return (tree.condition, tree.if_true, tree.if_false)
        case s.Expansion():
            return (tree.pattern,)
        case s.Listed():
            return tree.items
        case s.Chain():
            return (tree.condition, tree.value, *(() if tree.if_false is None else (tree.if_false,)))
        case _:
            return ()


def everything_in(tree: s.Expression) -> Iterator[s.Expression]:
    """Yield an expression and everything inside it, outermost first."""
    left = [tree]
    while left:
        node = left.pop()
        yield node
        left += parts(node)[::-1]


def names_in(tree: s.Expression) -> Iterator[str]:
    """Yield every name that an expression reads: of values, tensors, lists and functions."""
    for node in everything_in(tree):
        match node:
            case s.Named():
                yield node.name
            case s.Member() | s.Subscripted():
                yield node.owner.name
            case s.Call():
                yield node.function.name


def expressions_of(item: s.Item) -> Iterator[s.Expression]:
    """Yield every expression of a declaration, including those of algorithms."""
    match item:
        case s.TensorDecl() | s.SeveralDecl():
            yield from (d.size for d in item.dims)
        case s.SizesDecl():
            yield from (d.size for f in item.forms for d in f.dims)
        case s.AttrDecl():
            yield from (e for e in item.type.shape if not isinstance(e, str))
        case s.RequireDecl() | s.WhenDecl():
            yield item.condition
        case s.LetDecl() | s.PackLet() | s.CountDecl():
            yield item.value
        case s.OpCall():
            yield item.call
        case s.DefinitionDecl():
            yield from item.subscripts
            yield from (r.extent for r in item.where if r.extent is not None)
            yield item.value
            if item.condition is not None:
                yield item.condition
        case s.RankDecl():
            yield from (r.value for r in item.rules if r.value is not None)
        case s.AlgorithmDecl():
            for inner in item.items:
                yield from expressions_of(inner)
