"""Scaling of a value by constants, sums of terms with constants, and nodes that change these constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed
from itertools import chain, count

from opgen.grad.algebra import add, is_number, mul
from opgen.graph.fusion.linear import Affine, affine_in, linear_read, terms_of, without_lets
from opgen.graph.fusion.rename import Namer
from opgen.graph.fusion.rewrite import factors
from opgen.graph.fusion.unify import settle
from opgen.graph.ir.bound import make_node
from opgen.graph.ir.draft import GraphView
from opgen.graph.ir.nodes import Node, Op, Value
from opgen.graph.ir.scratch import kept_while_making
from opgen.spec.call.environment import AttrStored
from opgen.spec.check.signature import default_signature
from opgen.spec.model import model as m
from opgen.spec.model.visit import attrs_in
from opgen.spec.model.walk import reads, subexpressions


@dataclass(frozen=True)
class Map:
    """An affine map of a value: `affine`, read by the indices `names`, one for each of the value's dimensions.

    `tensors` are the constants that it reads, with their values; `sizes` are its names for the value's dimensions.
    """

    affine: Affine
    names: tuple[str, ...]
    sizes: tuple[m.Expr, ...]
    tensors: Mapping[str, tuple[m.Tensor, Value]]
    attrs: Mapping[str, tuple[m.Attr, AttrStored]]
    dtype: str


@dataclass(frozen=True)
class Sum:
    """A node's sum: its terms, and for each the constant in which it is linear.

    `places` are the subscripts of the result.
    """

    terms: tuple[tuple[m.Expr, m.Read], ...]
    places: tuple[m.Expr, ...]
    positions: Mapping[str, int]


def map_of(graph: GraphView, node: Node, value: str) -> Map | None:
    """Return the map that a node applies to a value, if it is affine with constants; None if it is not."""
    if graph.value[value].dtype.name not in ("float32", "float64") or node.inputs.count(value) != 1:
        return None
    settled = settle(graph, node)
    op = settled.op
    read = op.tensors[node.inputs.index(value)]
    affine = _affine(settled.whole, read)
    if affine is None:
        return None
    names = tuple(s.name for s in op.definitions[-1].subscripts if isinstance(s, m.Index))
    given = dict(settled.attributes)
    tensors = {
        t.name: (t, graph.value[v])
        for t, v in zip(op.tensors, node.inputs, strict=True)
        if v in graph.constant and graph.value[v].dtype.name == read.dtype
    }
    attrs = {a.name: (a, given[a.name]) for a in op.attrs}
    made = Map(affine, names, tuple(d.size for d in read.dims), tensors, attrs, read.dtype)
    return made if all(_is_known(made, e) for e in (affine.factor, affine.term)) else None


@kept_while_making
def _affine(op: Op, read: m.Tensor) -> Affine | None:
    """Return an op's only result as affine in a tensor, at plain indices; None if it is not."""
    spec = op.spec
    found = without_lets(spec.definitions)
    if found is None or len(spec.outputs) != 1 or spec.outputs[0].dtype != read.dtype:
        return None
    affine = affine_in(found, read.name, read.dtype)
    plain = all(isinstance(s, m.Index) for s in spec.definitions[-1].subscripts)
    return affine if affine is not None and plain and not is_number(affine.factor, 0) else None


def _is_known(done: Map, e: m.Expr) -> bool:
    """Return whether an expression is made of constants, numbers and attributes."""
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


def sum_of(graph: GraphView, node: Node) -> Sum | None:
    """Return a node's sum, if each term is linear in a constant that only this term reads; else None."""
    return _sum(settle(graph, node).whole, tuple(v in graph.constant for v in node.inputs))


@kept_while_making
def _sum(whole: Op, is_constant: tuple[bool, ...]) -> Sum | None:
    op = whole.spec
    if len(op.definitions) != 1 or len(op.outputs) != 1:
        return None
    value, dtype = op.definitions[0].value, op.outputs[0].dtype
    if not any(isinstance(n, m.Reduce) for n in subexpressions(value)):
        return None
    constant = {t.name for t, yes in zip(op.tensors, is_constant, strict=True) if yes}
    terms = [(t, linear_read(t, constant, dtype)) for t in terms_of(value, dtype)]
    found = tuple((t, r) for t, r in terms if r is not None)
    all_reads = [r.tensor for r in reads(value)]
    if len(found) < len(terms) or any(all_reads.count(r.tensor) != 1 for _, r in found):
        return None
    positions = {t.name: i for i, t in enumerate(op.tensors)}
    return Sum(found, op.definitions[0].subscripts, positions)


class Changes:
    """New nodes for a graph, which apply a map to constants; `origin` is the origin of the nodes."""

    def __init__(self, graph: GraphView, done: Map, origin: str) -> None:
        self.graph, self.done, self.origin = graph, done, origin
        self.nodes: list[Node] = []
        self.values: list[Value] = []
        self._known = graph.value, graph.node
        self._taken: set[str] = set()

    def fresh(self, name: str) -> str:
        """Return an unused name."""
        names = chain((name,), (f"{name}_{k}" for k in count(2)))
        found = next(n for n in names if not any(n in among for among in (self._taken, *self._known)))
        self._taken.add(found)
        return found

    def node(self, name: str, op: Op, inputs: Sequence[Value], result: str) -> Node:
        """Return a node that makes one result, and record the result."""
        attributes = {a.name: self.done.attrs[a.name][1] for a in op.spec.attrs}
        node, made = make_node(name, op, inputs, [result], attributes, origin=self.origin)
        self.values += made
        return node

    def op(self, names: Sequence[str | None], factor: m.Expr, term: m.Expr) -> tuple[Op, list[Value]]:
        """Return an op that multiplies a tensor by a factor and adds a term, and its other inputs.

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
        """Return the extent of an index."""
        return self.done.sizes[self.done.names.index(name)]
