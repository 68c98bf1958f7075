"""Canonical kernels: names without meaning make kernels that do the same equal."""

from __future__ import annotations

from dataclasses import replace

from opgen.loop import nodes as loop
from opgen.loop.nodes import Alloc, Buffer, For, Kernel, Let, Load, Stmt, Store, Var
from opgen.loop.walk import map_expr, map_stmt, walk


def canonical(kernel: Kernel) -> Kernel:
    """Return the kernel under names without meaning, so that kernels that do the same are equal."""
    names: dict[str, str] = {}
    for letter, found in (
        ("i", [b.name for b in kernel.inputs]),
        ("o", [b.name for b in kernel.outputs]),
        ("p", [p.name for p in kernel.parameters]),
        ("v", [n for s in walk(kernel.body) for n in _declared(s)]),
    ):
        for name in found:
            names.setdefault(name, f"{letter}{len(names)}")

    def expr(e: loop.Expr) -> loop.Expr:
        if isinstance(e, Var):
            return Var(names[e.name], e.type)
        return Load(names[e.buffer], e.indices, e.dtype, e.mask) if isinstance(e, Load) else e

    def buffer(b: Buffer) -> Buffer:
        return replace(b, name=names[b.name], shape=tuple(map_expr(expr, d) for d in b.shape))

    def stmt(s: Stmt) -> Stmt:
        match s:
            case For():
                return replace(s, var=names[s.var])
            case Let():
                return replace(s, var=Var(names[s.var.name], s.var.type))
            case Alloc():
                return replace(s, buffers=tuple(replace(o, name=names[o.name]) for o in s.buffers))
            case Store():
                return replace(s, buffer=names[s.buffer])
        return s

    return Kernel(
        name="kernel",
        inputs=tuple(map(buffer, kernel.inputs)),
        outputs=tuple(map(buffer, kernel.outputs)),
        parameters=tuple(replace(p, name=names[p.name]) for p in kernel.parameters),
        body=map_stmt(kernel.body, expr=expr, stmt=stmt),
        assumptions=tuple(map_expr(expr, a) for a in kernel.assumptions),
    )


def _declared(s: Stmt) -> tuple[str, ...]:
    match s:
        case For():
            return (s.var,)
        case Let():
            return (s.var.name,)
        case Alloc():
            return tuple(o.name for o in s.buffers)
    return ()
