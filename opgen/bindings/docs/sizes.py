"""Sizes for a listing: a modest call of an op that its own requirements accept, chosen from the spec alone."""

from __future__ import annotations

from collections.abc import Iterator

from opgen.runtime.evaluate import Evaluator
from opgen.runtime.operator import Call, Value
from opgen.spec.model import Attr, Dimension, Module, OpSpec, Require, Symbol, Tensor
from opgen.spec.walk import subexpressions

LARGE, SMALL = 16, 3
"""The size of a dimension that the result shares, and of one that it does not (a window, say)."""


def modest_call(module: Module, op: OpSpec, types: dict[str, str]) -> Call | None:
    """A call without tensors: sizes, attributes and named integers; None if no guess meets the requirements.

    Words are the first of their lists, lists their defaults or the least that is allowed.
    """
    words = {a.name: _word(a) for a in op.attrs if a.kind in ("enum", "layout")}
    attributes = {a.name: _value(a) for a in op.attrs if a.kind not in ("enum", "layout")}
    for large, small in ((LARGE, SMALL), (LARGE, LARGE), (LARGE, 1), (2 * LARGE, 1)):
        sizes = _sizes(op, large, small)
        call = Call({}, types, words, attributes, sizes, ())
        if _complete(module, op, call, sizes):
            return call
    return None


def _word(a: Attr) -> str:
    return a.default if isinstance(a.default, str) else a.values[0]


def _value(a: Attr) -> Value:
    """A default, or the least that is allowed."""
    if a.has_default and a.default is not None and not isinstance(a.default, str):
        return a.default
    if a.optional:
        return ()
    least = 1 if a.minimum is None else a.minimum
    count = 1
    for n in a.shape:
        count *= n
    return (least,) * count if a.shape else least


def _sizes(op: OpSpec, large: int, small: int) -> dict[str, int]:
    """A size for every symbol of the inputs; where a product has a factor that never stands alone, the first is 1."""
    dims = list(_dimensions(op))
    alone = {d.factors[0] for d in dims if len(d.factors) == 1}
    shared = {e.name for t in op.outputs for d in t.dims for e in subexpressions(d.size) if isinstance(e, Symbol)}
    first = {f.name for t in op.tensors[:1] for d in t.dims for f in subexpressions(d.size) if isinstance(f, Symbol)}
    sizes: dict[str, int] = {}
    for dim in dims:
        for position, f in enumerate(dim.factors):
            if isinstance(f, str) and f not in sizes:
                leading = len(dim.factors) > 1 and position == 0 and f not in alone
                sizes[f] = 1 if leading else large if f in first or f in shared else small
    return sizes


def _dimensions(op: OpSpec) -> Iterator[Dimension]:
    for given in op.inputs:
        for form in (given.dims,) if isinstance(given, Tensor) else given.forms[:1]:
            yield from form


def _complete(module: Module, op: OpSpec, call: Call, sizes: dict[str, int]) -> bool:
    """Computes the named integers into `sizes`; whether every requirement holds."""
    evaluator = Evaluator.of(module, op, call)
    for check in op.checks:
        if isinstance(check, Require):
            if not evaluator.value(check.condition):
                return False
        else:
            sizes.update(zip(check.names, map(int, evaluator.results(check)), strict=True))
    return True
