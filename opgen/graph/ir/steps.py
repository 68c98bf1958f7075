"""Approximate work of a call of an op, from its definitions alone."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from opgen.graph.ir.bound import Bound
from opgen.graph.ir.scratch import kept_while_making
from opgen.spec.call.environment import Environment, evaluate_int
from opgen.spec.call.whole import EvaluationError
from opgen.spec.model import model as m
from opgen.spec.model.walk import operands


@kept_while_making
def steps(made: Bound) -> int:
    """Return the approximate number of elements that a call of an op works on.

    It counts the elements of results and intermediates, times the terms of the reductions for each.  Loops whose ranges
    depend on other loops count once.
    """
    call = made.environment
    return sum(_times(d.indices, call) * (1 + _terms(d.value, call)) for d in made.op.spec.definitions)


def _terms(e: m.Expr, call: Environment) -> int:
    if not _reduces(e):
        return 0
    inner = sum(_terms(o, call) for o in operands(e))
    return _times(e.indices, call) * (1 + inner) if isinstance(e, m.Reduce) else inner


@lru_cache(maxsize=1 << 14)
def _reduces(e: m.Expr) -> bool:
    """Return whether an expression contains a reduction."""
    return isinstance(e, m.Reduce) or any(map(_reduces, operands(e)))


def _times(indices: Iterable[m.IndexRange], call: Environment) -> int:
    found = 1
    for index in indices:
        try:
            found *= max(0, evaluate_int(index.extent, call))
        except (KeyError, EvaluationError):  # it depends on another loop
            continue
    return found
