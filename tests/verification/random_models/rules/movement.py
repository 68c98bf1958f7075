"""Operators that move elements."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import numpy_helper

from tests.verification.random_models.build import BINDINGS, Builder, UnusableError, Value
from tests.verification.random_models.rules import rule
from tests.verification.random_models.rules.pointwise import ALL, FLOATS, NUMBERS


@rule(2)
def transpose(b: Builder) -> None:
    x = b.value(ALL, lambda v: v.rank > 0)
    order = list(range(x.rank))
    b.choose.shuffle(order)
    given: dict[str, Any] = {"perm": order} if b.choose.random() < 0.8 else {}
    b.node("Transpose", [x], **given)


@rule(2)
def reshape(b: Builder) -> None:
    """Join neighbouring dimensions, or split one; one of the sizes may be told by the rest."""
    x = b.value(ALL)
    if x.rank < 2 or not x.fixed:
        b.node("Reshape", [x, b.numbers(-1)])
        return
    sizes = [d[0] for d in x.dims]
    at = b.choose.randrange(x.rank - 1)
    sizes[at : at + 2] = [sizes[at] * sizes[at + 1]]
    if b.choose.random() < 0.4 and sizes[at] % 2 == 0:
        sizes[at : at + 1] = [2, sizes[at] // 2]
    if b.choose.random() < 0.5 and 0 not in sizes:
        sizes[b.choose.randrange(len(sizes))] = -1
    b.node("Reshape", [x, b.numbers(*sizes)])


@rule(1)
def reshape_by_shape(b: Builder) -> None:
    """A shape that is computed from a shape, as exporters write it."""
    x = b.value(ALL, lambda v: v.rank >= 2)
    shape = b.node("Shape", [x])[0]
    first = b.node("Gather", [shape, b.constant(np.array([b.choose.randrange(x.rank)]), np.int64)], axis=0)[0]
    target = b.node("Concat", [first, b.numbers(-1)], axis=0)[0]
    b.node("Reshape", [x, target])


@rule(0.7)
def flatten(b: Builder) -> None:
    x = b.value(ALL)
    b.node("Flatten", [x], axis=b.choose.randrange(-x.rank, x.rank + 1))


@rule(1)
def unsqueeze(b: Builder) -> None:
    x = b.value(ALL, lambda v: v.rank < 5)
    b.node("Unsqueeze", [x, b.numbers(b.choose.randrange(-x.rank - 1, x.rank + 1))])


@rule(0.7)
def squeeze(b: Builder) -> None:
    x = b.value(ALL, lambda v: any(set(d) == {1} for d in v.dims))
    ones = [i for i, d in enumerate(x.dims) if set(d) == {1}]
    b.node("Squeeze", [x, b.numbers(b.choose.choice(ones))])


@rule(1)
def expand(b: Builder) -> None:
    x = b.value(ALL)
    sizes = [b.choose.choice((2, 3)) if set(d) == {1} else d[0] if len(set(d)) == 1 else 1 for d in x.dims]
    more = [b.choose.choice((1, 2))] if b.choose.random() < 0.3 and x.rank < 4 else []
    b.node("Expand", [x, b.numbers(*more, *sizes)])


@rule(1)
def tile(b: Builder) -> None:
    x = b.value(ALL)
    b.node("Tile", [x, b.numbers(*(b.choose.choice((1, 1, 2, 3)) for _ in x.dims))])


@rule(2)
def concat(b: Builder) -> None:
    x = b.value(ALL)
    axis = b.axis(x) % max(1, x.rank)

    def fits(v: Value) -> bool:
        return (
            v.dtype == x.dtype
            and v.rank == x.rank
            and all(d == e for i, (d, e) in enumerate(zip(v.dims, x.dims, strict=True)) if i != axis)
        )

    others = [x, *(v for v in b.values if fits(v))]
    parts = [x, *(b.choose.choice(others) for _ in range(b.choose.randrange(1, 4)))]
    b.node("Concat", parts, axis=axis - (x.rank if b.choose.random() < 0.3 else 0))


@rule(1)
def split(b: Builder) -> None:
    x = b.value(ALL)
    axis = b.axis(x)
    size = x.dims[axis]
    if len(set(size)) > 1:
        raise UnusableError("sizes of parts are constants")
    first = b.choose.randrange(0 if b.empty else 1, max(2, size[0]))
    b.node("Split", [x, b.numbers(first, size[0] - first)], 2, axis=axis)


@rule(2)
def slices(b: Builder) -> None:
    x = b.value(ALL)
    axes = b.choose.sample(range(x.rank), b.choose.randrange(1, x.rank + 1)) if x.rank else []
    if not axes:
        raise UnusableError("a scalar has no slices")
    steps = [b.choose.choice((1, 1, 1, 2, 3, -1, -2)) for _ in axes]
    starts = [b.choose.choice((0, 1, 2, -2, -1)) if s > 0 else b.choose.choice((-1, 3, 100)) for s in steps]
    ends = [
        b.choose.choice((2, 3, -1, 100, 2**31 - 1)) if s > 0 else b.choose.choice((-100, -(2**31), 0)) for s in steps
    ]
    b.node("Slice", [x, b.numbers(*starts), b.numbers(*ends), b.numbers(*axes), b.numbers(*steps)])


@rule(1.5)
def gather(b: Builder) -> None:
    x = b.value(ALL)
    axis = b.axis(x)
    least = min(x.dims[axis])
    if not least:
        raise UnusableError("nothing to gather")
    shape = tuple(b.choose.choice((1, 2, 3)) for _ in range(b.choose.randrange(3)))
    indices = np.array([b.choose.randrange(-least, least) for _ in range(int(np.prod(shape)))], np.int64).reshape(shape)
    b.node("Gather", [x, _indices(b, indices)], axis=axis)


@rule(0.8)
def gather_elements(b: Builder) -> None:
    x = b.value(ALL, lambda v: v.fixed and v.rank > 0 and v.arrays[0].size > 0)
    axis = b.axis(x)
    shape = [b.choose.randint(1, d[0]) for d in x.dims]
    shape[axis] = b.choose.choice((1, 2, 5))
    rng = np.random.default_rng(b.choose.getrandbits(32))
    least = x.dims[axis][0]
    b.node("GatherElements", [x, _indices(b, rng.integers(-least, least, shape))], axis=axis)


@rule(0.7)
def gather_nd(b: Builder) -> None:
    x = b.value(ALL, lambda v: v.fixed and v.rank > 0 and v.arrays[0].size > 0)
    depth = b.choose.randint(1, x.rank)
    rng = np.random.default_rng(b.choose.getrandbits(32))
    sizes = [d[0] for d in x.dims[:depth]]
    b.node("GatherND", [x, _indices(b, np.stack([rng.integers(-n, n, (3,)) for n in sizes], axis=-1))])


@rule(0.8)
def scatter_elements(b: Builder) -> None:
    """Without NaN among numbers that are compared: of a number and NaN libraries take either."""
    x = b.value(NUMBERS, lambda v: v.fixed and v.rank > 0 and v.arrays[0].size > 0)
    axis = b.axis(x)
    shape = [b.choose.randint(1, d[0]) for d in x.dims]
    rng = np.random.default_rng(b.choose.getrandbits(32))
    least = x.dims[axis][0]
    how = b.choose.choice(("none", "add", "max", "min", "mul"))
    if how == "none":  # each place once: which of two would win is not said
        others = [n for i, n in enumerate(shape) if i != axis % x.rank]
        order = rng.permuted(np.broadcast_to(np.arange(least), (*others, least)), axis=-1)
        indices = np.moveaxis(order[..., : shape[axis]], -1, axis)
    else:
        indices = rng.integers(-least, least, shape)
    updates = b.operand(x.dtype, tuple((n,) * BINDINGS for n in indices.shape))
    if how in ("max", "min") and any(np.isnan(a).any() for v in (x, updates) for a in v.arrays if a.dtype.kind == "f"):
        raise UnusableError("the larger of a number and NaN")
    b.node("ScatterElements", [x, _indices(b, indices), updates], axis=axis, reduction=how)


@rule(0.7)
def scatter_nd(b: Builder) -> None:
    x = b.value(NUMBERS, lambda v: v.fixed and v.rank > 0 and v.arrays[0].size > 0)
    rng = np.random.default_rng(b.choose.getrandbits(32))
    count = min(3, x.dims[0][0])
    how = b.choose.choice(("none", "add", "max", "min", "mul"))
    places = rng.permutation(x.dims[0][0])[:count] if how == "none" else rng.integers(0, x.dims[0][0], count)
    updates = b.operand(x.dtype, ((count,) * BINDINGS, *x.dims[1:]))
    b.node("ScatterND", [x, _indices(b, places[:, None]), updates], reduction=how)


@rule(1.5)
def pad(b: Builder) -> None:
    x = b.value((*FLOATS, np.int64, np.int32), lambda v: v.rank > 0)
    mode = b.choose.choice(("constant", "constant", "edge", "reflect", "wrap"))
    least = [min(d) for d in x.dims]
    if mode != "constant" and min(least) < 2:
        raise UnusableError("too small to be continued")
    amounts = (-1, 0, 0, 1, 2) if mode == "constant" else (0, 0, 1)
    chosen = [b.choose.choice(amounts) for _ in range(2 * x.rank)]
    fill = [b.constant(b.choose.choice((0, 2, -1)), x.dtype)] if mode == "constant" and b.choose.random() < 0.6 else []
    b.node("Pad", [x, b.numbers(*chosen), *fill], mode=mode)


@rule(0.5)
def depth_to_space(b: Builder) -> None:
    x = b.value(FLOATS, lambda v: v.rank == 4 and all(n % 4 == 0 for n in v.dims[1]), rank=4)
    b.node("DepthToSpace", [x], blocksize=2, mode=b.choose.choice(("DCR", "CRD")))


@rule(0.5)
def space_to_depth(b: Builder) -> None:
    x = b.value(FLOATS, lambda v: v.rank == 4 and all(n % 2 == 0 for d in v.dims[2:] for n in d), rank=4)
    b.node("SpaceToDepth", [x], blocksize=2)


@rule(0.5)
def triangle(b: Builder) -> None:
    x = b.value((*FLOATS, np.int64), lambda v: v.rank >= 2)
    b.node("Trilu", [x, b.constant(b.choose.choice((-1, 0, 1, 2)), np.int64)], upper=b.choose.randrange(2))


@rule(0.4)
def one_hot(b: Builder) -> None:
    x = b.value((np.int64, np.int32))
    values = b.constant([0.5, 2.0], np.float32)
    b.node(
        "OneHot",
        [x, b.constant(b.choose.choice((3, 6)), np.int64), values],
        axis=b.choose.randrange(-x.rank - 1, x.rank + 1),
    )


@rule(0.4)
def filled(b: Builder) -> None:
    """A constant as large as another value."""
    x = b.value(ALL, lambda v: v.rank > 0)
    shape = b.node("Shape", [x])[0]
    b.node(
        "ConstantOfShape", [shape], value=numpy_helper.from_array(np.array([b.choose.choice((0.0, 1.5))], np.float32))
    )


@rule(0.4)
def reversed_rows(b: Builder) -> None:
    x = b.value(NUMBERS, lambda v: v.rank >= 2 and v.fixed and v.arrays[0].size > 0)
    lengths = [b.choose.randint(1, x.dims[0][0]) for _ in range(x.dims[1][0])]
    b.node("ReverseSequence", [x, b.numbers(*lengths)], time_axis=0, batch_axis=1)


@rule(0.4)
def non_zero(b: Builder) -> None:
    """A size that values determine."""
    b.node("NonZero", [b.value((np.float32, np.int64, np.bool_), lambda v: v.rank > 0)])


@rule(0.4)
def compress(b: Builder) -> None:
    x = b.value(NUMBERS, lambda v: v.rank > 0)
    axis = b.axis(x)
    size = min(x.dims[axis])
    b.node("Compress", [x, b.constant([b.choose.random() < 0.6 for _ in range(size)], np.bool_)], axis=axis)


def _indices(b: Builder, indices: object) -> Value:
    """Indices: a constant, or an input that is always this."""
    array = np.asarray(indices, np.int64)
    if b.choose.random() < 0.6:
        return b.constant(array)
    value = Value(f"x{len(b.inputs)}", (array,) * BINDINGS)
    b.inputs[value.name] = value
    return value
