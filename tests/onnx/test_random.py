"""Random numbers: those of Philox 4x32-10, distributed as operators say, the same for a seed whatever the threads.

Bounds are five standard deviations of what is measured, for seeds that are fixed.
"""

from __future__ import annotations

import numpy as np
import pytest

from generated import onnx_ops
from opgen.runtime.threads import get_num_threads, set_num_threads

COUNT = 100_000
SEEDS = [0.0, 1.0, 2.5, -7.0]


def _philox(number: int, key: tuple[int, int]) -> list[int]:
    """Ten rounds, as in the paper (Salmon, Moraes, Dror, Shaw 2011), in Python's integers."""
    mask = 2**32 - 1
    c = [number & mask, number >> 32, 0, 0]
    for r in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        k = [(key[0] + r * 0x9E3779B9) & mask, (key[1] + r * 0xBB67AE85) & mask]
        c = [(q >> 32) ^ c[1] ^ k[0], q & mask, (p >> 32) ^ c[3] ^ k[1], p & mask]
    return c


def test_the_generator_is_that_of_the_paper() -> None:
    """Its known answer for the key 0 and the counter 0 (Random123), and other places of other keys."""
    assert _philox(0, (0, 0)) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    for seed, key in ((0.0, (0, 0)), (3.0, (3, 0)), (2.5, (2, 2**31)), (-1.0, (2**32 - 1, 0))):
        words = np.array([_philox(e, key) for e in range(6)])
        wanted = ((words[:, 0] >> 5) * 2.0**26 + (words[:, 1] >> 6)) / 2.0**53
        found = onnx_ops.random_uniform(shape=[2, 3], dtype="float64", seed=seed)
        np.testing.assert_array_equal(found.ravel(), wanted)


@pytest.mark.parametrize("seed", SEEDS)
def test_uniform_numbers(seed: float) -> None:
    x = onnx_ops.random_uniform(shape=[COUNT], dtype="float64", seed=seed)
    assert x.min() >= 0
    assert x.max() < 1
    assert abs(x.mean() - 1 / 2) < 5 * np.sqrt(1 / 12 / COUNT)
    assert abs(np.mean(x**2) - 1 / 3) < 5 * np.sqrt(4 / 45 / COUNT)
    assert abs(np.mean((x[1:] - 0.5) * (x[:-1] - 0.5))) < 5 / 12 / np.sqrt(COUNT)
    counts = np.bincount((64 * x).astype(int), minlength=64)
    assert np.sum((counts - COUNT / 64) ** 2) / (COUNT / 64) < 63 + 5 * np.sqrt(2 * 63)
    np.testing.assert_array_equal(x, onnx_ops.random_uniform(shape=[COUNT], dtype="float64", seed=seed))


@pytest.mark.parametrize("seed", SEEDS)
def test_normal_numbers(seed: float) -> None:
    x = onnx_ops.random_normal_like(np.zeros((COUNT // 10, 10)), seed=seed, mean=2.0, scale=3.0)
    z = (x.ravel() - 2) / 3
    for power, moment, square in ((1, 0, 1), (2, 1, 3), (3, 0, 15), (4, 3, 105)):
        assert abs(np.mean(z**power) - moment) < 5 * np.sqrt((square - moment**2) / COUNT), power


def test_seeds_are_different_numbers() -> None:
    drawn = [onnx_ops.random_uniform(shape=[100], seed=s).tobytes() for s in SEEDS]
    assert len(set(drawn)) == len(SEEDS)


def test_threads_make_no_difference() -> None:
    before = get_num_threads()
    try:
        found = []
        for count in (1, 2):
            set_num_threads(count)
            found.append(onnx_ops.random_normal(shape=[COUNT], seed=5.0))
    finally:
        set_num_threads(before)
    np.testing.assert_array_equal(found[0], found[1])


def test_draws() -> None:
    p = np.repeat([0.0, 0.25, 0.75, 1.0], COUNT // 4).reshape(4, -1)
    rate = onnx_ops.bernoulli(p, dtype="int32").mean(axis=1)
    assert np.all(np.abs(rate - p[:, 0]) <= 5 * np.sqrt(p[:, 0] * (1 - p[:, 0]) / p.shape[1]))
    chances = np.array([[0.1, 0.2, 0.0, 0.7], [0.5, 0.0, 0.0, 0.5]])
    with np.errstate(divide="ignore"):
        drawn = onnx_ops.multinomial(np.log(chances) + 3, sample_size=COUNT // 10)
    assert drawn.dtype == np.int32
    shares = np.stack([np.bincount(row, minlength=4) for row in drawn]) / drawn.shape[1]
    assert np.all(np.abs(shares - chances) <= 5 * np.sqrt(chances * (1 - chances) / drawn.shape[1]))


@pytest.mark.parametrize("ratio", [0.0, 0.25, 0.9])
def test_dropout_in_training(ratio: float) -> None:
    x = np.full((10, COUNT // 10), 3.0, np.float32)
    y, kept = onnx_ops.dropout(x, np.float32(ratio), True, seed=4, results=2)
    np.testing.assert_array_equal(y, np.where(kept, np.float32(3 / (1 - float(np.float32(ratio)))), np.float32(0)))
    assert abs(kept.mean() - (1 - ratio)) <= 5 * np.sqrt(ratio * (1 - ratio) / COUNT)
    np.testing.assert_array_equal(onnx_ops.dropout(x, np.float32(ratio), False), x)
    before = onnx_ops.dropout_by_test(x, ratio=ratio, seed=4, results=2)  # by versions 1 to 6 the mask is of numbers
    np.testing.assert_array_equal(before[0] != 0, before[1] == 1)
    np.testing.assert_array_equal(before[1], kept.astype(np.float32), strict=True)
    np.testing.assert_array_equal(onnx_ops.dropout_by_test(x, ratio=ratio, is_test=True), x)
