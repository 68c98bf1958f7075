"""Copies of a statement under names of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from opgen.loop.nodes import Alloc, Expr, For, Let, Load, Stmt, Store, Var
from opgen.loop.walk import map_stmt, walk


def suffixed_names(s: Stmt, suffix: str) -> dict[str, str]:
    """Return the copy's name for each name that a statement declares."""
    names: dict[str, str] = {}
    for p in walk(s):
        match p:
            case For():
                names[p.var] = f"{p.var}_{suffix}"
            case Let():
                names[p.var.name] = f"{p.var.name}_{suffix}"
            case Alloc():
                names |= {o.name: f"{o.name}_{suffix}" for o in p.buffers}
    return names


def renamed(s: Stmt, names: Mapping[str, str], values: Mapping[str, Expr]) -> Stmt:
    """Return the statement under other names, with parameters replaced by values."""

    def expr(e: Expr) -> Expr:
        if isinstance(e, Var):
            return Var(names[e.name], e.type) if e.name in names else values.get(e.name, e)
        if isinstance(e, Load) and e.buffer in names:
            return Load(names[e.buffer], e.indices, e.dtype, e.mask)
        return e

    def stmt(p: Stmt) -> Stmt:
        match p:
            case For():
                return For(names.get(p.var, p.var), p.start, p.stop, p.body, p.kind)
            case Let():
                return Let(Var(names.get(p.var.name, p.var.name), p.var.type), p.value, p.body)
            case Alloc():
                return Alloc(tuple(replace(o, name=names.get(o.name, o.name)) for o in p.buffers), p.body)
            case Store() if p.buffer in names:
                return Store(names[p.buffer], p.indices, p.value, p.mask)
        return p

    return map_stmt(s, expr=expr, stmt=stmt)
