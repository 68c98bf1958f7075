"""Pruning of an expanded op: unused declarations are removed, so that a form has only its dependencies."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from opgen.spec.generic.trees import expressions_of, names_in
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.parse import parse_expression


def prune(items: Sequence[s.Item]) -> list[s.Item]:
    """Remove tensors, named integers, attributes and types that nothing reads.

    Inputs stay, because they are arguments of the call; one that no definition reads becomes `shape_only`.
    """
    used, lets = _reached(items), _lets(items)
    kept = [i for i in items if not _unused(i, used, lets)]
    read = {n for i in kept if isinstance(i, s.DefinitionDecl | s.AlgorithmDecl | s.OpCall) for n in _uses(i)}
    return [
        dataclasses.replace(i, shape_only=True)
        if isinstance(i, s.TensorDecl) and i.keyword == "input" and i.name.name not in read
        else i
        for i in kept
    ]


def _reached(items: Sequence[s.Item]) -> set[str]:
    """Return the names that inputs, outputs with their definitions, and requirements depend on."""
    makers: dict[str, list[s.Item]] = {}
    lets = _lets(items)
    for item in items:
        for name in _makes(item, lets):
            makers.setdefault(name, []).append(item)
    waiting = [name for item in items if not list(_makes(item, lets)) for name in _uses(item)]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [n for item in makers.get(name, ()) for n in _uses(item)]
    return found


def _lets(items: Sequence[s.Item]) -> set[str]:
    """Return the names of intermediate tensors."""
    results = {n.name for i in items if isinstance(i, s.OpCall) for n in i.names}
    return results | {i.target.name for i in items if isinstance(i, s.DefinitionDecl) and i.let}


def _makes(item: s.Item, lets: set[str]) -> Iterator[str]:
    """Yield the names that a declaration defines, if it is needed only for them."""
    match item:
        case s.LetDecl() | s.PackLet() | s.OpCall():
            yield from (n.name for n in item.names)
        case s.DefinitionDecl() if item.let or item.target.name in lets:
            yield item.target.name
        case s.AttrDecl() | s.ConstantDecl() | s.TypeDecl():
            yield item.name.name


def only_required(items: Sequence[s.Item]) -> set[str]:
    """Return the attributes that only requirements read, directly or through named integers."""
    effective: set[str] = set()
    lets = {n.name: i for i in items if isinstance(i, s.LetDecl) for n in i.names}
    waiting = [n for i in items if not isinstance(i, s.RequireDecl | s.LetDecl) for n in _uses(i)]
    while waiting:
        name = waiting.pop()
        if name not in effective:
            effective.add(name)
            waiting += list(_uses(lets[name])) if name in lets else []
    attrs = {i.name.name for i in items if isinstance(i, s.AttrDecl) and not i.compatibility}
    return attrs - effective


def _unused(item: s.Item, used: set[str], lets: set[str]) -> bool:
    made = list(_makes(item, lets))
    return bool(made) and not any(name in used for name in made)


def _uses(item: s.Item) -> Iterator[str]:
    """Yield the names that a declaration refers to."""
    for tree in expressions_of(item):
        yield from names_in(tree)
    match item:
        case s.TensorDecl():
            yield item.dtype.name
            if item.layout is not None:
                yield item.layout.name
        case s.AttrDecl():
            if item.layout is not None:
                yield item.layout.name
            yield from (w.payload.name for w in item.type.words if w.payload is not None)
        case s.RequireDecl():
            yield from _in_message(item)
            yield item.argument.name
        case s.AlgorithmDecl():
            for inner in item.items:
                yield from _uses(inner)


def _in_message(item: s.RequireDecl) -> Iterator[str]:
    text = item.expected.value.replace("{{", "").replace("}}", "")
    for piece in text.split("{")[1:]:
        written = piece.split("}")[0]
        yield from names_in(parse_expression(item.expected.span.source, written, 1, 1))
