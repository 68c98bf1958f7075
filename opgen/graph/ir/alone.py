"""Standalone ops: a gradient's op without a reference to the op that it differentiates.

A gradient takes tensors in the shapes of the other op's results.  Where such a size is computed (`n + m`), it gets a
name, so that the tensor is an input like any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from opgen.spec.model.model import Dimension, OpSpec, Reduce, ShapeLet, Sizes, Symbol, Tensor
from opgen.spec.model.walk import subexpressions


def alone(op: OpSpec) -> OpSpec:
    """Return the op without `gradient`, with one signature, and without examples and specializations."""
    named: list[ShapeLet] = []
    taken = set(_names(op))
    inputs: list[Tensor | Sizes] = []
    for entry in op.inputs:
        if isinstance(entry, Tensor) and entry.follows:
            dims = (_named(entry.name, axis, d, taken, named) for axis, d in enumerate(entry.dims))
            entry = replace(entry, dims=tuple(dims), follows=False)
        inputs.append(entry)
    checks = (*op.checks, *named)
    return replace(
        op, inputs=tuple(inputs), checks=checks, gradient=None, examples=(), specializations=(), signatures=()
    )


def _named(tensor: str, axis: int, dim: Dimension, taken: set[str], named: list[ShapeLet]) -> Dimension:
    """Return a dimension of an input: unchanged, or with a name for its size."""
    if dim.factors:
        return dim
    name = f"{tensor}_{axis}"
    while name in taken:
        name += "_"
    taken.add(name)
    named.append(ShapeLet((name,), dim.size))
    return replace(dim, size=Symbol(name), factors=(name,))


def _names(op: OpSpec) -> Iterator[str]:
    """Yield the names in an op that a size may not have."""
    for entry in (*op.inputs, *op.outputs):
        yield entry.name
        dims = entry.dims if isinstance(entry, Tensor) else (d for form in entry.forms for d in form)
        yield from (f for d in dims for f in d.factors if isinstance(f, str))
    for check in op.checks:
        yield from check.names if isinstance(check, ShapeLet) else ()
    for attr in op.attrs:
        yield attr.name
    for definition in op.definitions:
        yield definition.tensor
        yield from (r.name for r in definition.indices)
        for e in subexpressions(definition.value):
            yield from (r.name for r in e.indices) if isinstance(e, Reduce) else ()
