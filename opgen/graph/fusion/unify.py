"""A node's op with all structure resolved, ready for `compose`.

Words and switches are evaluated, and tensors are in the caller's order.  A broadcast dimension is 1 or the size to
which it is broadcast.  Scalar types are plain.  Integers, numbers and sizes stay open.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

from opgen.graph.fusion.rewrite import factors, folded, in_order, is_bool, with_children
from opgen.graph.fusion.unused import without_idle
from opgen.graph.ir.bound import Bound, Types, bound
from opgen.graph.ir.draft import GraphView
from opgen.graph.ir.nodes import Node, Op
from opgen.graph.ir.scratch import kept_while_making
from opgen.spec.call.arguments import logical_axes
from opgen.spec.call.environment import AttrStored, Environment
from opgen.spec.model import model as m
from opgen.spec.model.walk import transform
from opgen.spec.resolve.inside import inside

_T = TypeVar("_T")


class CannotComposeError(Exception):
    """Reason why ops cannot be composed, in words for a report."""


@dataclass(frozen=True)
class Settled:
    """A unified op: `whole` has no words, switches, layouts, type variables or broadcast dimensions.

    It is one object for all calls that differ in numbers alone.  `attributes` are the values of its remaining
    attributes, with lists in logical order.
    """

    whole: Op
    attributes: tuple[tuple[str, AttrStored], ...]

    @property
    def op(self) -> m.OpSpec:
        return self.whole.spec


def settle(graph: GraphView, node: Node) -> Settled:
    """Return the op of a node, unified for calls like this one.  Raises CannotComposeError."""
    return _settled_call(bound(graph, node))


@kept_while_making
def _settled_call(made: Bound) -> Settled:
    call = made.environment
    spec, given = made.op.spec, dict(made.attributes)
    lengths = {i.name: _size_values(given, i) for i in spec.inputs if isinstance(i, m.Sizes)}
    words = tuple((a.name, _word(call.attrs[a.name])) for a in spec.attrs)
    fills = tuple(_fills(call, tensor) for tensor in spec.tensors)
    whole = _settled(_Structure(made.op, made.types, words, fills, tuple((n, len(v)) for n, v in lengths.items())))
    numbers = ((a.name, call.attrs[a.name]) for a in whole.spec.attrs)
    return Settled(whole, (*numbers, *lengths.items()))


@dataclass(frozen=True)
class _Structure:
    """Parts of a call that determine its unified op; they contain no number, so that calls of other sizes share them.

    `words` are attributes, with 0 for numbers.  `fills` says for each dimension of each tensor whether it has its full
    size or is broadcast.  `lengths` are those of lists of sizes.
    """

    op: Op
    types: Types
    words: tuple[tuple[str, AttrStored], ...]
    fills: tuple[tuple[bool, ...], ...]
    lengths: tuple[tuple[str, int], ...]


def _word(value: AttrStored) -> AttrStored:
    return value if isinstance(value, str | bool) or value == () else 0


def _fills(call: Environment, tensor: m.Tensor) -> tuple[bool, ...]:
    if tensor.follows:
        return (True,) * tensor.rank
    sizes = zip(tensor.dims, call.shapes[tensor.name], strict=True)
    return tuple(not dim.broadcast or size == call.symbols[str(dim.factors[0])] for dim, size in sizes)


def _size_values(given: Mapping[str, AttrStored], sizes: m.Sizes) -> tuple[int, ...]:
    value = given[sizes.name]
    return tuple(int(v) for v in value) if isinstance(value, tuple) else ()


@lru_cache(maxsize=2048)
def _settled(structure: _Structure) -> Op:
    return Op(_Settling(structure).run(), structure.op.functions)


class _Settling:
    def __init__(self, structure: _Structure) -> None:
        self.op = structure.op.spec
        self.words = dict(structure.words)
        self.lengths = dict(structure.lengths)
        self.types = dict(structure.types)
        self.fills = {t.name: fills for t, fills in zip(self.op.tensors, structure.fills, strict=True)}
        self.axes = {
            t.name: logical_axes(self.op, t.layout, self.words, t.rank) for t in (*self.op.tensors, *self.op.outputs)
        }
        self.dims = {t.name: tuple(self._dimension(t, axis) for axis in range(t.rank)) for t in self.op.tensors}

    def run(self) -> m.OpSpec:
        op = self.op
        if not op.definitions:
            raise CannotComposeError(f"{op.name} has no mathematics of its own")
        definitions = tuple(self._definition(d, op.definitions) for d in op.definitions)
        settled = replace(
            op,
            signature=(),
            type_variables=(),
            inputs=tuple(self._tensor(i) if isinstance(i, m.Tensor) else self._sizes(i) for i in op.inputs),
            attrs=tuple(self._attrs()),
            outputs=tuple(self._tensor(o) for o in op.outputs),
            checks=tuple(self._checks()),
            definitions=definitions,
            gradient=None,
            examples=(),
            specializations=(),
            algorithms=tuple(self._algorithms()),
        )
        return without_idle(settled)

    # The interface --------------------------------------------------------------------------------

    def _dimension(self, tensor: m.Tensor, axis: int) -> m.Dimension:
        """Return a dimension of an input as it is in this call; a broadcast one is 1 or the size of the broadcast."""
        dim = tensor.dims[axis]
        if tensor.follows:
            return replace(dim, size=self.expression(dim.size), factors=factors(dim.size))
        if not dim.broadcast:
            return dim
        return replace(dim, broadcast=False) if self.fills[tensor.name][axis] else m.Dimension(m.Number(1), (1,))

    def _tensor(self, tensor: m.Tensor) -> m.Tensor:
        """Return a tensor in the caller's order, of a plain type."""
        dims = self.dims.get(tensor.name)
        if dims is None:
            dims = tuple(replace(d, size=self.expression(d.size)) for d in tensor.dims)
        if tensor.follows and not all(d.factors for d in dims):
            raise CannotComposeError(f"the shape of {self.op.name}'s '{tensor.name}' is worked out from the others")
        return replace(
            tensor, dtype=self._type(tensor.dtype), dims=self._ordered(tensor.name, dims), layout=None, follows=False
        )

    def _sizes(self, sizes: m.Sizes) -> m.Sizes:
        """Return sizes in the one form that is given, in the caller's order."""
        length = self.lengths[sizes.name]
        form = next(i for i, dims in enumerate(sizes.forms) if len(dims) == length)
        axes = logical_axes(self.op, sizes.layouts[form], self.words, length)
        dims = _placed(axes, sizes.forms[form])
        bindings = (sizes.bindings[form],) if sizes.bindings and sizes.bindings[form] else ()
        return replace(sizes, forms=(dims,), layouts=(None,), bindings=bindings)

    def _attrs(self) -> Iterator[m.Attr]:
        """Yield the attributes that stay: those with numbers that are given."""
        for a in self.op.attrs:
            if a.kind in ("int", "float") and not a.compatibility and self.words[a.name] != ():
                yield m.Attr(a.name, a.kind, a.shape, minimum=a.minimum, maximum=a.maximum, doc=a.doc, wide=a.wide)

    def _checks(self) -> Iterator[m.ShapeLet | m.Require]:
        for check in self.op.checks:
            if isinstance(check, m.ShapeLet):
                yield replace(check, value=self.expression(check.value))
                continue
            condition = self.expression(check.condition)
            expected = tuple(p if isinstance(p, str) else self.expression(p) for p in check.expected)
            if not is_bool(condition):
                yield replace(check, condition=condition, expected=expected)

    def _algorithms(self) -> Iterator[m.Algorithm]:
        """Yield the algorithms that apply to such types and words."""
        for algorithm in self.op.algorithms:
            allowed = {v.name: {t.name for t in v.allowed} for v in algorithm.type_variables}
            fits = all(self.types[name] in types for name, types in allowed.items())
            condition = None if algorithm.condition is None else self.expression(algorithm.condition)
            if fits and (condition is None or not is_bool(condition)):
                yield replace(
                    algorithm,
                    type_variables=(),
                    condition=condition,
                    definitions=tuple(self._definition(d, algorithm.definitions) for d in algorithm.definitions),
                )

    # Mathematics ----------------------------------------------------------------------------------

    def _definition(self, d: m.Definition, among: Collection[m.Definition]) -> m.Definition:
        ranges = tuple(m.IndexRange(r.name, self.expression(r.extent)) for r in d.indices)
        lets = {x.tensor for x in among if not x.is_output}
        value = self._reads(self._places(d.value, d.tensor), {r.name: r.extent for r in d.indices}, lets)
        subscripts = self._ordered(d.tensor, tuple(self.expression(e) for e in d.subscripts))
        dims = self._ordered(d.tensor, tuple(self.expression(e) for e in d.dims))
        return replace(
            d,
            indices=in_order(ranges, subscripts),
            subscripts=subscripts,
            value=self.expression(value),
            dims=dims,
            dtype=self._type(d.dtype),
        )

    def _places(self, value: m.Expr, tensor: str) -> m.Expr:
        """Return the value of a definition with its updates in the caller's order."""
        if not isinstance(value, m.Scatter):
            return value
        return replace(value, at=self._ordered(tensor, value.at), start=self._places(value.start, tensor))

    def _ordered(self, tensor: str, items: tuple[_T, ...]) -> tuple[_T, ...]:
        """Return items, one for each dimension of a tensor, in the caller's order."""
        return _placed(self.axes[tensor], items) if tensor in self.axes else items

    def _reads(self, e: m.Expr, ranges: Mapping[str, m.Expr], lets: set[str]) -> m.Expr:
        """Return an expression whose reads are in the caller's order, with 0 along broadcast dimensions."""
        inner = ranges
        if isinstance(e, m.Reduce):
            inner = {**ranges, **{r.name: r.extent for r in e.indices}}
        new = with_children(e, lambda o: self._reads(o, inner, lets))
        if not isinstance(new, m.Read) or new.tensor in lets or new.tensor not in self.axes:
            return new
        tensor = next(t for t in self.op.tensors if t.name == new.tensor)
        indices = list(new.indices)
        for axis, (given, settled) in enumerate(zip(tensor.dims, self.dims[tensor.name], strict=True)):
            if given.broadcast and settled.size == m.Number(1):
                if not inside(indices[axis], given.size, ranges, _not_negative):
                    raise CannotComposeError(f"'{tensor.name}' of {self.op.name} stretches and is read outside")
                indices[axis] = m.Number(0)
        return replace(new, indices=self._ordered(new.tensor, tuple(indices)))

    # Expressions ----------------------------------------------------------------------------------

    def expression(self, e: m.Expr) -> m.Expr:
        """Return an expression with its structure resolved."""
        return transform(self._settled, e)

    def _settled(self, e: m.Expr) -> m.Expr:
        match e:
            case m.EnumIs():
                return m.Number(self.words[e.name] == e.value)
            case m.Present():
                return m.Number(self.words[e.attr] != ())
            case m.AttrValue():
                return self._number(e)
            case m.SizeOf():
                return self._size_of(e)
            case m.FunctionCall():
                arguments = tuple(
                    replace(a, name=None, value=str(self.words[a.name]))
                    if isinstance(a, m.EnumArgument) and a.name is not None
                    else a
                    for a in e.arguments
                )
                return replace(e, arguments=arguments)
            case m.Convert() | m.BitCast():
                return replace(e, to=self._type(e.to))
            case _:
                return folded(e)

    def _size_of(self, e: m.SizeOf) -> m.Expr:
        tensor = next(t for t in self.op.tensors if t.name == e.tensor)
        return self.dims[tensor.name][e.axis].size

    def _number(self, e: m.AttrValue) -> m.Expr:
        value = self.words[e.attr]
        if isinstance(value, bool):
            return m.Number(value)
        return m.Number(0) if value == () else e

    def _type(self, name: str) -> str:
        return self.types.get(name, name)


def _placed(axes: tuple[int, ...], items: tuple[_T, ...]) -> tuple[_T, ...]:
    """Return items of the dimensions in logical order, each at its dimension's place."""
    return tuple(items[axes.index(place)] for place in range(len(axes)))


def _not_negative(atom: m.Expr) -> int | None:
    return 0 if isinstance(atom, m.Symbol) else None
