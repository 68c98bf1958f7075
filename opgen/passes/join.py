"""Joining of neighbouring statements under the same condition, which neither changes.

if c: s             if c: s else: t                   u if c: u      ->     else: t else: v                   v
"""

from __future__ import annotations

import dataclasses

from opgen.loop import build as b
from opgen.loop.nodes import Block, Expr, If, Kernel, Load, Stmt
from opgen.loop.walk import map_stmt, stores, walk_expr


def join(kernel: Kernel) -> Kernel:
    """Join all such statements, also within joined ones; return the same object if there are none."""
    body = map_stmt(kernel.body, stmt=_joined)
    return kernel if body is kernel.body else dataclasses.replace(kernel, body=body)


def _joined(s: Stmt) -> Stmt:
    if not isinstance(s, Block):
        return s
    groups: list[list[Stmt]] = []
    for p in s.statements:
        if groups and _alike(groups[-1][0], groups[-1][-1], p):
            groups[-1].append(p)
        else:
            groups.append([p])
    if len(groups) == len(s.statements):
        return s
    return b.block(_one(g) for g in groups)


def _alike(first: Stmt, last: Stmt, s: Stmt) -> bool:
    """Return True if a statement may join a group with this first and last statement."""
    if not isinstance(first, If) or not isinstance(last, If) or not isinstance(s, If):
        return False
    return first.condition == s.condition and _unchanged(s.condition, last)


def _unchanged(condition: Expr, by: Stmt) -> bool:
    read = {e.buffer for e in walk_expr(condition) if isinstance(e, Load)}
    return not read or read.isdisjoint(p.buffer for p in stores(by))


def _one(group: list[Stmt]) -> Stmt:
    first = group[0]
    if len(group) == 1 or not isinstance(first, If):
        return first
    parts = [s for s in group if isinstance(s, If)]
    others = [s.otherwise for s in parts if s.otherwise is not None]
    return If(first.condition, _joined(b.block(s.then for s in parts)), _joined(b.block(others)) if others else None)
