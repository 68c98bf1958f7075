"""Fold pre-scale: constant factors of a value are folded into the constants that it is summed with.

  y = sum[k](x[i, k] * scale[k] * w[k, j])

is a sum of x itself with other weights, w[k, j] * scale[k].  Algebra decides: the value is linear in the earlier one,
and its factor depends on places that are subscripts of the weights, too.

Roundings differ, within a bound (`bounded`).  A term that moves a value stays.  `x - mean` may be small where x and the
mean are large; a sum of x with a separate term would then be off by their roundings.  Types of 16 bits are left alone:
a weight times a factor may be outside of their range.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace as changed

from opgen.grad.algebra import is_number
from opgen.graph.fusion.accesses import facts_of
from opgen.graph.fusion.linear import ZERO, linear_read
from opgen.graph.fusion.scaled import Changes, Map, Sum, map_of, sum_of
from opgen.graph.fusion.unify import CannotComposeError, settle
from opgen.graph.ir.bound import Bound, bind
from opgen.graph.ir.draft import Draft
from opgen.graph.ir.nodes import Graph, Node, Op
from opgen.graph.passes.base import Pass, Report
from opgen.graph.passes.bounded import bounded
from opgen.graph.plan.sums import Sum as Form
from opgen.graph.plan.sums import Sums
from opgen.spec.call.environment import evaluate, evaluate_int
from opgen.spec.model import model as m
from opgen.spec.model.walk import index_names, reads, subexpressions

_NAME = "ahead"


def _apply(graph: Graph, report: Report, without: Collection[str]) -> Graph:
    draft = Draft(graph)
    for name in [n.name for n in graph.nodes if n.name not in without]:
        while name in draft.node and _fold(draft, draft.node[name], report):
            pass
    return draft.graph()


def _fold(graph: Draft, node: Node, report: Report) -> bool:
    """Fold the scaling before a sum into its constants; return False if there is none."""
    try:
        summed = sum_of(graph, node)
        if summed is None:
            return False
        for before, source in _candidates(graph, node):
            done = _done(graph, before, source)
            if done is not None and _Ahead(graph, node, summed, before, source, done, report).run():
                return True
    except CannotComposeError:
        return False
    return False


def _candidates(graph: Draft, node: Node) -> Iterator[tuple[Node, str]]:
    """Yield nodes that only this node reads, each with one of its inputs of the same size as its result."""
    for value in dict.fromkeys(node.inputs if len(node.outputs) == 1 else ()):
        before = graph.producer.get(value)
        if before is None or len(before.outputs) != 1 or graph.only_reader(value) is None:
            continue
        for source in before.inputs:
            if source not in graph.constant and graph.value[source].shape == graph.value[value].shape:
                yield before, source


def _done(graph: Draft, node: Node, source: str) -> Map | None:
    """Return the elementwise map with constants that a node applies to a value; None if it does something else."""
    done = map_of(graph, node, source)
    return done if done is not None and facts_of(graph, node).readings[source].aligned else None


class _Ahead:
    """Fold of one node: `node` sums the result that `before` makes of `source`."""

    def __init__(
        self, graph: Draft, node: Node, summed: Sum, before: Node, source: str, done: Map, report: Report
    ) -> None:
        self.graph, self.node, self.summed = graph, node, summed
        self.before, self.source, self.done, self.report = before, source, done, report
        self.value = before.outputs[0]
        self.changes = Changes(graph, done, node.origin)
        settled = settle(graph, node)
        kinds = [(graph.value[n].dtype, graph.value[n].shape) for n in node.inputs]
        self.places = _Places(bind(Op(settled.op, node.op.functions), (), settled.attributes, kinds))
        self.tensor = settled.op.tensors[node.inputs.index(self.value)].name

    def run(self) -> bool:
        """Fold.  Return True if it is done."""
        found = [(t, w) for t, w in self.summed.terms if any(r.tensor == self.tensor for r in reads(t))]
        if len(found) != 1 or len([r for t, _ in found for r in reads(t) if r.tensor == self.tensor]) != 1:
            return False
        (term, weight), dtype = found[0], self.done.dtype
        read = linear_read(term, {self.tensor}, dtype)
        factor = self.done.affine.factor
        axes = None if read is None or weight.tensor == self.tensor else self._axes(read, weight, factor)
        if axes is None or not is_number(self.done.affine.term, 0):
            return False
        inputs = list(self.node.inputs)
        position = self.summed.positions[weight.tensor]
        names = {axis: name for name, axis in axes.items()}
        value = self.graph.value[inputs[position]]
        result = self.changes.fresh(f"{value.name}_folded")
        op, others = self.changes.op([names.get(a) for a in range(len(value.shape))], factor, ZERO)
        self.changes.nodes.append(self.changes.node(result, op, (value, *others), result))
        inputs[position] = result
        inputs[self.node.inputs.index(self.value)] = self.source
        again = changed(self.node, inputs=tuple(inputs))
        self.report.note(_NAME, self.node.name, f"has what '{self.before.name}' did in its constants")
        self.graph.replace(self.node, (*self.changes.nodes, again), [self.before], self.changes.values)
        return True

    def _axes(self, read: m.Read, weight: m.Read, e: m.Expr) -> dict[str, int] | None:
        """Return for each index of an expression the axis of the weights, each a different one, that runs with it."""
        shape = self.graph.value[self.node.inputs[self.summed.positions[weight.tensor]]].shape
        found: dict[str, int] = {}
        for name in sorted(index_names(e)):
            dim = self.done.names.index(name)
            place, size = self.places.form(read.indices[dim]), self.graph.value[self.value].shape[dim]
            free = [(a, i) for a, i in enumerate(weight.indices) if a not in found.values()]
            axis = next((a for a, i in free if self.places.form(i) == place), None)
            if axis is None or place is None or shape[axis] != size:
                return None
            found[name] = axis
        return found


class _Places:
    """Subscripts of a call as sums of indices, with its sizes and attributes substituted."""

    def __init__(self, call: Bound) -> None:
        self._environment = call.environment
        definition = call.op.spec.definitions[0]
        inner = (r for n in subexpressions(definition.value) if isinstance(n, m.Reduce) for r in n.indices)
        ranges = (*definition.indices, *inner)
        self.extents = {r.name: evaluate_int(r.extent, call.environment) for r in ranges}
        self._sums = Sums(self.extents, self._number)

    def form(self, e: m.Expr) -> Form | None:
        return self._sums.of(e)

    def _number(self, e: m.Expr) -> int | None:
        if any(isinstance(p, m.Read | m.Index) for p in subexpressions(e)):
            return None
        value = evaluate(e, self._environment)
        return value if isinstance(value, int) else None


def ahead(without: frozenset[str] = frozenset()) -> Pass:
    """Return the pass that leaves the nodes of some names unchanged; it reads no elements of constants."""
    contract = "What scales, by constants, what a sum reads is done to its constants; roundings differ."
    name = ", ".join((_NAME, *sorted(without)))

    def applied(graph: Graph, report: Report) -> Graph:
        return _apply(graph, report, without)

    return Pass(name, contract, applied, after=("affine",), then=("fold", "dead"), slow=True)


AHEAD = bounded(ahead)
