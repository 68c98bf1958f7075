"""What reads images between their elements: against ONNX's reference and numpy.

Shapes and values are drawn from OPGEN_TEST_SEED (0).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from opgen.diagnostics import UserError

pytest.importorskip("onnx")
from tests.onnx.one_node import found_by, model_of

SEED = int(os.environ.get("OPGEN_TEST_SEED", "0"))
Array = npt.NDArray[Any]


def _like_the_reference(operator: str, given: Mapping[str, Array], opset: int, **attributes: object) -> None:
    from onnx.reference import ReferenceEvaluator

    print(f"OPGEN_TEST_SEED={SEED}: {operator} {attributes}")
    model = model_of(operator, given, opset, **attributes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (right,) = ReferenceEvaluator(model).run(None, {n: a for n, a in given.items() if a.size})
    np.testing.assert_allclose(found_by(model, given), right, rtol=1e-4, atol=1e-5)


ALIKE = [(m, p) for m in ("nearest", "linear", "cubic") for p in ("zeros", "border", "reflection")]
ALIKE.remove(("cubic", "border"))  # the reference moves the place to the border, not each element that is read


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize(("mode", "padding"), ALIKE)
def test_grid_sample(mode: str, padding: str, align: int) -> None:
    rng = np.random.default_rng([SEED, align, len(mode), len(padding)])
    x = rng.standard_normal((2, 2, 3, 5)).astype(np.float32)
    grid = rng.uniform(-2.5, 2.5, (2, 3, 4, 2)).astype(np.float32)
    _like_the_reference("GridSample", {"x": x, "grid": grid}, 20, mode=mode, padding_mode=padding, align_corners=align)


@pytest.mark.parametrize("size", [(3, 5), (1, 1), (2, 1)])
@pytest.mark.parametrize("align", [0, 1])
def test_each_element_of_a_cubic_window_is_at_the_border(align: int, size: tuple[int, int]) -> None:
    """As of an image that is padded by its border, in which all windows are inside (so PyTorch and ONNX Runtime)."""
    rng = np.random.default_rng([SEED, align, *size])
    x = rng.standard_normal((2, 2, *size)).astype(np.float32)
    places = rng.uniform(-4, 8, (2, 3, 4, 2))  # along the last dimension of the image first
    sizes, more = np.array(size[::-1]), 12

    def grid(at: Array, count: Array) -> Array:
        scaled = 2 * at / np.maximum(count - 1, 1) if align else (2 * at + 1) / count
        return (scaled - 1).astype(np.float32)

    if align and 1 in size:  # one element, in the middle of which all places are
        places = np.where(sizes == 1, 0, places)
    wide = np.pad(x, ((0, 0), (0, 0), (more, more), (more, more)), mode="edge")
    modes = {"mode": "cubic", "align_corners": align}
    given = {"x": wide, "grid": grid(places + more, sizes + 2 * more)}
    right = found_by(model_of("GridSample", given, 20, padding_mode="zeros", **modes), given)
    given = {"x": x, "grid": grid(places, sizes)}
    found = found_by(model_of("GridSample", given, 20, padding_mode="border", **modes), given)
    np.testing.assert_allclose(found, right, rtol=1e-3, atol=1e-4)


def test_a_cubic_window_far_outside_is_the_border() -> None:
    x = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)
    grid = np.array([[[[-1e30, -1e9], [1e30, 1e30], [5, -5]]]], np.float32)
    given = {"x": x, "grid": grid}
    found = found_by(model_of("GridSample", given, 20, mode="cubic", padding_mode="border"), given)
    np.testing.assert_allclose(found, [[[[0, 5, 2]]]], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dims", [1, 3])
def test_grid_sample_of_other_ranks(dims: int) -> None:
    rng = np.random.default_rng([SEED, dims])
    x = rng.standard_normal((1, 2, *range(2, 2 + dims))).astype(np.float32)
    grid = rng.uniform(-1.5, 1.5, (1, *[3] * dims, dims)).astype(np.float32)
    _like_the_reference("GridSample", {"x": x, "grid": grid}, 22, padding_mode="reflection")


def test_grid_sample_of_integers_and_wild_places() -> None:
    """Nearest elements of any type; a NaN reads element 0 where the image is padded by its border."""
    x = np.arange(6, dtype=np.int64).reshape(1, 1, 2, 3)
    grid = np.array([[[[-1, -1], [1, 1], [np.inf, 0.5], [1e30, -1e30]]]], np.float32)
    model = model_of("GridSample", {"x": x, "grid": grid}, 20, mode="nearest", align_corners=1)
    np.testing.assert_array_equal(found_by(model, {"x": x, "grid": grid}), [[[[0, 5, 0, 0]]]])
    with pytest.raises(UserError, match=r"GridSample.*floating-point elements, or the mode nearest"):
        found_by(model_of("GridSample", {"x": x, "grid": grid}, 20), {"x": x, "grid": grid})


@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("mode", ["avg", "max"])
def test_roi_align(mode: str, ratio: int) -> None:
    rng = np.random.default_rng([SEED, ratio])
    x = rng.standard_normal((2, 3, 6, 7)).astype(np.float32)
    rois = np.sort(rng.uniform(-3, 12, (5, 2, 2)), axis=1).reshape(5, 4).astype(np.float32)
    given = {"x": x, "rois": rois, "batch": np.array([0, 1, 1, 0, 1])}
    sizes = {"output_height": 2, "output_width": 3, "sampling_ratio": ratio, "spatial_scale": 0.7}
    for how in ("half_pixel", "output_half_pixel"):
        _like_the_reference("RoiAlign", given, 16, mode=mode, coordinate_transformation_mode=how, **sizes)


def test_max_roi_pool() -> None:
    rng = np.random.default_rng(SEED)
    x = rng.standard_normal((2, 2, 6, 8)).astype(np.float32)
    rois = np.array([[0, 0, 0, 7, 5], [1, 2, 1, 5, 5], [1, 6, 3, 20, 30], [0, 9, 9, 12, 12]], np.float32)
    found = found_by(model_of("MaxRoiPool", {"x": x, "rois": rois}, 7, pooled_shape=[2, 3]), {"x": x, "rois": rois})
    right = np.zeros((4, 2, 2, 3), np.float32)
    for n, (image, x1, y1, x2, y2) in enumerate(rois.astype(int)):
        high, wide = (y2 - y1 + 1) / 2, (x2 - x1 + 1) / 3
        for i, j in np.ndindex(2, 3):
            rows = slice(*np.clip([y1 + np.floor(i * high), y1 + np.ceil((i + 1) * high)], 0, 6).astype(int))
            columns = slice(*np.clip([x1 + np.floor(j * wide), x1 + np.ceil((j + 1) * wide)], 0, 8).astype(int))
            part = x[image, :, rows, columns].reshape(2, -1)
            right[n, :, i, j] = part.max(1) if part.size else 0
    np.testing.assert_array_equal(found, right)


def _resized(mode: str, **attributes: object) -> None:
    rng = np.random.default_rng([SEED, len(mode)])
    x = rng.standard_normal((1, 2, 7, 6)).astype(np.float32)
    axes = [3, 2] if "roi" in attributes else [2, 3]
    roi = np.array(attributes.pop("roi", []), np.float32)
    sizes = np.array(attributes.pop("sizes", []), np.int64)
    scales = np.array([] if sizes.size else [0.6, 1.5], np.float32)
    given = {"x": x, "roi": roi, "scales": scales, "sizes": sizes}
    while not list(given.values())[-1].size:
        given.popitem()
    _like_the_reference("Resize", given, 19, mode=mode, axes=axes, **attributes)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_resize_with_weights(mode: str) -> None:
    _resized(mode, antialias=1)
    _resized(mode, exclude_outside=1)
    _resized(mode, antialias=1, exclude_outside=1, coordinate_transformation_mode="align_corners", cubic_coeff_a=-0.5)
    _resized(mode, sizes=[3, 9], antialias=1, coordinate_transformation_mode="asymmetric")


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resize_a_part(mode: str) -> None:
    crop = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 7.0}
    _resized(mode, sizes=[4, 5], roi=[0.12, 0.4, 0.8, 1.3], **crop)
    _resized(mode, sizes=[1, 5], roi=[0.3, -0.2, 0.7, 0.8], **crop)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_resize_that_keeps_the_shape(policy: str) -> None:
    _resized("linear", sizes=[5, 10], keep_aspect_ratio_policy=policy)
    _resized("nearest", sizes=[14, 3], keep_aspect_ratio_policy=policy)


def test_deform_conv() -> None:
    """Groups, groups of moves, strides, dilations and padding, against sums of what lies between elements."""
    rng = np.random.default_rng(SEED)
    x, w = rng.standard_normal((2, 4, 5, 6)), rng.standard_normal((6, 2, 2, 3))
    strides, dilations, pads = (2, 1), (1, 2), (1, 0, 1, 2)
    high, wide = (5 + 2 - 1 - 1) // 2 + 1, (6 + 2 - 4 - 1) // 1 + 1
    offset = rng.uniform(-2, 2, (2, 2 * 2 * 3 * 2, high, wide))
    bias, mask = rng.standard_normal(6), rng.random((2, 2 * 2 * 3, high, wide))

    def at(image: Array, y: float, x: float) -> float:
        y0, x0, total = int(np.floor(y)), int(np.floor(x)), 0.0
        for i, j in np.ndindex(2, 2):
            if 0 <= y0 + i < image.shape[0] and 0 <= x0 + j < image.shape[1]:
                total += image[y0 + i, x0 + j] * (1 - abs(y - y0 - i)) * (1 - abs(x - x0 - j))
        return total

    right = np.zeros((2, 6, high, wide)) + bias[:, None, None]
    for n, k, i, j, c, r, s in np.ndindex(2, 6, high, wide, 2, 2, 3):
        channel = k // 3 * 2 + c
        tap = channel // 2 * 6 + r * 3 + s
        y = i * strides[0] - pads[0] + r * dilations[0] + offset[n, 2 * tap, i, j]
        z = j * strides[1] - pads[1] + s * dilations[1] + offset[n, 2 * tap + 1, i, j]
        right[n, k, i, j] += at(x[n, channel], y, z) * w[k, c, r, s] * mask[n, tap, i, j]
    given = {"x": x, "w": w, "offset": offset, "b": bias, "mask": mask}
    attributes = {"strides": strides, "dilations": dilations, "pads": pads, "group": 2, "offset_group": 2}
    np.testing.assert_allclose(found_by(model_of("DeformConv", given, 22, **attributes), given), right, rtol=1e-9)


def test_older_padding_and_marks() -> None:
    """Pad and Hardmax of the versions before 11 and 13: by attributes; over all that a row holds."""
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    padded = found_by(model_of("Pad", {"x": x}, 9, pads=[0, 0, 1, 0, 0, 2], value=3.5), {"x": x})
    np.testing.assert_array_equal(padded, np.pad(x, [(0, 0), (0, 0), (1, 2)], constant_values=3.5))
    padded = found_by(model_of("Pad", {"x": x}, 7, pads=[0, 1, 1, 0, 0, -1], mode="reflect"), {"x": x})
    np.testing.assert_array_equal(padded, np.pad(x, [(0, 0), (1, 0), (1, 0)], mode="reflect")[:, :, :-1])
    marks = found_by(model_of("Hardmax", {"x": x}, 11), {"x": x}).reshape(2, 12)
    np.testing.assert_array_equal(marks, np.eye(12)[[11, 11]])
