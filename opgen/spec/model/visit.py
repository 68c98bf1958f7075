"""Dependencies of a model's expressions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opgen.spec.model import model as m
from opgen.spec.model.walk import operands


def everything_in(expr: m.Expr) -> Iterator[m.Expr]:
    """Yield an expression and everything inside it, extents of reductions included."""
    stack = [expr]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(operands(node))
        if isinstance(node, m.Reduce):
            stack.extend(r.extent for r in node.indices)


def attrs_in(expr: m.Expr) -> set[str]:
    """Return the names of the attributes that an expression reads (parameters of functions by their own names)."""
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
    """Return the attributes that change the loop nest: layouts of tensors, enumerations that the mathematics tests."""
    names = {t.layout for t in (*op.tensors, *op.outputs) if t.layout is not None}
    for definition in (*op.definitions, *(d for a in op.algorithms for d in a.definitions)):
        for root in (definition.value, *definition.subscripts):
            names |= {e.name for e in everything_in(root) if isinstance(e, m.EnumIs)}
    return tuple(a for a in op.attrs if a.name in names)


def symbols_in(expr: m.Expr) -> set[str]:
    """Return the names of the symbols that an expression reads."""
    return {node.name for node in everything_in(expr) if isinstance(node, m.Symbol)}


def called_functions(functions: Iterable[m.Function], op: m.OpSpec) -> tuple[m.Function, ...]:
    """Return the functions that an op calls, directly or indirectly, each before its callers."""
    known = {f.name: f for f in functions}
    wanted: dict[str, None] = {}

    def visit(expressions: Iterable[m.Expr]) -> None:
        for e in expressions:
            for node in everything_in(e):
                if isinstance(node, m.FunctionCall) and node.function not in wanted:
                    function = known[node.function]
                    visit((*(value for _, value in function.lets), *function.results))
                    wanted[node.function] = None

    visit(_shape_expressions(op))
    return tuple(known[name] for name in wanted)


def _shape_expressions(op: m.OpSpec) -> Iterator[m.Expr]:
    for check in op.checks:
        yield check.value if isinstance(check, m.ShapeLet) else check.condition
    for tensor in (*op.tensors, *op.outputs):
        yield from (d.size for d in tensor.dims)
    for algorithm in op.algorithms:
        yield from () if algorithm.condition is None else (algorithm.condition,)
    for d in (*op.definitions, *(d for a in op.algorithms for d in a.definitions)):
        yield from (d.value, *d.dims, *(r.extent for r in d.indices))
