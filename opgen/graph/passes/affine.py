"""What scales and moves the results of a sum, by constants, goes into the constants that are summed.

    y = (sum[k](x[i, k] * w[k, j]) - mean[j]) * scale[j] + offset[j]

is a sum with other weights, w[k, j] * scale[j], and another term.  Decided by algebra: the later value is affine in the
earlier one, its factor depends on constants and on places that are subscripts of the weights, too.  The new weights are
results of new nodes, which depend on constants alone.  Roundings are others: not for 16 bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed
from itertools import chain, count

from opgen.grad.algebra import add, is_number, mul
from opgen.graph.bound import make_node
from opgen.graph.compose import compose
from opgen.graph.edit import edited
from opgen.graph.linear import ZERO, Affine, affine_in, linear_read, terms_of, without_lets
from opgen.graph.nodes import Graph, Node, Op, Value
from opgen.graph.passes.base import Pass, Report
from opgen.graph.reading import facts_of
from opgen.graph.rename import Namer
from opgen.graph.rewrite import factors
from opgen.graph.settle import CannotComposeError, settle
from opgen.spec import model as m
from opgen.spec.environment import AttrStored
from opgen.spec.signature import default_signature
from opgen.spec.visit import attrs_in
from opgen.spec.walk import index_names, reads, subexpressions


@dataclass(frozen=True)
class _Map:
    """What is done with a value: `affine` in it, read by the indices `names`, one for each of its dimensions.

    `tensors` are the constants that it reads, with their values; `sizes` what it calls the value's dimensions.
    """

    affine: Affine
    names: tuple[str, ...]
    sizes: tuple[m.Expr, ...]
    tensors: Mapping[str, tuple[m.Tensor, Value]]
    attrs: Mapping[str, tuple[m.Attr, AttrStored]]
    dtype: str


@dataclass(frozen=True)
class _Sum:
    """What a node sums: its terms, and for each the constant that it is linear in.

    `places` are the subscripts of the result.
    """

    terms: tuple[tuple[m.Expr, m.Read], ...]
    places: tuple[m.Expr, ...]
    positions: Mapping[str, int]


def _apply(graph: Graph, report: Report) -> Graph:
    for name in [n.name for n in graph.nodes]:
        node = next((n for n in graph.nodes if n.name == name), None)
        if node is not None and len(node.outputs) == 1:
            graph = _folded(graph, node, report)
    return graph


def _folded(graph: Graph, node: Node, report: Report) -> Graph:
    """The graph with what follows a node in its constants, if that can be."""
    after = list(_chain(graph, node))
    if not after:
        return graph
    try:
        summed = _sum(graph, node)
        whole = after[0] if len(after) == 1 else compose(graph, after, after[-1].outputs)
        done = None if summed is None else _map(graph, whole, node.outputs[0])
        if summed is None or done is None:
            return graph
        return _Folding(graph, node, summed, done, after, report).run()
    except CannotComposeError as error:
        report.note(AFFINE.name, f"{node.name} -> {after[0].name}", f"apart: {error}")
        return graph


def _chain(graph: Graph, node: Node) -> Iterator[Node]:
    """The nodes after a node that do something affine with its result, by constants, one after the other."""
    value = node.outputs[0]
    while value not in graph.outputs:
        readers = graph.readers.get(value, ())
        if len(readers) != 1 or len(readers[0].outputs) != 1:
            return
        try:
            if not facts_of(graph, readers[0]).readings[value].aligned or _map(graph, readers[0], value) is None:
                return
        except CannotComposeError:
            return
        yield readers[0]
        value = readers[0].outputs[0]


def _map(graph: Graph, node: Node, value: str) -> _Map | None:
    """What a node does with a value, if that is affine by constants; None if it is not."""
    if graph.value[value].dtype.name not in ("float32", "float64") or node.inputs.count(value) != 1:
        return None
    settled = settle(graph, node)
    op = settled.op
    found = without_lets(op.definitions)
    read = op.tensors[node.inputs.index(value)]
    if found is None or len(op.outputs) != 1 or op.outputs[0].dtype != read.dtype:
        return None
    affine = affine_in(found, read.name, read.dtype)
    subscripts = op.definitions[-1].subscripts
    names = tuple(s.name for s in subscripts if isinstance(s, m.Index))
    if affine is None or is_number(affine.factor, 0) or len(names) < len(subscripts):
        return None
    given = dict(settled.attributes)
    tensors = {
        t.name: (t, graph.value[v])
        for t, v in zip(op.tensors, node.inputs, strict=True)
        if v in graph.constant and graph.value[v].dtype.name == read.dtype
    }
    attrs = {a.name: (a, given[a.name]) for a in op.attrs}
    made = _Map(affine, names, tuple(d.size for d in read.dims), tensors, attrs, read.dtype)
    return made if all(_is_known(made, e) for e in (affine.factor, affine.term)) else None


def _is_known(done: _Map, e: m.Expr) -> bool:
    """Whether an expression is made of constants, numbers and attributes."""
    if any(isinstance(n, m.Symbol | m.FunctionCall | m.Reduce | m.Element) for n in subexpressions(e)):
        return False
    for r in reads(e):
        if r.tensor not in done.tensors or r.outside is not None:
            return False
        dims = done.tensors[r.tensor][0].dims
        for index, dim in zip(r.indices, dims, strict=True):
            runs = isinstance(index, m.Index) and dim.size == done.sizes[done.names.index(index.name)]
            if not runs and not (index == m.Number(0) and dim.size == m.Number(1)):
                return False
    return True


def _sum(graph: Graph, node: Node) -> _Sum | None:
    """What a node sums, if each term is linear in a constant that is read there alone."""
    op = settle(graph, node).op
    if len(op.definitions) != 1 or len(op.outputs) != 1:
        return None
    value, dtype = op.definitions[0].value, op.outputs[0].dtype
    if not any(isinstance(n, m.Reduce) for n in subexpressions(value)):
        return None
    constant = {t.name for t, v in zip(op.tensors, node.inputs, strict=True) if v in graph.constant}
    terms = [(t, linear_read(t, constant, dtype)) for t in terms_of(value, dtype)]
    found = tuple((t, r) for t, r in terms if r is not None)
    all_reads = [r.tensor for r in reads(value)]
    if len(found) < len(terms) or any(all_reads.count(r.tensor) != 1 for _, r in found):
        return None
    positions = {t.name: i for i, t in enumerate(op.tensors)}
    return _Sum(found, op.definitions[0].subscripts, positions)


class _Folding:
    def __init__(
        self, graph: Graph, node: Node, summed: _Sum, done: _Map, after: Sequence[Node], report: Report
    ) -> None:
        self.graph, self.node, self.summed, self.done = graph, node, summed, done
        self.after, self.report = after, report
        self.taken = {*graph.value, *(n.name for n in graph.nodes)}
        self.nodes: list[Node] = []
        self.values: list[Value] = []

    def run(self) -> Graph:
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
            unmoved = changed(self.graph.value[last.outputs[0]], name=self._fresh(f"{last.outputs[0]}_unmoved"))
            self.values.append(unmoved)
            again = changed(again, outputs=(unmoved.name,))
            moved = [self._moved(unmoved, term, last)]
        else:
            moved = []
        gone = {n.name for n in self.after}
        nodes: list[Node] = []
        for n in self.graph.nodes:
            if n.name == self.node.name:
                nodes += [*self.nodes, again, *moved]
            elif n.name not in gone:
                nodes.append(n)
        names = ", ".join(f"'{n.name}'" for n in self.after)
        self.report.note(AFFINE.name, self.node.name, f"has what {names} did in its constants")
        return edited(self.graph, nodes, made=self.values)

    def _fresh(self, name: str) -> str:
        found = next(n for n in chain((name,), (f"{name}_{k}" for k in count(2))) if n not in self.taken)
        self.taken.add(found)
        return found

    def _axes(self, read: m.Read, e: m.Expr) -> dict[str, int] | None:
        """For each index of an expression the axis of a constant along which its elements are read there."""
        found: dict[str, int] = {}
        for name in sorted(index_names(e)):
            place = self.summed.places[self.done.names.index(name)]
            axis = next((a for a, index in enumerate(read.indices) if index == place), None)
            if axis is None:
                return None
            found[name] = axis
        return found

    def _changed(self, value: Value, axes: Mapping[str, int], factor: m.Expr, term: m.Expr) -> str:
        """The value times a factor, plus a term: the result of a new node."""
        by_axis = {axis: name for name, axis in axes.items()}
        names = [by_axis.get(axis) for axis in range(len(value.shape))]
        result = self._fresh(f"{value.name}_folded")
        op, inputs = self._op(names, factor, term)
        self.nodes.append(self._node(result, op, (value, *inputs), result))
        return result

    def _moved(self, value: Value, term: m.Expr, last: Node) -> Node:
        """The node that adds a term which the sum has no place for."""
        op, inputs = self._op(list(self.done.names), m.Number(1), term)
        return self._node(self._fresh(last.name), op, (value, *inputs), last.outputs[0])

    def _node(self, name: str, op: Op, inputs: Sequence[Value], result: str) -> Node:
        attributes = {a.name: self.done.attrs[a.name][1] for a in op.spec.attrs}
        node, made = make_node(name, op, inputs, [result], attributes, origin=self.node.origin)
        self.values += made
        return node

    def _op(self, names: Sequence[str | None], factor: m.Expr, term: m.Expr) -> tuple[Op, list[Value]]:
        """An op that multiplies a tensor by a factor and adds a term, and what it takes besides the tensor.

        `names` are the indices of the tensor's dimensions, None for those on which neither depends.
        """
        done = self.done
        used = {r.tensor for e in (factor, term) for r in reads(e)}
        others = [done.tensors[name] for name in done.tensors if name in used]
        attrs = [a for a, _ in done.attrs.values() if a.name in attrs_in(factor) | attrs_in(term)]
        namer = Namer({*(t.name for t, _ in others), *(a.name for a in attrs), *done.names})
        namer.taken |= {str(f) for t, _ in others for d in t.dims for f in d.factors}
        sizes = [m.Symbol(namer.fresh(f"size_{k}")) if n is None else self._size(n) for k, n in enumerate(names)]
        indices = tuple(m.Index(n or namer.fresh(f"i_{k}")) for k, n in enumerate(names))
        dims = tuple(m.Dimension(s, factors(s)) for s in sizes)
        x, y = (m.Tensor(namer.fresh(name), done.dtype, dims) for name in ("x", "y"))
        ranges = tuple(m.IndexRange(i.name, s) for i, s in zip(indices, sizes, strict=True))
        value = add(mul(m.Read(x.name, indices), factor), term)
        inputs = (x, *(changed(t, doc="") for t, _ in others))
        spec = m.OpSpec(
            name="ScaleAndMove",
            function_name="scale_and_move",
            signature=default_signature(inputs, attrs),
            type_variables=(),
            inputs=inputs,
            attrs=tuple(changed(a, doc="") for a in attrs),
            outputs=(y,),
            checks=(),
            definitions=(m.Definition(y.name, ranges, indices, value, done.dtype, tuple(sizes), True),),
            doc="What was done after a sum, done to its constants.",
        )
        return Op(spec), [v for _, v in others]

    def _size(self, name: str) -> m.Expr:
        """What an index runs over."""
        return self.done.sizes[self.done.names.index(name)]


AFFINE = Pass(
    "affine", "What scales and moves a sum's results by constants is done to the constants; roundings differ.", _apply
)
