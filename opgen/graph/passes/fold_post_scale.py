"""Fold post-scale: constants that scale and move the results of a sum are folded into the summed constants.

  y = (sum[k](x[i, k] * w[k, j]) - mean[j]) * scale[j] + offset[j]

is a sum with other weights, w[k, j] * scale[j], and another term.  Algebra decides: the later value is affine in the
earlier one, and its factor depends on constants and on places that are subscripts of the weights, too.  New nodes make
the new weights, from constants alone.  Roundings differ, so types of 16 bits are left alone.  The error is bounded
(`bounded`): all addends of the new sum were added before, so no new cancellation arises.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace as changed
from itertools import islice

from opgen.grad.algebra import add, is_number
from opgen.graph.fusion.accesses import facts_of
from opgen.graph.fusion.compose import compose
from opgen.graph.fusion.linear import ZERO
from opgen.graph.fusion.scaled import Changes, Map, Sum, map_of, sum_of
from opgen.graph.fusion.unify import CannotComposeError
from opgen.graph.ir.draft import Draft
from opgen.graph.ir.nodes import Graph, Node, Value
from opgen.graph.passes.base import Pass, Report
from opgen.graph.passes.bounded import bounded
from opgen.spec.model import model as m
from opgen.spec.model.walk import index_names

_NAME = "affine"

MOST = 32
"""Maximum number of nodes folded at once: composing more takes longer."""


def _apply(graph: Graph, report: Report, without: Collection[str]) -> Graph:
    draft = Draft(graph)
    for name in [n.name for n in graph.nodes if n.name not in without]:
        while _fold(draft, name, report):
            pass
    return draft.graph()


def _fold(graph: Draft, name: str, report: Report) -> bool:
    """Fold the nodes after a node into its constants, if possible.

    Return True if more nodes may be folded.
    """
    node = graph.node.get(name)
    if node is None or len(node.outputs) != 1:
        return False
    try:
        summed = sum_of(graph, node)
    except CannotComposeError:
        return False
    after = [] if summed is None else list(islice(_chain(graph, node), MOST))
    if summed is None or not after:
        return False
    try:
        whole = after[0] if len(after) == 1 else compose(graph, after, after[-1].outputs)
        done = map_of(graph, whole, node.outputs[0])
        return done is not None and _Folding(graph, node, summed, done, after, report).run()
    except CannotComposeError as error:
        report.note(_NAME, f"{node.name} -> {after[0].name}", f"apart: {error}")
        return False


def _chain(graph: Draft, node: Node) -> Iterator[Node]:
    """Yield the consecutive nodes after a node that apply an affine map with constants to its result."""
    value = node.outputs[0]
    while (reader := graph.only_reader(value)) is not None and len(reader.outputs) == 1:
        try:
            if not facts_of(graph, reader).readings[value].aligned or map_of(graph, reader, value) is None:
                return
        except CannotComposeError:
            return
        yield reader
        value = reader.outputs[0]


class _Folding:
    def __init__(self, graph: Draft, node: Node, summed: Sum, done: Map, after: Sequence[Node], report: Report) -> None:
        self.graph, self.node, self.summed, self.done = graph, node, summed, done
        self.after, self.report = after, report
        self.changes = Changes(graph, done, node.origin)

    def run(self) -> bool:
        """Fold.  Return True if all of it is in the constants now; False if a node of its own adds a term."""
        factor, term = self.done.affine.factor, self.done.affine.term
        own = next((r for t, r in self.summed.terms if t == r and self._axes(r, term) is not None), None)
        inputs = list(self.node.inputs)
        for _, read in self.summed.terms:
            axes = self._axes(read, add(factor, term) if read is own else factor)
            if axes is None:
                raise CannotComposeError("the factor depends on places that are no subscripts of the weights")
            position = self.summed.positions[read.tensor]
            value = self.graph.value[inputs[position]]
            inputs[position] = self._changed(value, axes, factor, term if read is own else ZERO)
        last = self.after[-1]
        again = changed(self.node, inputs=tuple(inputs), outputs=last.outputs)
        if own is None and not is_number(term, 0):
            unmoved = changed(self.graph.value[last.outputs[0]], name=self.changes.fresh(f"{last.outputs[0]}_unmoved"))
            self.changes.values.append(unmoved)
            again = changed(again, outputs=(unmoved.name,))
            moved = [self._moved(unmoved, term, last)]
        else:
            moved = []
        names = ", ".join(f"'{n.name}'" for n in self.after)
        self.report.note(_NAME, self.node.name, f"has what {names} did in its constants")
        self.graph.replace(self.node, (*self.changes.nodes, again, *moved), self.after, self.changes.values)
        return not moved

    def _axes(self, read: m.Read, e: m.Expr) -> dict[str, int] | None:
        """Return for each index of an expression the axis of a constant along which its elements are read there."""
        found: dict[str, int] = {}
        for name in sorted(index_names(e)):
            place = self.summed.places[self.done.names.index(name)]
            axis = next((a for a, index in enumerate(read.indices) if index == place), None)
            if axis is None:
                return None
            found[name] = axis
        return found

    def _changed(self, value: Value, axes: Mapping[str, int], factor: m.Expr, term: m.Expr) -> str:
        """Return the value times a factor, plus a term: the result of a new node."""
        by_axis = {axis: name for name, axis in axes.items()}
        names = [by_axis.get(axis) for axis in range(len(value.shape))]
        result = self.changes.fresh(f"{value.name}_folded")
        op, inputs = self.changes.op(names, factor, term)
        self.changes.nodes.append(self.changes.node(result, op, (value, *inputs), result))
        return result

    def _moved(self, value: Value, term: m.Expr, last: Node) -> Node:
        """Return the node that adds a term for which the sum has no place."""
        op, inputs = self.changes.op(list(self.done.names), m.Number(1), term)
        return self.changes.node(self.changes.fresh(last.name), op, (value, *inputs), last.outputs[0])


def affine(without: frozenset[str] = frozenset()) -> Pass:
    """Return the pass that leaves the nodes of some names unchanged; it reads no elements of constants."""
    contract = "What scales and moves a sum's results by constants is done to the constants; roundings differ."
    name = ", ".join((_NAME, *sorted(without)))
    return Pass(name, contract, lambda graph, report: _apply(graph, report, without), after=("common",), slow=True)


AFFINE = bounded(affine)
