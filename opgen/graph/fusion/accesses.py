"""Access summaries of nodes: they decide whether a node may be fused with the nodes that make its values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from opgen.compiler import toolchain
from opgen.compiler.algorithms import mode
from opgen.compiler.choose import choose, takes
from opgen.compiler.request import Compilation, OpVariant
from opgen.graph.fusion.unify import CannotComposeError, settle
from opgen.graph.ir.bound import Bound, bound
from opgen.graph.ir.draft import GraphView
from opgen.graph.ir.nodes import Node, Op
from opgen.graph.ir.scratch import kept_while_making
from opgen.graph.plan.views import view_of
from opgen.spec.call.environment import Environment, evaluate_int
from opgen.spec.call.whole import EvaluationError
from opgen.spec.model import model as m
from opgen.spec.model.walk import operands, subexpressions

AGAIN = 4
"""Average number of reads of an element above which a reduction is expensive: a product, a window."""

SIMPLE = frozenset({"floor", "ceil", "round", "trunc", "abs", "sign", "isnan", "isinf", "bit_not"})
"""Functions that are one operation, or two."""

ROOTS, SERIES, POWER = 8, 24, 40
"""Approximate cost in simple operations of a quotient or root; of another function; of a power."""


@dataclass(frozen=True)
class Reading:
    """Access summary of one value.

    `aligned`: outside reductions, at the result's own element.  `straight`: at plain indices, or at 0.  `summed`: in a
    reduction.  `places` is the number of reads in the text, `times` the number of reads of each element.
    """

    aligned: bool
    straight: bool
    summed: bool
    places: int
    times: float


@dataclass(frozen=True)
class Facts:
    """Access summary of a node.

    `readings` are of its values, by their names.  `reduces`: it has reductions.  `heavy`: one of them reads elements
    repeatedly.  `moves`: it has no reductions, and some places that it reads are computed.  `view`: it does nothing.
    `cost`: operations for an element of the result, without reductions.  `otherwise`: an algorithm computes it faster
    than its definition does.
    """

    readings: Mapping[str, Reading]
    reduces: bool
    heavy: bool
    moves: bool
    view: bool
    cost: int
    otherwise: bool


@dataclass(frozen=True)
class _Seen:
    """A read, the definition that contains it, and the indices of the reductions around it.

    `chooses`: it is in a subscript of another read.
    """

    read: m.Read
    definition: m.Definition
    around: tuple[m.IndexRange, ...]
    chooses: bool


def facts_of(graph: GraphView, node: Node) -> Facts:
    """Return the access summary of a node.

    Raises CannotComposeError if the ranges of its loops depend on each other.
    """
    first = tuple(map(node.inputs.index, node.inputs))
    facts, readings = _facts(
        bound(graph, node), settle(graph, node).whole, first, mode() if node.op.spec.algorithms else ""
    )
    return replace(facts, readings={node.inputs[place]: reading for place, reading in readings.items()})


@kept_while_making
def _facts(call: Bound, settled: Op, first: tuple[int, ...], _: str) -> tuple[Facts, Mapping[int, Reading]]:
    """Return the facts of all nodes like one, without readings, and the readings.

    The key of a reading is the first input that takes the value.  `first` is this place for each input.  `_` says which
    algorithms may be used.
    """
    op = settled.spec
    seen = [s for d in op.definitions for s in _reads(d.value, d, ())]
    names: dict[int, set[str]] = {}
    for place, tensor in zip(first, op.tensors, strict=True):
        names.setdefault(place, set()).add(tensor.name)
    readings: dict[int, Reading] = {}
    repeats = 0.0
    for place, tensors in names.items():
        own = [s for s in seen if s.read.tensor in tensors]
        size = max(1, prod(call.environment.shapes[call.op.spec.tensors[place].name]))
        readings[place] = Reading(
            aligned=all(map(_is_aligned, own)),
            straight=all(map(_is_straight, own)),
            summed=any(s.around for s in own),
            places=len(own),
            times=sum(_count(s, call.environment) for s in own) / size,
        )
        repeats = max(repeats, sum(_count(s, call.environment) for s in own if s.around) / size)
    reduces = any(isinstance(n, m.Reduce) for d in op.definitions for n in subexpressions(d.value))
    facts = Facts(
        readings={},
        reduces=reduces,
        heavy=repeats > AGAIN,
        moves=not reduces and not all(map(_is_straight, seen)),
        view=view_of(call) is not None,
        cost=sum(_cost(d.value) for d in op.definitions),
        otherwise=computed_otherwise(call),
    )
    return facts, readings


def computed_otherwise(call: Bound) -> bool:
    """Return whether a kernel for a call would use an algorithm of the op.

    The composed definition does not have the algorithm.
    """
    algorithms = call.op.spec.algorithms
    if not any(takes(a, call.variant.types, call.environment) for a in algorithms):
        return False
    source = OpVariant(call.op.module, call.op.spec, call.variant)
    request = Compilation(source, toolchain.host(), call.environment, algorithms=mode())
    return choose(request).algorithm is not None


def _reads(e: m.Expr, d: m.Definition, around: tuple[m.IndexRange, ...], chooses: bool = False) -> Iterator[_Seen]:
    if isinstance(e, m.Read):
        yield _Seen(e, d, around, chooses)
        for index in e.indices:
            yield from _reads(index, d, around, True)
        if e.outside is not None:
            yield from _reads(e.outside, d, around, chooses)
        return
    if isinstance(e, m.Reduce):
        around = (*around, *e.indices)
    for o in operands(e):
        yield from _reads(o, d, around, chooses)


def _is_aligned(s: _Seen) -> bool:
    """Return whether a read is of the element of the result, or of an intermediate, at its own place."""
    place = _at(s.definition.subscripts, s.definition.dims)
    plain = not s.around and not s.chooses and s.read.outside is None
    return plain and _at(s.read.indices, s.definition.dims) == place


def _at(subscripts: Sequence[m.Expr], dims: Sequence[m.Expr]) -> list[m.Expr]:
    """Return subscripts, with 0 along dimensions of size 1."""
    if len(subscripts) != len(dims):
        return list(subscripts)
    return [m.Number(0) if d == m.Number(1) else s for s, d in zip(subscripts, dims, strict=True)]


def _is_straight(s: _Seen) -> bool:
    plain = not s.chooses and s.read.outside is None
    return plain and all(isinstance(i, m.Index | m.Number) for i in s.read.indices)


def _count(s: _Seen, call: Environment) -> int:
    """Return the number of times that a read is executed."""
    try:
        return prod(evaluate_int(r.extent, call) for r in (*s.definition.indices, *s.around))
    except (KeyError, EvaluationError):
        raise CannotComposeError("the ranges of its loops depend on each other") from None


def _cost(e: m.Expr) -> int:
    """Return the number of operations for a value, without reductions."""
    match e:
        case m.Reduce() | m.Read():
            return 0
        case m.Apply():
            own = 1 if e.function in SIMPLE else ROOTS if e.function in ("sqrt", "rsqrt") else SERIES
            return own + _cost(e.argument)
        case m.Operation():
            own = POWER if e.op in ("pow", "atan2") else ROOTS if e.op in ("/", "//", "%", "rem") else 1
            return own + _cost(e.left) + _cost(e.right)
        case _:
            own = 1 if isinstance(e, m.Conditional | m.Negate | m.MultiplyAdd) else 0
            return own + sum(map(_cost, operands(e)))
