"""The independent reference against sums that are written out, so that it is not itself the thing to be believed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tools.reference import Call, Refused, channelwise, filter_gradient, forward, input_gradient, window


def by_hand(images: np.ndarray, weights: np.ndarray, call: Call, groups: int) -> np.ndarray:
    """One element after the other, NHWC."""
    rows, columns = call.windows(images.shape, weights.shape)
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
    sums = forward(images, weights, call)
    np.testing.assert_allclose(sums.values, by_hand(images, weights, call, groups), rtol=0, atol=1e-12)
    np.testing.assert_allclose(sums.magnitudes, by_hand(abs(images), abs(weights), call, groups), rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(9))
def test_gradients_are_the_slopes_of_the_result(seed: int) -> None:
    """The result is linear in each argument, so that its change is the slope, but for rounding."""
    rng = np.random.default_rng(seed)
    images, weights = rng.standard_normal((1, 4, 5, 4)), rng.standard_normal((2, 3, 2, 6))
    padding = ("SAME", "VALID", "EXPLICIT")[seed % 3]
    pads = (0, 0, 1, 2, 0, 3, 0, 0) if padding == "EXPLICIT" else ()
    call = Call([1, 1 + seed % 2, 2, 1], [1, 1, 1 + seed // 2 % 2, 1], padding, pads, "NHWC")
    gradient = rng.standard_normal(forward(images, weights, call).values.shape)
    for where, slopes in (
        (images, input_gradient(images.shape, weights, gradient, call).values),
        (weights, filter_gradient(images, weights.shape, gradient, call).values),
    ):
        for index in map(tuple, rng.integers(0, where.shape, (5, 4))):
            before = (forward(images, weights, call).values * gradient).sum()
            where[index] += 1
            after = (forward(images, weights, call).values * gradient).sum()
            where[index] -= 1
            assert after - before == pytest.approx(slopes[index], abs=1e-9)


def test_a_filter_for_each_channel_is_a_group_for_each_channel() -> None:
    rng = np.random.default_rng(0)
    images, weights = rng.standard_normal((1, 4, 4, 2)), rng.standard_normal((1, 1, 2, 3))
    call = Call([1, 1, 1, 1], [1, 1, 1, 1], "VALID", (), "NHWC")
    result = forward(images, weights.reshape(channelwise(weights.shape)), call).values
    for c, q in itertools.product(range(2), range(3)):
        np.testing.assert_array_equal(result[..., c * 3 + q], images[..., c] * weights[0, 0, c, q])


def test_data_formats_are_transpositions_of_each_other() -> None:
    rng = np.random.default_rng(0)
    images, weights = rng.standard_normal((2, 5, 6, 3)), rng.standard_normal((3, 3, 3, 4))
    last = forward(images, weights, Call([1, 2, 1, 1], [1, 1, 2, 1], "EXPLICIT", (0, 0, 1, 0, 2, 1, 0, 0), "NHWC"))
    call = Call([1, 1, 2, 1], [1, 1, 1, 2], "EXPLICIT", (0, 0, 0, 0, 1, 0, 2, 1), "NCHW")
    first = forward(images.transpose(0, 3, 1, 2), weights, call)
    np.testing.assert_array_equal(first.values.transpose(0, 2, 3, 1), last.values)


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
        forward(np.zeros((1, 4, 4, 1)), np.zeros((2, 2, 1, 1)), call)


def test_a_gradient_in_another_shape_is_refused() -> None:
    call = Call([1, 1, 1, 1], [1, 1, 1, 1], "SAME", (), "NHWC")
    with pytest.raises(Refused, match="the gradient has the shape of the result"):
        input_gradient((1, 4, 4, 1), np.zeros((2, 2, 1, 1)), np.zeros((1, 3, 4, 1)), call)
