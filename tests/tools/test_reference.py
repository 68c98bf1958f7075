"""The independent reference against sums that are written out, so that it is not itself the thing to be believed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tools.reference import Call, Refused, channelwise, dense, window


def by_hand(images: np.ndarray, weights: np.ndarray, call: Call, groups: int) -> np.ndarray:
    """One element after the other, NHWC."""
    rows, columns = call.windows(images, weights)
    depth, outputs = weights.shape[2:]
    result = np.zeros((images.shape[0], rows.count, columns.count, outputs))
    for n, y, x, k in np.ndindex(*result.shape):
        first = (k // (outputs // groups)) * depth
        for r, s, c in itertools.product(range(weights.shape[0]), range(weights.shape[1]), range(depth)):
            i = y * rows.stride + r * rows.dilation - rows.before
            j = x * columns.stride + s * columns.dilation - columns.before
            if 0 <= i < images.shape[1] and 0 <= j < images.shape[2]:
                result[n, y, x, k] += images[n, i, j, first + c] * weights[r, s, c, k]
    return result


@pytest.mark.parametrize("seed", range(12))
def test_dense_sums(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = int(rng.integers(1, 3))
    images = rng.standard_normal((2, 6, 7, 2 * groups))
    weights = rng.standard_normal((2, 3, 2, 3 * groups))
    strides, dilations = ([1, int(rng.integers(1, 3)), int(rng.integers(1, 3)), 1] for _ in range(2))
    padding = ("SAME", "VALID", "EXPLICIT")[seed % 3]
    pads = (0, 0, 1, 2, 0, 3, 0, 0) if padding == "EXPLICIT" else ()
    call = Call(strides, dilations, padding, pads, "NHWC")
    values, magnitudes = dense(images, weights, call)
    np.testing.assert_allclose(values, by_hand(images, weights, call, groups), rtol=0, atol=1e-12)
    np.testing.assert_allclose(magnitudes, by_hand(abs(images), abs(weights), call, groups), rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_channelwise_sums_are_dense_sums_with_a_group_for_each_channel(seed: int) -> None:
    rng = np.random.default_rng(seed)
    images = rng.standard_normal((1, 5, 6, 3))
    weights = rng.standard_normal((3, 2, 3, 2))
    call = Call([1, 1 + seed % 2, 2, 1], [1, 1, 1 + seed % 3, 1], ("SAME", "VALID")[seed % 2], (), "NHWC")
    grouped, _ = dense(images, weights.reshape(3, 2, 1, 6), call)
    np.testing.assert_allclose(channelwise(images, weights, call)[0], grouped, rtol=0, atol=1e-12)


def test_data_formats_are_transpositions_of_each_other() -> None:
    rng = np.random.default_rng(0)
    images, weights = rng.standard_normal((2, 5, 6, 3)), rng.standard_normal((3, 3, 3, 4))
    last, _ = dense(images, weights, Call([1, 2, 1, 1], [1, 1, 2, 1], "EXPLICIT", (0, 0, 1, 0, 2, 1, 0, 0), "NHWC"))
    first, _ = dense(
        images.transpose(0, 3, 1, 2),
        weights,
        Call([1, 1, 2, 1], [1, 1, 1, 2], "EXPLICIT", (0, 0, 0, 0, 1, 0, 2, 1), "NCHW"),
    )
    np.testing.assert_array_equal(first.transpose(0, 2, 3, 1), last)


def test_same_puts_the_odd_place_last() -> None:
    assert window(5, 2, 1, 1, "SAME", (0, 0)).before == 0
    assert window(5, 4, 1, 1, "SAME", (0, 0)).before == 1
    assert window(6, 3, 2, 1, "SAME", (0, 0)).count == 3


@pytest.mark.parametrize(
    "call",
    [
        Call([2, 1, 1, 1], [1, 1, 1, 1], "VALID", (), "NHWC"),
        Call([1, 1, 1, 1], [1, 1, 1, 2], "VALID", (), "NHWC"),
        Call([1, 1, 1, 1], [1, 1, 1, 1], "EXPLICIT", (), "NHWC"),
        Call([1, 1, 1, 1], [1, 1, 1, 1], "VALID", (0,) * 8, "NHWC"),
        Call([1, 1, 1, 1], [1, 1, 1, 1], "EXPLICIT", (1, 0, 0, 0, 0, 0, 0, 0), "NHWC"),
        Call([1, 1, 1, 1], [1, 9, 1, 1], "VALID", (), "NHWC"),
    ],
)
def test_calls_without_a_meaning_are_refused(call: Call) -> None:
    with pytest.raises(Refused):
        dense(np.zeros((1, 4, 4, 1)), np.zeros((2, 2, 1, 1)), call)
