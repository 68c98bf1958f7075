"""What scales and moves a value by constants goes into the constants that it is summed with.

    y = sum[k]((x[i, k] * scale[k] + offset[k]) * w[k, j])

is a sum of x itself with other weights, w[k, j] * scale[k], and a term that depends on constants alone, the same sum of
offset.  Decided by algebra: the value is affine in the earlier one, and its factor depends on places that are
subscripts of the weights, too.  A term needs more: that each result sums all of it.  Where windows reach over borders,
what is left out there differs from place to place, so that values are folded that are scaled and not moved.

Roundings are others.  16 bits stay as they are: a weight times a factor may be outside of their range.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace as changed

from opgen.grad.algebra import add, is_number
from opgen.graph.bound import Bound, CallError, bind, make_node
from opgen.graph.edit import edited
from opgen.graph.linear import ZERO, linear_read
from opgen.graph.nodes import Graph, Node, Op, Value
from opgen.graph.passes.base import Pass, Report
from opgen.graph.plan.sums import Sum as Form
from opgen.graph.plan.sums import Sums
from opgen.graph.reading import facts_of
from opgen.graph.rename import Namer
from opgen.graph.rewrite import factors
from opgen.graph.scaled import Changes, Map, Sum, map_of, sum_of
from opgen.graph.settle import CannotComposeError, settle
from opgen.spec import model as m
from opgen.spec.environment import evaluate, evaluate_int
from opgen.spec.signature import default_signature
from opgen.spec.visit import attrs_in
from opgen.spec.walk import index_names, reads, subexpressions


def _apply(graph: Graph, report: Report) -> Graph:
    for name in [n.name for n in graph.nodes]:
        node = next((n for n in graph.nodes if n.name == name), None)
        while node is not None:
            made = _folded(graph, node, report)
            graph, node = made or graph, None if made is None else next(n for n in made.nodes if n.name == name)
    return graph


def _folded(graph: Graph, node: Node, report: Report) -> Graph | None:
    """The graph with what is done ahead of a sum in its constants; None if there is nothing of the kind."""
    try:
        for before, source in _candidates(graph, node):
            done = _done(graph, before, source)
            summed = None if done is None else sum_of(graph, node)
            if done is not None and summed is not None:
                made = _Ahead(graph, node, summed, before, source, done, report).run()
                if made is not None:
                    return made
    except CannotComposeError:
        return None
    return None


def _candidates(graph: Graph, node: Node) -> Iterator[tuple[Node, str]]:
    """Nodes that make something for a node alone, each with something of the same size that it takes."""
    for value in dict.fromkeys(node.inputs if len(node.outputs) == 1 else ()):
        before = graph.producer.get(value)
        alone = len(graph.readers.get(value, ())) == 1 and node.inputs.count(value) == 1
        if before is None or len(before.outputs) != 1 or not alone or value in graph.outputs:
            continue
        for source in before.inputs:
            if source not in graph.constant and graph.value[source].shape == graph.value[value].shape:
                yield before, source


def _done(graph: Graph, node: Node, source: str) -> Map | None:
    """What a node does with a value, element by element by constants, if it does so."""
    done = map_of(graph, node, source)
    return done if done is not None and facts_of(graph, node).readings[source].aligned else None


class _Ahead:
    """`node` sums what `before` makes of `source`."""

    def __init__(
        self, graph: Graph, node: Node, summed: Sum, before: Node, source: str, done: Map, report: Report
    ) -> None:
        self.graph, self.node, self.summed = graph, node, summed
        self.before, self.source, self.done, self.report = before, source, done, report
        self.value = before.outputs[0]
        self.changes = Changes(graph, done, node.origin)
        settled = settle(graph, node)
        kinds = [(graph.value[n].dtype, graph.value[n].shape) for n in node.inputs]
        self.places = _Places(bind(Op(settled.op, node.op.functions), (), settled.attributes, kinds))
        self.tensor = settled.op.tensors[node.inputs.index(self.value)].name

    def run(self) -> Graph | None:
        found = [(t, w) for t, w in self.summed.terms if any(r.tensor == self.tensor for r in reads(t))]
        if len(found) != 1 or len([r for t, _ in found for r in reads(t) if r.tensor == self.tensor]) != 1:
            return None
        (term, weight), dtype = found[0], self.done.dtype
        read = linear_read(term, {self.tensor}, dtype)
        factor, moved = self.done.affine.factor, self.done.affine.term
        axes = None if read is None or weight.tensor == self.tensor else self._axes(read, weight, factor)
        if read is None or axes is None:
            return None
        inputs = list(self.node.inputs)
        position = self.summed.positions[weight.tensor]
        more = None if is_number(moved, 0) else self._sum_of_term(read, weight, moved)
        if more is None and not is_number(moved, 0):
            return None
        if not is_number(factor, 1):
            names = {axis: name for name, axis in axes.items()}
            value = self.graph.value[inputs[position]]
            result = self.changes.fresh(f"{value.name}_folded")
            op, others = self.changes.op([names.get(a) for a in range(len(value.shape))], factor, ZERO)
            self.changes.nodes.append(self.changes.node(result, op, (value, *others), result))
            inputs[position] = result
        inputs[self.node.inputs.index(self.value)] = self.source
        return self._edited(changed(self.node, inputs=tuple(inputs)), more)

    def _edited(self, again: Node, more: Value | None) -> Graph:
        result = again.outputs[0]
        last: list[Node] = []
        if more is not None:
            unmoved = changed(self.graph.value[result], name=self.changes.fresh(f"{result}_unmoved"))
            self.changes.values.append(unmoved)
            again = changed(again, outputs=(unmoved.name,))
            name = self.changes.fresh(f"{again.name}_moved")
            last = [self.changes.node(name, _sum_op(unmoved, more), (unmoved, more), result)]
        nodes: list[Node] = []
        for n in self.graph.nodes:
            if n.name == self.node.name:
                nodes += [*self.changes.nodes, again, *last]
            elif n.name != self.before.name:
                nodes.append(n)
        self.report.note(AHEAD.name, self.node.name, f"has what '{self.before.name}' did in its constants")
        return edited(self.graph, nodes, made=self.changes.values)

    def _axes(self, read: m.Read, weight: m.Read, e: m.Expr) -> dict[str, int] | None:
        """For each index of an expression the axis of the weights, one of its own, that runs with it in the sum."""
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

    # A term --------------------------------------------------------------------------------------

    def _sum_of_term(self, read: m.Read, weight: m.Read, term: m.Expr) -> Value | None:
        """The sum of a term alone, by a new node; None if it is not the same for all that the sum reads."""
        shape = self.graph.value[self.value].shape
        indices = [i.name for i in read.indices if isinstance(i, m.Index)]
        whole = len(set(indices)) == len(shape) and all(
            self.places.extents[i] == size for i, size in zip(indices, shape, strict=True)
        )
        if not whole or len(self.summed.terms) > 1:
            return None
        summed = {name for i in weight.indices for name in index_names(i)}
        full = [i in summed for i in indices]
        made = _term_op(self.done, term, full, shape)
        if made is None:
            return None
        op, others = made
        value = self.changes.fresh(f"{self.value}_term")
        self.changes.nodes.append(self.changes.node(value, op, others, value))
        inputs = [self.graph.value[n] for n in self.node.inputs]
        inputs[self.node.inputs.index(self.value)] = self.changes.values[-1]
        result = self.changes.fresh(f"{self.node.outputs[0]}_term")
        try:
            node, (found,) = make_node(
                result,
                self.node.op,
                inputs,
                [result],
                dict(self.node.attributes),
                dict(self.node.types),
                self.node.origin,
            )
        except CallError:
            return None
        final = self.graph.value[self.node.outputs[0]].shape
        if len(found.shape) != len(final) or any(a not in (1, n) for a, n in zip(found.shape, final, strict=True)):
            return None
        self.changes.nodes.append(node)
        self.changes.values.append(found)
        return found


class _Places:
    """Subscripts of a call as sums of indices, with its sizes and attributes in place."""

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


def _sum_op(value: Value, more: Value) -> Op:
    """An op that adds a value of as many dimensions, some of which may be 1."""
    sizes = [m.Symbol(f"size_{k}") for k in range(len(value.shape))]
    names = [f"i_{k}" for k in range(len(value.shape))]
    indices = tuple(m.Index(n) for n in names)
    stretched = [one != size for one, size in zip(more.shape, value.shape, strict=True)]
    own = [m.Number(1) if s else size for s, size in zip(stretched, sizes, strict=True)]
    read = m.Read("more", tuple(m.Number(0) if s else i for s, i in zip(stretched, indices, strict=True)))
    dtype = value.dtype.name
    inputs = (m.Tensor("x", dtype, _dimensions(sizes)), m.Tensor("more", dtype, _dimensions(own)))
    return _op("Move", inputs, (), m.Tensor("y", dtype, _dimensions(sizes)), indices, add(m.Read("x", indices), read))


def _term_op(done: Map, term: m.Expr, full: Sequence[bool], shape: Sequence[int]) -> tuple[Op, list[Value]] | None:
    """An op that makes a term as a tensor, of size 1 where nothing depends on the place, and what it takes."""
    used = {r.tensor for r in reads(term)}
    others = [done.tensors[name] for name in done.tensors if name in used]
    if not others:
        return None
    own = index_names(term)
    sizes: list[m.Expr] = [
        done.sizes[k] if name in own else m.Number(shape[k] if full[k] else 1) for k, name in enumerate(done.names)
    ]
    attrs = tuple(changed(a, doc="") for a, _ in done.attrs.values() if a.name in attrs_in(term))
    inputs = tuple(changed(t, doc="") for t, _ in others)
    output = m.Tensor(Namer({t.name for t in inputs} | set(done.names)).fresh("y"), done.dtype, _dimensions(sizes))
    op = _op("Term", inputs, attrs, output, tuple(map(m.Index, done.names)), term)
    return op, [v for _, v in others]


def _dimensions(sizes: Sequence[m.Expr]) -> tuple[m.Dimension, ...]:
    return tuple(m.Dimension(s, factors(s)) for s in sizes)


def _op(
    name: str,
    inputs: tuple[m.Tensor, ...],
    attrs: tuple[m.Attr, ...],
    output: m.Tensor,
    indices: tuple[m.Index, ...],
    value: m.Expr,
) -> Op:
    sizes = tuple(d.size for d in output.dims)
    ranges = tuple(m.IndexRange(i.name, s) for i, s in zip(indices, sizes, strict=True))
    spec = m.OpSpec(
        name=name,
        function_name=name.lower(),
        signature=default_signature(inputs, attrs),
        type_variables=(),
        inputs=inputs,
        attrs=attrs,
        outputs=(output,),
        checks=(),
        definitions=(m.Definition(output.name, ranges, indices, value, output.dtype, sizes, True),),
        doc="What was done ahead of a sum, done to its constants.",
    )
    return Op(spec)


AHEAD = Pass(
    "ahead", "What scales and moves, by constants, what a sum reads is done to its constants; roundings differ.", _apply
)
