"""The order of nodes, and which names they take: cycles and names that nobody makes are found here."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from opgen.onnx.package import onnx


def graphs_in(node: Any) -> Iterator[Any]:
    """Yield the graphs among a node's attributes."""
    for attribute in node.attribute:
        if attribute.type == onnx().AttributeProto.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def taken(node: Any) -> set[str]:
    """Return the names that a node takes from around it, those that graphs inside it take among them."""
    found = {name for name in node.input if name}
    for graph in graphs_in(node):
        found |= outer_names(graph)
    return found


def outer_names(graph: Any) -> set[str]:
    """Return the names that a graph inside a node takes from around it."""
    own = {i.name for i in graph.input} | {i.name for i in graph.initializer}
    own |= {name for node in graph.node for name in node.output}
    used = {name for node in graph.node for name in taken(node)} | {o.name for o in graph.output}
    return used - own


def ordered(nodes: Sequence[Any], known: Collection[str]) -> tuple[list[int], list[tuple[int, str]]]:
    """Return the positions of nodes, each after those that it depends on, in the given order where possible.

    The second list has the nodes that cannot be placed, with the reason.
    """
    maker = {name: at for at, node in enumerate(nodes) for name in node.output if name}
    wants = [taken(node) for node in nodes]
    missing = [(at, name) for at, names in enumerate(wants) for name in sorted(names) if not _made(name, maker, known)]
    if missing:
        return [], [(at, f"it takes '{name}', which nothing makes") for at, name in missing]
    before = [{maker[name] for name in names if name in maker} for names in wants]
    order = list(_sorted(before))
    if len(order) < len(nodes):
        placed = set(order)
        circle = sorted(_circle(before, next(at for at in range(len(nodes)) if at not in placed), placed))
        return [], [(at, "it takes what depends on its own results") for at in circle]
    return order, []


def _made(name: str, maker: Collection[str], known: Collection[str]) -> bool:
    return name in maker or name in known


def _sorted(before: Sequence[set[int]]) -> Iterable[int]:
    """Return as many positions as possible, each after those that it depends on."""
    if all(all(b < at for b in needed) for at, needed in enumerate(before)):
        return range(len(before))
    after: list[list[int]] = [[] for _ in before]
    for at, needed in enumerate(before):
        for earlier in needed:
            after[earlier].append(at)
    left = [len(needed) for needed in before]
    ready = [at for at, count in enumerate(left) if count == 0]
    for at in ready:  # grows while it is walked
        for later in after[at]:
            left[later] -= 1
            if left[later] == 0:
                ready.append(later)
    return ready


def _circle(before: Sequence[set[int]], start: int, placed: set[int]) -> set[int]:
    """Return the positions of one circle that is reached backwards from a node that cannot be placed."""
    seen: dict[int, int] = {}
    here = start
    while here not in seen:
        seen[here] = len(seen)
        here = min(at for at in before[here] if at not in placed)
    return {at for at, place in seen.items() if place >= seen[here]}
