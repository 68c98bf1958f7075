"""Walking over the expressions of a model."""

from __future__ import annotations

from collections.abc import Iterator

from opgen.spec import model as m


def children(expr: m.Expr) -> tuple[m.Expr, ...]:
    """The expressions directly inside an expression, extents of reductions included."""
    if isinstance(expr, m.Operation):
        return (expr.left, expr.right)
    if isinstance(expr, m.Negate | m.Not | m.Convert):
        return (expr.operand,)
    if isinstance(expr, m.Conditional):
        return (expr.condition, expr.if_true, expr.if_false)
    if isinstance(expr, m.FunctionCall):
        return tuple(a for a in expr.arguments if not isinstance(a, m.EnumArgument))
    if isinstance(expr, m.Apply):
        return (expr.argument,)
    if isinstance(expr, m.Read):
        return expr.indices if expr.outside is None else (*expr.indices, expr.outside)
    if isinstance(expr, m.Reduce):
        return (*(r.extent for r in expr.indices), expr.body)
    return ()


def walk(expr: m.Expr) -> Iterator[m.Expr]:
    """An expression and all inside it."""
    stack = [expr]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(children(node)))


def attrs_in(expr: m.Expr) -> set[str]:
    """The names of the attributes that an expression reads (parameters of functions count by their own names)."""
    found = set()
    for node in walk(expr):
        if isinstance(node, m.AttrValue | m.Present):
            found.add(node.attr)
        elif isinstance(node, m.EnumIs):
            found.add(node.name)
        elif isinstance(node, m.FunctionCall):
            found |= {a.name for a in node.arguments if isinstance(a, m.EnumArgument) and a.name is not None}
    return found


def symbols_in(expr: m.Expr) -> set[str]:
    """The names of the symbols that an expression reads."""
    return {node.name for node in walk(expr) if isinstance(node, m.Symbol)}
