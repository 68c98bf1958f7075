"""ONNX's scatters and gathers against numpy: ranks, types, empty sizes, indices that stand several times.

Calls are drawn from OPGEN_TEST_SEED (0).
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from opgen.diagnostics.calls import ArgumentValueError

Array = npt.NDArray[np.generic]
SEED = int(os.environ.get("OPGEN_TEST_SEED", "0"))
TYPES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
)
UFUNCS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
OPS = importlib.import_module("generated.onnx_ops")


def _sizes(rng: np.random.Generator, count: int) -> list[int]:
    return [int(n) for n in rng.choice([0, 1, 2, 3, 4], count, p=[0.06, 0.2, 0.24, 0.25, 0.25])]


def _values(rng: np.random.Generator, dtype: str, shape: tuple[int, ...] | list[int]) -> Array:
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype.startswith("float"):
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0 if dtype[0] == "u" else -4, 5, shape).astype(dtype)


def _update(reduction: str, data: Array, at: tuple[Array, ...], updates: Array) -> Array:
    """The updates one after the other; of halves in float32, rounded once."""
    wide = data.astype(np.float32) if data.dtype == np.float16 else data.copy()
    if reduction == "none":
        for place in np.ndindex(at[0].shape if at else ()):
            wide[tuple(i[place] for i in at)] = updates[place]
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            UFUNCS[reduction].at(wide, at, updates.astype(wide.dtype))
    return wide.astype(data.dtype)


def _drawn(*key: int | str) -> np.random.Generator:
    print(f"OPGEN_TEST_SEED={SEED}: {key}")
    return np.random.default_rng([SEED, *(k if isinstance(k, int) else sum(map(ord, k)) for k in key)])


def _reduction(rng: np.random.Generator, dtype: str) -> str:
    return "none" if dtype == "bool" else str(rng.choice(["none", *UFUNCS]))


@pytest.mark.parametrize(("rank", "dtype"), [(1 + k % 5, t) for k, t in enumerate(TYPES)])
def test_scatter_elements(rank: int, dtype: str) -> None:
    rng = _drawn(rank, dtype)
    shape, axis, reduction = _sizes(rng, rank), int(rng.integers(-rank, rank)), _reduction(rng, dtype)
    taken = [int(rng.integers(n + 1)) for n in shape]
    if shape[axis]:
        taken[axis] = int(rng.integers(7))
    data, updates = _values(rng, dtype, shape), _values(rng, dtype, taken)
    ids = rng.integers(-max(1, shape[axis]), max(1, shape[axis]), taken).astype(rng.choice([np.int32, np.int64]))
    at = list(np.indices(taken))
    at[axis] = np.where(ids < 0, ids + shape[axis], ids)
    found = OPS.scatter_elements(data, ids, updates, axis=axis, reduction=reduction)
    np.testing.assert_array_equal(found, _update(reduction, data, tuple(at), updates))


@pytest.mark.parametrize(("rank", "dtype"), [(1 + k % 5, t) for k, t in enumerate(TYPES)])
def test_scatter_nd(rank: int, dtype: str) -> None:
    """Of tuples of every length, none among them."""
    rng = _drawn("nd", rank, dtype)
    shape, reduction = _sizes(rng, rank), _reduction(rng, dtype)
    picked = int(rng.integers(rank + 1))
    outer = _sizes(rng, int(rng.integers(0, 3))) if all(shape[:picked]) else [0]
    data, updates = _values(rng, dtype, shape), _values(rng, dtype, [*outer, *shape[picked:]])
    ids = np.stack([rng.integers(-max(1, n), max(1, n), outer) for n in shape[:picked]], -1) if picked else None
    ids = np.zeros([*outer, 0], np.int64) if ids is None else ids
    at = tuple(np.where(ids[..., k] < 0, ids[..., k] + shape[k], ids[..., k]) for k in range(picked))
    if picked:
        right = _update(reduction, data, at, updates)
    else:  # every update is of the whole
        places = tuple(np.broadcast_to(i, updates.shape) for i in np.indices(shape)) if rank else ()
        right = _update(reduction, data, places, updates)
    found = OPS.scatter_nd(data, ids, updates, reduction=reduction)
    np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize(("rank", "dtype"), [(1 + k, t) for k, t in enumerate(TYPES[2::2])])
def test_gather_nd(rank: int, dtype: str) -> None:
    rng = _drawn("gather", rank, dtype)
    shape = [max(1, n) for n in _sizes(rng, rank)]
    batch = int(rng.integers(0, rank))
    picked = int(rng.integers(1, rank - batch + 1))
    places = [*shape[:batch], *_sizes(rng, int(rng.integers(0, 3)))]
    data = _values(rng, dtype, shape)
    ids = np.stack([rng.integers(-n, n, places) for n in shape[batch : batch + picked]], -1)
    around = [i.reshape(i.shape + (1,) * (len(places) - batch)) for i in np.indices(places[:batch])]
    right = data[(*around, *(ids[..., k] for k in range(picked)))]
    np.testing.assert_array_equal(OPS.gather_nd(data, ids, batch_dims=batch), right)


@pytest.mark.parametrize(("rank", "time"), [(2, 0), (2, 1), (3, 0), (5, 1)])
def test_reverse_sequence(rank: int, time: int) -> None:
    rng = _drawn("reverse", rank, time)
    shape = [3, 4, *_sizes(rng, rank - 2)]
    data = _values(rng, "float32", shape)
    lengths = rng.integers(0, shape[time] + 1, shape[1 - time])
    right = data.copy()
    for k, n in enumerate(lengths):
        row = right[k] if time == 1 else right[:, k]
        row[:n] = row[:n][::-1].copy()
    np.testing.assert_array_equal(OPS.reverse_sequence(data, lengths, time_axis=time, batch_axis=1 - time), right)


REFUSED: tuple[tuple[Callable[[], object], str], ...] = (
    (
        lambda: OPS.scatter_elements([[1.0, 2.0]], [[2]], [[3.0]], axis=1),
        r"'indices': expected integers from -2 to 1 \(dimension 1 of 'output' has 2\), given 2",
    ),
    (
        lambda: OPS.scatter_elements([[1.0, 2.0]], [[0], [0]], [[3.0], [3.0]], axis=1),
        "'indices': expected sizes no larger than those of 'data'",
    ),
    (
        lambda: OPS.scatter_elements(np.array([True]), [0], np.array([True]), reduction="add"),
        "'reduction': expected none, for elements of type bool",
    ),
    (
        lambda: OPS.scatter_nd([1.0, 2.0], [[0, 0]], [3.0]),
        "'data': expected a tensor of rank at least 2, given rank 1",
    ),
    (lambda: OPS.gather_nd([1.0, 2.0], 1), "'indices': expected a tensor of rank 1 at least, given rank 0"),
    (
        lambda: OPS.tensor_scatter(np.zeros((2, 3, 1)), np.ones((2, 2, 1)), [2, 0]),
        r"'write_indices': expected elements with which .* is from 0 to 2 .*, given elements with which it is 3",
    ),
    (
        lambda: OPS.max_unpool(np.ones((1, 1, 2)), [[[0, 9]]], kernel_shape=[2], strides=[2]),
        "'places': expected elements with which .* is from 0 to 0 .*, given elements with which it is 2",
    ),
)


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ArgumentValueError, match=message):
        call()
