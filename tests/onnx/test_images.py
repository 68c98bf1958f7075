"""Images of another size (`specs/onnx/resize.op`), and what detectors do with them, against ONNX's own reference."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import opgen

X = np.random.default_rng(5).standard_normal((1, 2, 5, 4)).astype(np.float32)
PLACES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric")
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
Sizes = Mapping[str, Sequence[float]]
SIZES: tuple[Sizes, ...] = (
    {"scales": [1, 1, 2, 2]},
    {"scales": [1, 1, 0.625, 1.5]},
    {"sizes": [1, 2, 7, 3]},
    {"sizes": [1, 2, 1, 1]},
)


def compared(places: str) -> Sequence[Sizes]:
    """The sizes for which the reference has what ONNX Runtime has, and this op: it divides by sizes that are not
    rounded where corners are aligned, and has one place at -0.5.
    """
    return {"align_corners": (SIZES[0], *SIZES[2:]), "pytorch_half_pixel": SIZES[:3]}.get(places, SIZES)


@pytest.fixture(scope="module")
def ops() -> ModuleType:
    return opgen.load(Path(__file__).parents[2] / "specs/onnx/resize.op")


def reference(
    x: np.ndarray,
    version: int,
    scales: Sequence[float] | None,
    sizes: Sequence[float] | None,
    roi: np.ndarray | None = None,
    /,
    **attributes: str,
) -> np.ndarray:
    """The result of ONNX's reference."""
    part = "" if roi is None else "roi"
    names = ["X", *([part] if version > 10 else []), "" if scales is None else "scales", *(["sizes"] if sizes else [])]
    node = helper.make_node("Resize", names, ["Y"], **attributes)
    inputs = [helper.make_tensor_value_info("X", TensorProto.FLOAT, x.shape)]
    feeds = {"X": x}
    if roi is not None:
        inputs.append(helper.make_tensor_value_info("roi", TensorProto.FLOAT, roi.shape))
        feeds["roi"] = roi
    if scales is not None:
        inputs.append(helper.make_tensor_value_info("scales", TensorProto.FLOAT, [len(scales)]))
        feeds["scales"] = np.array(scales, np.float32)
    if sizes is not None:
        inputs.append(helper.make_tensor_value_info("sizes", TensorProto.INT64, [len(sizes)]))
        feeds["sizes"] = np.array(sizes, np.int64)
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("Y", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])
    (found,) = ReferenceEvaluator(model).run(None, feeds)
    assert isinstance(found, np.ndarray)
    return found


@pytest.mark.parametrize("places", PLACES)
def test_nearest(ops: ModuleType, places: str) -> None:
    for sizes, nearest in itertools.product(
        compared(places), ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    ):
        given = {"coordinate_transformation_mode": places, "nearest_mode": nearest}
        found = ops.resize(X, None, sizes.get("scales"), sizes.get("sizes"), **given)
        expected = reference(X, 19, sizes.get("scales"), sizes.get("sizes"), **given)
        np.testing.assert_array_equal(found, expected, f"{sizes} {nearest}")


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("places", PLACES)
def test_between_places(ops: ModuleType, mode: str, places: str) -> None:
    for sizes in compared(places):
        given = {"coordinate_transformation_mode": places, "mode": mode}
        found = ops.resize(X, None, sizes.get("scales"), sizes.get("sizes"), **given)
        expected = reference(X, 19, sizes.get("scales"), sizes.get("sizes"), **given)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5, err_msg=str(sizes))


@pytest.mark.parametrize(
    ("mode", "places", "policy", "asked", "part"),
    [
        ("cubic", "tf_crop_and_resize", "stretch", {"scales": [0.6, 1.5]}, (0.1, 0.0, 1.2, 0.9)),
        ("linear", "align_corners", "not_larger", {"sizes": [9, 9]}, None),
        ("nearest", "half_pixel_symmetric", "not_larger", {"sizes": [8, 2]}, None),
    ],
)
def test_where_onnx_runtime_differs(
    ops: ModuleType, mode: str, places: str, policy: str, asked: Sizes, part: tuple[float, ...] | None
) -> None:
    """Calls of which ONNX Runtime 1.32 has other results than the standard's `onnx/reference/ops/op_resize.py`."""
    x = np.random.default_rng(3).standard_normal((7, 6)).astype(np.float32)
    roi = None if part is None else np.array(part, np.float32)
    given = {"mode": mode, "coordinate_transformation_mode": places, "keep_aspect_ratio_policy": policy}
    given |= {"nearest_mode": "floor"} if mode == "nearest" else {}
    found = ops.resize(x, roi, asked.get("scales"), asked.get("sizes"), **given)
    expected = reference(x, 19, asked.get("scales"), asked.get("sizes"), roi, **given)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_a_part_that_ends_with_the_image_has_its_last_element(ops: ModuleType) -> None:
    """Places are exact: in float32, as in ONNX's reference, 7 * (1 - 0.4) + 7 * 0.4 lies beyond 7."""
    x = np.arange(8, dtype=np.float32)
    crop = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": -5.0, "mode": "linear"}
    found = ops.resize(x, np.array([0.4, 1.0], np.float32), None, [4], **crop)
    np.testing.assert_allclose(found, [2.8, 4.2, 5.6, 7.0], rtol=1e-6)


def test_the_places_of_a_known_scale_are_read_by_whole_steps(ops: ModuleType) -> None:
    x = np.arange(6, dtype=np.int32).reshape(1, 1, 2, 3)
    expected = x.repeat(2, 2).repeat(2, 3)
    given = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    np.testing.assert_array_equal(ops.resize(x, None, [1, 1, 2, 2], **given), expected)
    np.testing.assert_array_equal(ops.upsample(x, [1, 1, 2, 2]), expected)
    np.testing.assert_array_equal(ops.upsample_by_attributes(x, scales=[1, 1, 2, 2]), expected)
    np.testing.assert_array_equal(ops.resize_by_scales(x, [1, 1, 2, 2]), expected)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_an_element_without_weight_is_not_read(ops: ModuleType, mode: str) -> None:
    x = np.array([[1, 2, np.inf]], np.float32)
    given = {"coordinate_transformation_mode": "asymmetric", "mode": mode}
    np.testing.assert_array_equal(ops.resize(x, None, [1, 2], **given)[0, :3:2], [1, 2])


@pytest.mark.parametrize("asked", [{"scales": [2, 1]}, {"sizes": [4, 3]}])
def test_a_dimension_that_keeps_its_size_is_not_moved_by_half_a_place(
    ops: ModuleType, asked: dict[str, list[int]]
) -> None:
    """As ONNX Runtime has it: what is not resized has no coordinates to transform."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    places = {"coordinate_transformation_mode": "tf_half_pixel_for_nn"}
    nearest = ops.resize(x, **asked, nearest_mode="round_prefer_ceil", **places)
    np.testing.assert_array_equal(nearest, x[[0, 1, 1, 1]])
    linear = ops.resize(x, **asked, mode="linear", **places)
    np.testing.assert_array_equal(linear, [x[0] * 0.75 + x[1] * 0.25, x[0] * 0.25 + x[1] * 0.75, x[1], x[1]])


def test_axes(ops: ModuleType) -> None:
    expected = ops.resize(X, None, [1, 1, 2, 1])
    np.testing.assert_array_equal(ops.resize(X, None, [2], axes=[-2]), expected)
    np.testing.assert_array_equal(ops.resize(X, None, None, [10], axes=[2]), expected)


def test_scales_for_other_dimensions_are_refused(ops: ModuleType) -> None:
    with pytest.raises(ValueError, match="expected as many scales, or sizes, as dimensions that change"):
        ops.resize(X, None, [2, 2])
    with pytest.raises(ValueError, match="expected scales or sizes, not both"):
        ops.resize(X, None, [1, 1, 2, 2], [1, 2, 10, 8])


def test_channels_in_groups_that_a_sum_follows() -> None:
    """A composed channel, of a size that has a name of its own, is read at quotient and remainder."""
    rng = np.random.default_rng(6)
    x, w, b = (rng.standard_normal(s).astype(np.float32) for s in ((1, 3, 5, 6), (3, 4, 2, 2), (1, 4, 1, 1)))
    nodes = [
        helper.make_node("ConvTranspose", ["X", "W"], ["Y"], strides=[2, 2]),
        helper.make_node("Add", ["Y", "B"], ["Z"]),
        helper.make_node("Relu", ["Z"], ["R"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("R", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(w, "W"), numpy_helper.from_array(b, "B")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    (expected,) = ReferenceEvaluator(model).run(None, {"X": x})
    assert isinstance(expected, np.ndarray)
    np.testing.assert_allclose(opgen.compile(model)(x), expected, rtol=1e-5, atol=1e-6)
