"""Generic ops against numpy, over random ranks, attributes and numbers of tensors: the interpreter of the loop IR runs
the plain op of each call.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from opgen.spec import load
from opgen.spec.generic import Argument, instance
from opgen.spec.model.model import Module
from tests.harness import Call

MODULE = load(Path(__file__).parents[2] / "specs/generic.op")
SEEDS = range(12)


def run(
    name: str,
    arrays: Sequence[np.ndarray | None],
    attributes: dict[str, object] | None = None,
    outputs: int | None = None,
    statics: Sequence[int] = (),
) -> list[np.ndarray]:
    """The results of a call; arguments at the positions in `statics` are known integers."""
    arguments = [
        None if a is None else Argument(a.dtype.name, a.ndim, tuple(a.ravel().tolist()) if at in statics else None)
        for at, a in enumerate(arrays)
    ]
    made = instance(MODULE, name, arguments, attributes or {}, outputs)
    given = {tensor.name: arrays[at] for tensor, at in zip(made.op.tensors, made.inputs, strict=True)}
    module = Module("instance", (made.op,), made.functions)
    dtype = next(iter(made.types.values()))
    call = Call(module, made.op, {n: a.shape for n, a in given.items()}, made.attributes, dtype=dtype)
    found = call.run(given)
    return [found[o.name] for o in made.op.outputs]


def values(rng: random.Random, shape: Sequence[int]) -> np.ndarray:
    drawn = np.random.default_rng(rng.randrange(2**32)).standard_normal(tuple(shape))
    return drawn.astype(np.float32)


def sizes(rng: random.Random, rank: int, least: int = 1) -> list[int]:
    return [rng.randint(least, 4) for _ in range(rank)]


def close(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def stretched(rng: random.Random, dims: Sequence[int]) -> list[int]:
    """A shape that broadcasts to some dimensions: fewer of them, some of them 1."""
    kept = list(dims)[rng.randint(0, len(dims)) :]
    return [1 if rng.random() < 0.3 else d for d in kept]


@pytest.fixture(params=SEEDS)
def rng(request: pytest.FixtureRequest) -> random.Random:
    print(f"seed {request.param}")
    return random.Random(request.param)


def test_broadcasting(rng: random.Random) -> None:
    dims = sizes(rng, rng.randint(0, 4), least=0)
    a, b = values(rng, stretched(rng, dims)), values(rng, stretched(rng, dims))
    close(run("Add", [a, b])[0], a + b)


def test_products_of_matrices(rng: random.Random) -> None:
    batch, (m, k, n) = sizes(rng, rng.randint(0, 2)), sizes(rng, 3)
    left = values(rng, [k]) if rng.random() < 0.3 else values(rng, [*stretched(rng, batch), m, k])
    right = values(rng, [k]) if rng.random() < 0.3 else values(rng, [*stretched(rng, batch), k, n])
    close(run("MatMul", [left, right])[0], np.matmul(left, right))


def test_an_axis(rng: random.Random) -> None:
    x = values(rng, sizes(rng, rng.randint(1, 4)))
    axis = rng.randrange(-x.ndim, x.ndim)
    e = np.exp(x - x.max(axis, keepdims=True))
    close(run("Softmax", [x], {"axis": axis})[0], e / e.sum(axis, keepdims=True))


def test_axes_that_are_reduced(rng: random.Random) -> None:
    x = values(rng, sizes(rng, rng.randint(0, 4)))
    axes = rng.sample(range(x.ndim), rng.randint(0, x.ndim))
    given = np.array([a - x.ndim if rng.random() < 0.5 else a for a in axes], np.int64)
    keep, none = rng.random() < 0.5, rng.random() < 0.5
    over = tuple(axes) if axes else () if none else tuple(range(x.ndim))
    expected = x.mean(over, keepdims=keep) if over else x
    arrays = [x, given if axes or rng.random() < 0.5 else None]
    attributes: dict[str, object] = {"keepdims": int(keep), "noop_with_empty_axes": none}
    close(run("ReduceMean", arrays, attributes, statics=(1,))[0], np.asarray(expected))


def test_windows_of_any_rank(rng: random.Random) -> None:
    rank, groups = rng.randint(0, 2), rng.randint(1, 2)
    batch, inner, outer = rng.randint(1, 2), rng.randint(1, 2), rng.randint(1, 2)
    taps, strides, dilations = sizes(rng, rank)[:rank], sizes(rng, rank), sizes(rng, rank)
    taps = [min(t, 3) for t in taps]
    pads = [rng.randint(0, 2) for _ in range(2 * rank)]
    size = [(t - 1) * d + 1 + rng.randint(0, 3) for t, d in zip(taps, dilations, strict=True)]
    x, w = values(rng, [batch, groups * inner, *size]), values(rng, [groups * outer, inner, *taps])
    b = values(rng, [groups * outer]) if rng.random() < 0.5 else None
    attributes: dict[str, object] = {"group": groups}
    if rank:
        attributes |= {"strides": strides, "dilations": dilations, "pads": pads}
    found = run("Conv", [x, w, b], attributes)[0]
    close(found, windows(x, w, b, strides, dilations, pads, groups))


def windows(
    x: np.ndarray,
    w: np.ndarray,
    b: np.ndarray | None,
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    groups: int,
) -> np.ndarray:
    """Correlation, position by position."""
    rank = x.ndim - 2
    around = [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)]
    padded = np.pad(x, around)
    taps = w.shape[2:]
    spans = [(t - 1) * d + 1 for t, d in zip(taps, dilations, strict=True)]
    out = [(p - s) // step + 1 for p, s, step in zip(padded.shape[2:], spans, strides, strict=True)]
    result = np.zeros((x.shape[0], w.shape[0], *out), np.float32)
    inner, outer = w.shape[1], w.shape[0] // groups
    for position in np.ndindex(*out):
        cut = tuple(
            slice(p * step, p * step + span, d)
            for p, step, span, d in zip(position, strides, spans, dilations, strict=True)
        )
        for k in range(w.shape[0]):
            g = k // outer
            part = padded[(slice(None), slice(g * inner, (g + 1) * inner), *cut)]
            result[(slice(None), k, *position)] = (part * w[k]).sum(tuple(range(1, part.ndim)))
    return result if b is None else result + b.reshape(-1, *[1] * rank)


def test_any_number_of_tensors(rng: random.Random) -> None:
    dims = sizes(rng, rng.randint(1, 3))
    axis = rng.randrange(-len(dims), len(dims))
    parts = []
    for _ in range(rng.randint(1, 4)):
        dims[axis] = rng.randint(0, 3)
        parts.append(values(rng, dims))
    close(run("Concat", parts, {"axis": axis})[0], np.concatenate(parts, axis))


def test_any_number_of_results(rng: random.Random) -> None:
    dims = sizes(rng, rng.randint(1, 3))
    axis, count = rng.randrange(-len(dims), len(dims)), rng.randint(1, 3)
    lengths = [rng.randint(0, 3) for _ in range(count)]
    told = rng.random() < 0.5
    dims[axis] = sum(lengths) if told else count * rng.randint(1, 3)
    x = values(rng, dims)
    given = np.array(lengths, np.int64) if told else None
    found = run("Split", [x, given], {"axis": axis}, count, statics=(1,))
    expected = np.split(x, np.cumsum(lengths)[:-1] if told else count, axis)
    for one, other in zip(found, expected, strict=True):
        close(one, other)


def test_orders_of_dimensions(rng: random.Random) -> None:
    x = values(rng, sizes(rng, rng.randint(0, 4)))
    perm = rng.sample(range(x.ndim), x.ndim)
    close(run("Transpose", [x], {"perm": perm} if perm else {})[0], x.transpose(perm))
    close(run("Transpose", [x])[0], x.transpose())


def test_other_shapes(rng: random.Random) -> None:
    x = values(rng, sizes(rng, rng.randint(0, 3)))
    shape = [*x.shape[::-1], 1] if rng.random() < 0.5 else [x.size]
    if rng.random() < 0.5:
        shape[rng.randrange(len(shape))] = -1
    given = np.array(shape, np.int64)
    close(run("Reshape", [x, given], statics=(1,))[0], x.reshape(shape))


def test_operands_that_are_turned(rng: random.Random) -> None:
    m, k, n = sizes(rng, 3)
    turned = rng.random() < 0.5, rng.random() < 0.5
    a, b = values(rng, [m, k]), values(rng, [k, n])
    c = values(rng, rng.choice(([], [n], [1], [m, n], [m, 1], [1, n]))) if rng.random() < 0.7 else None
    given = [a.T.copy() if turned[0] else a, b.T.copy() if turned[1] else b, c]
    attributes: dict[str, object] = {"alpha": 0.5, "beta": 2.0, "transA": turned[0], "transB": int(turned[1])}
    expected = 0.5 * (a @ b) + (0 if c is None else 2 * c)
    close(run("Gemm", given, attributes)[0], expected)


def test_optional_inputs(rng: random.Random) -> None:
    x = values(rng, sizes(rng, rng.randint(0, 3)))
    low = np.float32(-0.5) if rng.random() < 0.5 else None
    high = np.float32(0.5) if rng.random() < 0.5 else None
    given = [x, *(None if v is None else np.asarray(v) for v in (low, high))]
    expected = x if low is None else np.maximum(x, low)
    close(run("Clip", given)[0], expected if high is None else np.minimum(expected, high))


def test_a_type_that_an_attribute_names() -> None:
    x = np.array([1.75, -2.5], np.float32)
    for name, dtype in (("int32", np.int32), ("double", np.float64), ("float", np.float32)):
        found = run("Cast", [x], {"to": name})[0]
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, x.astype(dtype))
