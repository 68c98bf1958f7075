"""Calls of ops in ops: `let p = Op(x)` distinguished from calls of shape functions, and the order of the ops.

`opgen/spec/inline/inlining.py` defines the meaning of such a call.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from opgen.spec.check.gradients import gradient_of
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.fragments import Fragments, in_place
from opgen.spec.syntax.report import Report

D = TypeVar("D", s.FragmentDecl, s.OpDecl)


def named_ops(items: Iterable[s.Declaration]) -> frozenset[str]:
    """Return the names that refer to ops in calls: those of ops, unless a function has the same name."""
    items = list(items)
    functions = {i.name.name for i in items if isinstance(i, s.FunctionDecl)}
    return frozenset(i.name.name for i in items if isinstance(i, s.OpDecl)) - functions


def with_calls(decl: D, ops: frozenset[str]) -> D:
    """Return an op or fragment with each `let` of a call of an op replaced by an `OpCall`."""
    return dataclasses.replace(decl, items=tuple(_item(item, ops) for item in decl.items))


def _item(item: s.Item, ops: frozenset[str]) -> s.Item:
    if isinstance(item, s.AlgorithmDecl):
        return dataclasses.replace(item, items=tuple(_item(inner, ops) for inner in item.items))
    if isinstance(item, s.LetDecl) and isinstance(item.value, s.Call) and item.value.function.name in ops:
        return s.OpCall(item.span, item.names, item.value)
    return item


def in_turn(report: Report, decls: Sequence[s.OpDecl], fragments: Fragments) -> list[s.OpDecl]:
    """Return the ops, each after those it uses or is a gradient of; one that uses itself is noted and left out."""
    by_name = {d.name.name: d for d in decls}
    needs = {name: _needs(decl, by_name, fragments) for name, decl in by_name.items()}
    done: dict[str, bool] = {}
    for start in by_name:
        chain, waiting = [start], [iter(needs[start])]
        while chain:
            name = chain[-1]
            needed = next(waiting[-1], None) if name not in done else None
            if needed is None:
                done.setdefault(name, True)
                chain.pop()
                waiting.pop()
            elif needed.name in chain:
                circle = " -> ".join([*chain[chain.index(needed.name) :], needed.name])
                report.add("S022", f"the op '{needed.name}' uses itself: {circle}", needed.span)
                done[needed.name] = False
            elif needed.name not in done:
                chain.append(needed.name)
                waiting.append(iter(needs[needed.name]))
    return [by_name[name] for name, fine in done.items() if fine]


def _needs(decl: s.OpDecl, ops: Mapping[str, s.OpDecl], fragments: Fragments) -> list[s.Ident]:
    """Return the ops that one calls or is a derivative of; cycles of gradients are checked elsewhere."""
    gradient, seen = gradient_of(decl), list[str]()
    while gradient is not None and gradient.op.name in ops and gradient.op.name not in seen:
        seen.append(gradient.op.name)
        forward = gradient_of(ops[gradient.op.name])
        if forward is None:
            return [gradient.op]
        gradient = forward
    return [i.call.function for i in calls_in(decl.items, fragments) if i.call.function.name in ops]


def calls_in(items: Iterable[s.Item], fragments: Fragments) -> Iterator[s.OpCall]:
    """Yield the calls of ops among declarations."""
    return (i for i in in_place(items, fragments) if isinstance(i, s.OpCall))
