"""Random calls of an op, right and wrong, and what the generated check and the solver say of them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from opgen.diagnostics.calls import ArgumentError
from opgen.spec.call.arguments import CallError
from opgen.spec.call.shapes import solve
from opgen.spec.model.model import Attr, Dimension, OpSpec, Sizes
from tests.bindings.modules import spec


def _value(rng: random.Random, op: OpSpec, attr: Attr) -> Any:
    """A value for an attribute: mostly legal, sometimes wrong in one way."""
    if rng.random() < 0.04:
        return rng.choice([None, "wrong", 0, [0], [1, 1, 1], -1, "same", [1.0, 1, 1, 1], [2**31, 1, 1, 1], True, {}])
    if attr.kind in ("enum", "layout"):
        if attr.payload is not None and rng.random() < 0.3:
            rows, width = op.attr(attr.payload[1]).shape
            return [[rng.choice([0, 0, 0, 1, 2]) for _ in range(width)] for _ in range(rows)]
        return rng.choice(attr.values)
    if attr.kind == "bool":
        return rng.random() < 0.5
    if attr.kind == "float":
        return rng.choice([0.0, 0.5, -1.0, 3])
    if not attr.shape:
        return rng.randrange(-2, 3)
    count = int(np.prod(attr.shape))
    if attr.optional and rng.random() < 0.6:
        return []
    low = attr.minimum or 0
    return [low if rng.random() < 0.7 else low + rng.randrange(3) for _ in range(count)]


def _shape(rng: random.Random, dimensions: tuple[Dimension, ...], symbols: dict[str, int]) -> tuple[int, ...]:
    """The shape that the symbols give a tensor, sometimes with a size or the rank changed."""
    dims = [int(np.prod([symbols[f] if isinstance(f, str) else f for f in d.factors])) for d in dimensions]
    dims = [1 if d.broadcast and rng.random() < 0.3 else n for d, n in zip(dimensions, dims, strict=True)]
    if rng.random() < 0.15 and dims:
        dims[rng.randrange(len(dims))] = rng.randrange(5)
    if rng.random() < 0.05:
        dims = dims[1:] if rng.random() < 0.5 else [*dims, 1]
    return tuple(dims)


Shapes = dict[str, tuple[int, ...]]


def random_arguments(rng: random.Random, op: OpSpec) -> tuple[Shapes, Shapes, dict[str, Any]]:
    """Shapes of tensors, values of vectors of sizes, attributes."""
    lists = [t.dims for t in op.tensors] + [f for v in op.inputs if isinstance(v, Sizes) for f in v.forms]
    names = {f for dims in lists for d in dims for f in d.factors if isinstance(f, str)}
    symbols = {n: rng.choice([0, 1, 1, 2, 3, 4, 6]) for n in sorted(names)}
    shapes = {t.name: _shape(rng, t.dims, symbols) for t in op.tensors}
    vectors = {}
    for v in op.inputs:
        if isinstance(v, Sizes):
            vectors[v.name] = _shape(rng, rng.choice(v.forms), symbols)
    attrs = {a.name: _value(rng, op, a) for a in op.attrs if a.carried_by is None}
    keep = {n: v for n, v in attrs.items() if not op.attr(n).has_default or rng.random() < 0.6}
    layouts = [a for a in op.attrs if a.kind == "layout"]
    for t in op.tensors:
        word = keep.get(t.layout or "")
        order = next((a.values[0] for a in layouts if a.name == t.layout), "")
        if word in ("NCHW",) and len(shapes[t.name]) == len(order):
            shapes[t.name] = tuple(shapes[t.name][order.index(letter)] for letter in word)
    return shapes, vectors, keep


def by_check(module: Any, op: OpSpec, shapes: Shapes, vectors: Shapes, attrs: dict[str, Any]) -> str:
    given: dict[str, Any] = {n: np.broadcast_to(np.float32(0), s) for n, s in shapes.items()}
    given |= {n: list(v) for n, v in vectors.items()}
    given |= {n: attrs.get(n) for n in op.signature if n not in given}
    check = getattr(module, f"_check_{op.function_name}")
    order = check.__code__.co_varnames[: check.__code__.co_argcount]
    defaults = {a.name: None for a in op.attrs}
    try:
        call = check(*(given.get(n.rstrip("_"), defaults.get(n)) for n in order))
    except ArgumentError as error:
        return str(error)
    return str({r.name: r.shape for r in call.results})


def by_solve(path: Any, op: OpSpec, shapes: Shapes, vectors: Shapes, attrs: dict[str, Any]) -> str:
    try:
        environment = solve(op, spec(path), shapes, vectors, attrs)
    except CallError as error:
        return str(error)
    return str(dict(environment.output_shapes))
