"""Sizes for a listing: a modest call of an op that its own requirements accept, chosen from the spec alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from opgen.spec.call.arguments import AttrArgument
from opgen.spec.call.environment import Environment, evaluate_int
from opgen.spec.call.shapes import CallError, solve
from opgen.spec.call.whole import EvaluationError
from opgen.spec.model.model import Attr, Dimension, Module, OpSpec, Sizes, Symbol, Tensor
from opgen.spec.model.walk import subexpressions

LARGE, SMALL = 16, 3
"""The size of a dimension that the first input or the result has, and of any other (a window, say)."""


def modest_call(module: Module, op: OpSpec) -> Environment | None:
    """Return a complete call: attributes have their defaults, or the first word or the least number that is allowed.

    None if no guess at the sizes meets the op's requirements.
    """
    attrs = {a.name: v for a in op.attrs if a.carried_by is None and (v := _value(a)) is not None}
    for large, small in ((LARGE, SMALL), (LARGE, LARGE), (LARGE, 1), (2 * LARGE, 1)):
        guess = _sizes(op, large, small)
        shapes = {t.name: _shape(op, t.dims, t.layout, guess) for t in op.tensors}
        vectors = {v.name: _shape(op, v.forms[0], v.layouts[0], guess) for v in op.inputs if isinstance(v, Sizes)}
        try:
            loose = _loose(op)
            if loose is not op:
                call = solve(loose, module, shapes, vectors, attrs)
                shapes |= {t.name: _following(op, t, call) for t in op.tensors if t.follows and not _is_named(t)}
            return solve(op, module, shapes, vectors, attrs)
        except (CallError, EvaluationError):
            continue
    return None


def _is_named(tensor: Tensor) -> bool:
    """Return True if all sizes of a tensor are products of symbols."""
    return all(d.factors for d in tensor.dims)


def _loose(op: OpSpec) -> OpSpec:
    """Return an op whose inputs take any size that the original op derives from other sizes by an expression."""

    def free(t: Tensor) -> Tensor:
        names = (f"{t.name}.{axis}" for axis in range(t.rank))
        dims = (
            d if d.factors else replace(d, size=Symbol(n), factors=(n,)) for d, n in zip(t.dims, names, strict=True)
        )
        return replace(t, dims=tuple(dims))

    if all(_is_named(t) for t in op.tensors if t.follows):
        return op
    return replace(op, inputs=tuple(free(i) if isinstance(i, Tensor) and i.follows else i for i in op.inputs))


def _following(op: OpSpec, tensor: Tensor, call: Environment) -> tuple[int, ...]:
    """Return the shape of an input that follows from the others, in the caller's order."""
    sizes = [evaluate_int(d.size, call) for d in tensor.dims]
    return _in_order(op, sizes, tensor.layout)


def _value(a: Attr) -> AttrArgument:
    """Return a value for an attribute that has no default."""
    if a.has_default or a.optional:
        return None
    if a.kind in ("enum", "layout"):
        return a.values[0]
    least = 1 if a.minimum is None else a.minimum
    value = False if a.kind == "bool" else least
    return [value] * prod(a.shape) if a.shape else value


def _sizes(op: OpSpec, large: int, small: int) -> dict[str, int]:
    """Return a size for every symbol of the inputs.  In a product with a factor that never occurs alone, the first is
    1.
    """
    dims = list(_dimensions(op))
    alone = {d.factors[0] for d in dims if len(d.factors) == 1}
    wide = {e.name for d in _wide(op) for e in subexpressions(d.size) if isinstance(e, Symbol)}
    sizes: dict[str, int] = {}
    for dim in dims:
        for position, f in enumerate(dim.factors):
            if isinstance(f, str) and f not in sizes:
                leading = len(dim.factors) > 1 and position == 0 and f not in alone
                sizes[f] = 1 if leading else large if f in wide else small
    return sizes


def _wide(op: OpSpec) -> Iterator[Dimension]:
    for t in (*op.tensors[:1], *op.outputs):
        yield from t.dims


def _dimensions(op: OpSpec) -> Iterator[Dimension]:
    for given in op.inputs:
        yield from given.dims if isinstance(given, Tensor) else given.forms[0]


def _shape(op: OpSpec, dims: Sequence[Dimension], layout: str | None, sizes: dict[str, int]) -> tuple[int, ...]:
    """Return a shape in the caller's order, for the layout that is the default."""
    return _in_order(op, [prod(sizes[f] if isinstance(f, str) else f for f in d.factors) for d in dims], layout)


def _in_order(op: OpSpec, logical: Sequence[int], layout: str | None) -> tuple[int, ...]:
    """Return logical sizes in the caller's order, for the layout that is the default."""
    if layout is None:
        return tuple(logical)
    attr = op.attr(layout)
    word = attr.default if isinstance(attr.default, str) else attr.values[0]
    return tuple(logical[attr.values[0].index(letter)] for letter in word)
