"""Fusion: nodes that make and read values become one, where a value need not be stored for it.

Access summaries decide, never the name of an op.  Nodes are visited from the last to the first.  A node joins the group
of its readers if there is only one such group and the caller does not take the value:

  * a value that is read element for element is computed where it is read: chains of pointwise ops; ops after a product,
    a window or a reduction, with other operands that are broadcast or are residuals;
  * before a reduction that reads each element about once, it is computed where it is read, or by rows;
  * by rows: reductions and the ops on their results become one op (a normalisation from its single steps);
  * before a window, it is made row by row.

A group has at most one product or window: its loop nest is arranged for that alone.  An op that follows a product or
window joins it rather than a later group.  No cycles arise: all readers of a node are in the node's group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from opgen.graph.fusion.accesses import Facts, Reading, facts_of
from opgen.graph.fusion.compose import compose
from opgen.graph.fusion.unify import CannotComposeError
from opgen.graph.ir.nodes import Graph, Node
from opgen.graph.ir.replace import outside, with_nodes
from opgen.graph.passes.base import Pass, Report

MOST = 32
"""Maximum number of nodes of a group: a person can still read an op of so many steps."""

TENSORS = 48
"""Maximum number of values that a group takes."""

WINDOW = 32
"""Maximum reads of an element by a fused window; above it, the operand is in memory, packed."""

TWICE = 2
"""Number of times that a cheap value may be recomputed instead of stored."""

CHEAP = 2
"""Number of operations for an element that cost less than storing it and reading it back from the nearest cache."""


@dataclass
class _Group:
    """Nodes that become one, the last first; `root` makes the results."""

    root: Node
    nodes: list[Node] = field(default_factory=list)
    heavy: bool = False
    reduces: bool = False

    def add(self, node: Node, facts: Facts) -> None:
        self.nodes.append(node)
        self.heavy |= facts.heavy
        self.reduces |= facts.reduces

    @property
    def inputs(self) -> set[str]:
        made = {v for n in self.nodes for v in n.outputs}
        return {v for n in self.nodes for v in n.inputs} - made


class _Fusion:
    def __init__(self, graph: Graph, report: Report) -> None:
        self.graph = graph
        self.report = report
        self.order = {n.name: number for number, n in enumerate(graph.nodes)}
        self.facts: dict[str, Facts] = {}
        self.group: dict[str, _Group] = {}
        self.groups: list[_Group] = []
        self.why: dict[str, str] = {}

    def run(self) -> Graph:
        for node in self.graph.nodes:
            try:
                self.facts[node.name] = facts_of(self.graph, node)
            except CannotComposeError as error:
                self.why[node.name] = str(error)
        for node in reversed(self.graph.nodes):
            self._place(node)
        whole: dict[str, Node] = {}
        for group in self.groups:
            made = self._composed(group)
            if made is not None:
                whole |= {n.name: made for n in group.nodes}
        self._explain()
        return with_nodes(self.graph, whole)

    # Groups ---------------------------------------------------------------------------------------

    def _place(self, node: Node) -> None:
        """Put a node into the group of its readers, or begin a new one."""
        group = self._only_group(node)
        if group is not None:
            why = self._why_not(node, group)
            if why is None:
                group.add(node, self.facts[node.name])
                self.group[node.name] = group
                return
            self.why[node.name] = why
        own = _Group(node)
        self.group[node.name] = own
        self.groups.append(own)
        if node.name in self.facts:
            own.add(node, self.facts[node.name])
        else:
            own.nodes.append(node)

    def _readers(self, node: Node) -> list[Node]:
        return list({r.name: r for v in node.outputs for r in self.graph.readers.get(v, ())}.values())

    def _only_group(self, node: Node) -> _Group | None:
        """Return the one group of all readers of a node; None if there are several or none."""
        readers = self._readers(node)
        groups = list({id(g): g for g in (self.group[r.name] for r in readers)}.values())
        if not self.graph.given_back.isdisjoint(node.outputs):
            self.why[node.name] = "the caller takes it"
        elif node.name not in self.facts or not groups:
            self.why.setdefault(node.name, "nothing reads it")
        elif len(groups) > 1:
            self.why[node.name] = f"{len(groups)} nodes read it: " + ", ".join(f"'{g.root.name}'" for g in groups)
        else:
            return groups[0]
        return None

    def _readings(self, node: Node) -> Iterator[tuple[Facts, Reading]]:
        """Yield the access summaries of a node's results, with the facts of the reader."""
        for reader in self._readers(node):
            facts = self.facts[reader.name]
            yield from ((facts, facts.readings[v]) for v in node.outputs if v in facts.readings)

    def _why_not(self, node: Node, group: _Group) -> str | None:
        """Return why a node does not join the group that reads it; None if it does."""
        facts = self.facts[node.name]
        if any(n.name not in self.facts for n in group.nodes):
            return self.why[group.root.name]
        if facts.otherwise or any(self.facts[n.name].otherwise for n in group.nodes):
            return "an algorithm computes it, faster than the mathematics that could be put together"
        if facts.view:
            return "it moves nothing: a view costs nothing"
        if len(group.nodes) >= MOST or len(group.inputs | set(node.inputs)) > TENSORS:
            return "the group is as large as may be"
        readings = list(self._readings(node))
        aligned = all(r.aligned for _, r in readings)
        if facts.heavy:
            return self._why_no_base(group, aligned)
        if facts.reduces:
            if group.heavy:
                return "a product or window has a nest of its own, without other reductions"
            straight = all(r.straight for _, r in readings)
            return None if straight else "it is read at places that are computed"
        if aligned:
            return None
        if facts.moves:
            return "it moves elements, and is read elsewhere than it is made"
        if self._follows_heavy(node):
            return "it belongs to the product or window that it follows"
        return next((why for why in (self._why_not_before(f, r, group) for f, r in readings) if why is not None), None)

    def _why_no_base(self, group: _Group, aligned: bool) -> str | None:
        """Return why a product or window does not join the group that reads it; None if it does."""
        if group.heavy:
            return "a product or window has a nest of its own, without another one"
        if group.reduces:
            return "a product or window has a nest of its own, without other reductions"
        return None if aligned else "it is not read element for element"

    def _why_not_before(self, reader: Facts, reading: Reading, group: _Group) -> str | None:
        """Return why a pointwise node is not fused with the node that reads it; None if it is."""
        if reading.aligned:
            return None
        if reading.summed:
            often = reader.heavy and reading.times > WINDOW
            return f"each element is read {reading.times:.0f} times, from memory" if often else None
        if not reading.straight:
            return "it is read at places that are computed"
        return "it stretches: each element would be computed again" if group.heavy else None

    def _follows_heavy(self, node: Node) -> bool:
        """Return whether a node uses a product or window.

        It may use it through nodes whose results only it takes, element for element.
        """
        cluster = {node.name: node}
        waiting = [node]
        while waiting:
            reader = waiting.pop()
            for value in reader.inputs:
                maker = self.graph.producer.get(value)
                if maker is None or maker.name in cluster or not self._is_taken_by(maker, cluster):
                    continue
                facts = self.facts[maker.name]
                if facts.heavy:
                    return True
                if not facts.reduces and not facts.view and len(cluster) < MOST:
                    cluster[maker.name] = maker
                    waiting = list(cluster.values())
        return False

    def _is_taken_by(self, maker: Node, cluster: Mapping[str, Node]) -> bool:
        """Return whether only these nodes take the results of a node, and all of them element for element."""
        if maker.name not in self.facts or not self.graph.given_back.isdisjoint(maker.outputs):
            return False
        return all(r.name in cluster for r in self._readers(maker)) and all(r.aligned for _, r in self._readings(maker))

    # Results --------------------------------------------------------------------------------------

    def _composed(self, group: _Group) -> Node | None:
        """Return one node for a group, without the nodes that cannot be composed with the rest.

        Return None if fewer than two are left.
        """
        while len(group.nodes) > 1:
            nodes = sorted(group.nodes, key=lambda n: self.order[n.name])
            try:
                whole = compose(self.graph, nodes, outside(self.graph, nodes), self._inlined(group))
            except CannotComposeError as error:
                lost = group.nodes.pop()
                self.why[lost.name] = str(error)
                continue
            parts = ", ".join(f"'{n.name}' ({n.op.spec.name})" for n in nodes)
            self.report.note(FUSE.name, whole.name, f"is one op of {parts}")
            return whole
        return None

    def _inlined(self, group: _Group) -> set[str]:
        """Return the values computed wherever they are read: in reductions, at one place, or at little cost."""
        found: dict[str, int] = {}
        for node in group.nodes:
            facts = self.facts[node.name]
            if node is group.root or facts.reduces or facts.moves:
                continue
            places = self._places(node, found)
            if places is not None and (places == 1 or facts.cost <= CHEAP):
                found.update(dict.fromkeys(node.outputs, places))
        return set(found)

    def _places(self, node: Node, inlined: Mapping[str, int]) -> int | None:
        """Return the number of places at which a node's results would be computed; None if none is in a reduction.

        It is also None if a reduction would compute them too often.
        """
        places, summed = 0, False
        for reader in self._readers(node):
            facts = self.facts[reader.name]
            for reading in (facts.readings[v] for v in node.outputs if v in facts.readings):
                if reading.summed and (facts.heavy or reading.times > TWICE * reading.places):
                    return None
                through = next((inlined[v] for v in reader.outputs if v in inlined), 0) if reading.aligned else 0
                summed = summed or reading.summed or through > 0
                places += through or (1 if reading.aligned else reading.places)
        return places if summed else None

    def _explain(self) -> None:
        """Note for each edge that remains between two nodes why they were not fused."""
        for node in self.graph.nodes:
            for reader in self._readers(node):
                if self._home(node) is not self._home(reader) or node not in self._home(node).nodes:
                    self.report.note(
                        FUSE.name, f"{node.name} -> {reader.name}", f"apart: {self.why.get(node.name, '')}"
                    )

    def _home(self, node: Node) -> _Group:
        return self.group[node.name]


def _apply(graph: Graph, report: Report) -> Graph:
    return _Fusion(graph, report).run()


FUSE = Pass(
    "fuse",
    "Nodes become one op where values between them need not be stored; between half and bfloat16 ones roundings go.",
    _apply,
    after=("ahead",),
    slow=True,
)
