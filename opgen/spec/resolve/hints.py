"""Extents of `let` tensors inferred from their reads: `out[y] = t[y]` gives dimension 0 of t that of out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from opgen.spec.model import model as m
from opgen.spec.syntax import nodes as s


def extent_by_use(
    decls: Sequence[s.DefinitionDecl], outputs: Mapping[str, m.Tensor], tensor: str, axis: int
) -> m.Expr | None:
    """Return the extent of a dimension of a `let` tensor, from a later definition that iterates over it."""
    asked = [(tensor, axis)]
    for name, position in asked:
        for decl in (d for d in decls if d.update is None):
            for index in _indices_at(decl.value, name, position):
                found = _left_position(decl, index)
                if found is None:
                    continue
                target = decl.target.name
                if not decl.let and target in outputs and found < outputs[target].rank:
                    return outputs[target].dims[found].size
                if decl.let and (target, found) not in asked:
                    asked.append((target, found))
    return None


def _indices_at(tree: s.Expression, tensor: str, axis: int) -> Iterator[str]:
    """Yield the names that alone form the subscript `axis` of `tensor`."""
    for node in walk_syntax(tree):
        if isinstance(node, s.Subscripted) and node.owner.name == tensor and axis < len(node.subscripts):
            subscript = node.subscripts[axis]
            if isinstance(subscript, s.Named):
                yield subscript.name


def _left_position(decl: s.DefinitionDecl, index: str) -> int | None:
    positions = [i for i, e in enumerate(decl.subscripts) if isinstance(e, s.Named) and e.name == index]
    return positions[0] if positions else None


def walk_syntax(tree: s.Expression) -> Iterator[s.Expression]:
    """Yield an expression and everything inside it, in preorder."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(_inside(node)))


def _inside(tree: s.Expression) -> list[s.Expression]:
    if isinstance(tree, s.Subscripted):
        return [*tree.subscripts, *([] if tree.outside is None else [tree.outside])]
    if isinstance(tree, s.Member):
        return list(tree.subscripts)
    if isinstance(tree, s.Call):
        return list(tree.arguments)
    if isinstance(tree, s.Reduction):
        given = [r.extent for r in tree.ranges if r.extent is not None]
        return [*given, *(e for e in (tree.condition, tree.body, tree.place) if e is not None)]
    if isinstance(tree, s.Unary):
        return [tree.operand]
    if isinstance(tree, s.Binary):
        return [tree.left, tree.right]
    if isinstance(tree, s.Choice):
        return [tree.condition, tree.if_true, tree.if_false]
    return []
