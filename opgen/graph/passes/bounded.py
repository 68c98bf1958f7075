"""Folding into constants with a bounded error.

A fold is undone if it would leave the range of the type.  For all values computed from constants alone:

  * each product and quotient is finite, and is 0 or subnormal only if an operand is 0;
  * each product of weights and a factor is between 2**-GROWTH and 2**GROWTH times the weight (GROWTH is 32 for
    float32, 256 for float64), so that no factor is 0.

Let `y = f * sum[k](x[k] * w[k]) + t` become `sum[k](x[k] * v[k]) + t`, where v[k] is f * w[k] rounded.  Let n be the
number of terms, c the number of operations that make v[k] and t, and u half a unit in the last place.  No operation
underflows, so v[k] is off by at most c * u * abs(v[k]).  Then y is off by at most

  (n + c) * u * (sum[k](abs(x[k] * v[k])) + the magnitudes of the addends of t)

Node by node the bound is the same with another c.  No intermediate value overflows or underflows unless it came within
a factor of 2**GROWTH of it before.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from weakref import ref as weakref

import numpy as np

from opgen.graph.fusion.elementwise import OutOfRangeError, value_of
from opgen.graph.ir.nodes import Array, Data, Graph, Node
from opgen.graph.passes.base import Pass, Report
from opgen.spec.model import model as m

GROWTH = {"float32": 32, "float64": 256}
"""Binary digits by which a fold may change the magnitude of a weight."""

Folding = Callable[[frozenset[str]], Pass]
"""Makes a pass that leaves the nodes of some names unchanged."""

_KEPT = 4096
_known: OrderedDict[tuple[object, ...], tuple[tuple[weakref[Data], ...], bool]] = OrderedDict()
"""Verdicts, valid while the constants are alive: a model whose sizes change folds the same weights each time."""


@dataclass(frozen=True)
class Bounded(Pass):
    """A pass that folds into constants only where the result stays within the bound."""

    fold: Folding = field(kw_only=True, repr=False)


def bounded(fold: Folding) -> Bounded:
    """Return the bounded pass of a folding one."""
    whole = fold(frozenset())

    def applied(graph: Graph, report: Report) -> Graph:
        return _apply(fold, whole.name, graph, report)

    return Bounded(whole.name, whole.contract, applied, whole.after, whole.then, whole.slow, fold=fold)


def _apply(fold: Folding, whole: str, graph: Graph, report: Report) -> Graph:
    without: frozenset[str] = frozenset()
    while True:
        each, own = fold(without), Report()
        made = each.apply(graph, own)
        outside = {node.name for node in graph.nodes if not _is_bounded(graph, made, node.name)}
        if not outside:
            report.notes += own.notes
            for name in sorted(without):
                report.note(
                    each.name.partition(",")[0], name, "stays: its constants would leave the range of their type"
                )
            return made
        without |= outside


def _is_bounded(graph: Graph, made: Graph, name: str) -> bool:
    """Return True if all values computed from constants for a node stay in range."""
    node = made.node.get(name)
    steps = [] if node is None else list(_made_of_constants(graph, made, node))
    if not steps:
        return True
    held = [made.constant[v].data for s in steps for v in s.inputs if v in made.constant]
    key = (*((s.op, s.attributes, s.inputs) for s in steps), *map(id, held))
    found = _known.get(key)
    if found is None or any(known() is not data for known, data in zip(found[0], held, strict=True)):
        found = _known[key] = tuple(map(weakref, held)), _in_range(made, steps)
        while len(_known) > _KEPT:
            _known.popitem(last=False)
    return found[1]


def _made_of_constants(graph: Graph, made: Graph, node: Node) -> Iterator[Node]:
    """Yield the new nodes whose results a node takes, each after the nodes that make its inputs."""
    for value in node.inputs:
        before = made.producer.get(value)
        if before is not None and not any(v in graph.value for v in before.outputs):
            yield from _made_of_constants(graph, made, before)
            yield before


def _in_range(made: Graph, steps: list[Node]) -> bool:
    values: dict[str, Array] = {name: c.data.array for name, c in made.constant.items()}
    roots: dict[str, Array] = {}
    for step in steps:
        definition = step.op.spec.definitions[-1]
        tensors = {t.name: values[v] for t, v in zip(step.op.spec.tensors, step.inputs, strict=True)}
        try:
            result = value_of(definition, tensors, dict(step.attributes))
        except OutOfRangeError:
            return False
        values[step.outputs[0]] = result
        weight = step.inputs[0]
        root = roots[step.outputs[0]] = roots.get(weight, values[weight])
        if not _is_moved(definition.value) and not _is_near(result, root):
            return False
    return True


def _is_moved(value: m.Expr) -> bool:
    """Return True for a sum: a term is added to a bias, which has no magnitude to keep."""
    return isinstance(value, m.Operation) and value.op in ("+", "-")


def _is_near(result: Array, root: Array) -> bool:
    """Return True if the elements of a folded weight are near those of the weight, in magnitude."""
    growth = GROWTH[result.dtype.name]
    with np.errstate(all="ignore"):
        new, old = np.abs(result), np.abs(root)
        return bool(((new <= np.ldexp(old, growth)) & (np.ldexp(new, growth) >= old)).all())
