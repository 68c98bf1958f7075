"""What an expression of a model depends on."""

from __future__ import annotations

from collections.abc import Iterator

from opgen.spec import model as m
from opgen.spec.walk import operands


def everything_in(expr: m.Expr) -> Iterator[m.Expr]:
    """An expression and all inside it, the extents of reductions included."""
    stack = [expr]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(operands(node))
        if isinstance(node, m.Reduce):
            stack.extend(r.extent for r in node.indices)


def attrs_in(expr: m.Expr) -> set[str]:
    """The names of the attributes that an expression reads (parameters of functions count by their own names)."""
    found = set()
    for node in everything_in(expr):
        if isinstance(node, m.AttrValue | m.Present):
            found.add(node.attr)
        elif isinstance(node, m.EnumIs):
            found.add(node.name)
        elif isinstance(node, m.FunctionCall):
            found |= {a.name for a in node.arguments if isinstance(a, m.EnumArgument) and a.name is not None}
    return found


def structural_attrs(op: m.OpSpec) -> tuple[m.Attr, ...]:
    """The attributes whose value changes the loop nest: layouts of tensors, enumerations the mathematics tests."""
    names = {t.layout for t in (*op.tensors, *op.outputs) if t.layout is not None}
    for definition in (*op.definitions, *(d for a in op.algorithms for d in a.definitions)):
        for root in (definition.value, *definition.subscripts):
            names |= {e.name for e in everything_in(root) if isinstance(e, m.EnumIs)}
    return tuple(a for a in op.attrs if a.name in names)


def symbols_in(expr: m.Expr) -> set[str]:
    """The names of the symbols that an expression reads."""
    return {node.name for node in everything_in(expr) if isinstance(node, m.Symbol)}
