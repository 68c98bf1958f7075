"""The plan of a graph: its steps, the places of their tensors, and the size of the arena."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opgen.graph.ir.nodes import Graph, Node
from opgen.graph.plan.lives import Life
from opgen.graph.plan.offsets import offsets
from opgen.graph.plan.places import Copy, Homes, Place, bytes_of, homes


@dataclass(frozen=True)
class Step:
    """A node that runs a kernel: the places of its tensors (inputs, then outputs) and of its workspace."""

    node: int
    places: tuple[Place, ...]
    room: int


@dataclass(frozen=True)
class Plan:
    """Memory plan: `place` of every value; `bytes` of the arena; `bound`: the largest sum of bytes needed at one step.

    The source of a copy is at its `place`.
    """

    steps: tuple[Step, ...]
    place: Mapping[str, Place]
    copies: tuple[Copy, ...]
    bytes: int
    bound: int


def plan(
    graph: Graph,
    views: Mapping[str, str],
    reads: Sequence[Sequence[int]],
    rooms: Sequence[int],
    over: Mapping[str, str] | None = None,
) -> Plan:
    """Return the plan of a graph.

    `views` maps each result that is a view to the value that it views.  `over` maps each result that its kernel writes
    over an operand to that operand.  For each node, `reads` are the positions of the inputs that its kernel takes, and
    `rooms` the bytes of its workspace.
    """
    home = homes(graph, {**views, **(over or {})})
    running = [i for i, node in enumerate(graph.nodes) if not all(name in views for name in node.outputs)]
    lives = [*_lives(graph, home, running), *(Life(i, rooms[i], s, s) for s, i in enumerate(running))]
    found = offsets([life for life in lives if life.size])
    own = {name: Place("arena", found.place.get(name, 0)) for name in home.root.values() if name not in home.fixed}
    place = {name: home.fixed.get(root) or own[root] for name, root in home.root.items()}
    steps = tuple(Step(i, _tensors(graph.nodes[i], reads[i], place), found.place.get(i, 0)) for i in running)
    return Plan(steps, place, home.copies, found.bytes, found.bound)


def _tensors(node: Node, reads: Sequence[int], place: Mapping[str, Place]) -> tuple[Place, ...]:
    return (*(place[node.inputs[k]] for k in reads), *(place[name] for name in node.outputs))


def _lives(graph: Graph, home: Homes, running: Sequence[int]) -> list[Life]:
    """Return the lifetimes of values in the arena.

    Each lasts from the step that makes the value to the last one that reads it or a view of it.
    """
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for step, i in enumerate(running):
        for name in graph.nodes[i].outputs:
            first.setdefault(home.root[name], step)
            last[home.root[name]] = step
        for name in graph.nodes[i].inputs:
            last[home.root[name]] = step
    return [
        Life(name, bytes_of(graph.value[name]), step, last[name])
        for name, step in first.items()
        if name not in home.fixed
    ]
