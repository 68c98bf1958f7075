"""Operators whose results are as many as elements say, against numpy; alone, and with what takes their results.

Values are drawn from OPGEN_TEST_SEED (0).
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import opgen
from generated import onnx_ops as ops
from opgen.diagnostics.calls import ArgumentError

onnx = pytest.importorskip("onnx")
SEED = int(os.environ.get("OPGEN_TEST_SEED", "0"))
Array = npt.NDArray[Any]


@pytest.fixture(autouse=True)
def _one_kernel_for_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else most of the time goes into kernels for single sizes."""
    monkeypatch.setenv("OPGEN_SPECIALIZE", "never")


def drawn(*shape: int, least: int = -2, most: int = 3, dtype: str = "float32") -> Array:
    print(f"OPGEN_TEST_SEED={SEED}: {shape}")
    values: Array = np.random.default_rng([SEED, *shape]).integers(least, most, shape).astype(dtype)
    return values


@pytest.mark.parametrize(("dtype", "shapes"), [("float32", [(5,), (40,)]), ("bool", [(3, 4), (9, 30), (2, 0)])])
def test_places_of_what_is_not_0(dtype: str, shapes: list[tuple[int, ...]]) -> None:
    for shape in shapes:
        x = drawn(*shape, least=0, most=2, dtype=dtype)
        found = ops.non_zero(x)
        assert found.dtype == np.int64
        assert np.array_equal(found, np.array(np.nonzero(x)))
    if dtype == "bool":
        assert ops.non_zero(np.bool_(True)).shape == (0, 1)


@pytest.mark.parametrize("shape", [(3, 4)])
def test_slices_by_a_condition(shape: tuple[int, ...]) -> None:
    x = drawn(*shape)
    for axis in (None, -1, 0):
        size = x.size if axis is None else shape[axis]
        for length in (size, size - 1):
            c = drawn(length, least=0, most=2, dtype="bool")
            found = ops.compress(x, c, axis=[] if axis is None else [axis])
            assert np.array_equal(found, np.compress(c, x, axis))
    with pytest.raises(ArgumentError, match=r"argument 'condition': expected at most \d+ elements"):
        ops.compress(x, np.ones(x.size + 1, bool))


def unique(x: Array, axis: int | None, in_order: bool) -> list[Array]:
    """As numpy has it, and in the order in which they first appear."""
    y, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
    found = [y, first, inverse.reshape(-1), counts]
    if in_order:
        return found
    order = np.argsort(first)
    back = np.argsort(order)
    return [y.take(order, axis or 0), first[order], back[found[2]], counts[order]]


@pytest.mark.parametrize(("shape", "axis"), [((40,), None), ((7, 3), 0), ((2, 7, 2), 1)])
def test_each_once(shape: tuple[int, ...], axis: int | None) -> None:
    x = drawn(*shape, most=0 if len(shape) > 1 else 4)
    if len(shape) == 1:
        x[::3] = np.nan
    for in_order in (True, False):
        found = ops.unique(x, axis=[] if axis is None else [axis], sorted=in_order, results=4)
        for result, wanted in zip(found, unique(x, axis, in_order), strict=True):
            np.testing.assert_array_equal(result, wanted)


def kept(boxes: Array, scores: Array, most: int, shared: float, least: float, center: bool) -> list[list[int]]:
    """What is left, one box after the other."""
    if center:
        middle, half = boxes[..., :2], boxes[..., 2:] / 2
        low, high = middle - half, middle + half
    else:
        low, high = np.minimum(boxes[..., :2], boxes[..., 2:]), np.maximum(boxes[..., :2], boxes[..., 2:])
    found: list[list[int]] = []
    for b, c in np.ndindex(*scores.shape[:2]):
        taken: list[int] = []
        for k in np.argsort(-scores[b, c], kind="stable"):
            if len(taken) == most or scores[b, c, k] <= least:
                continue
            for j in taken:
                common = np.prod(np.maximum(np.minimum(high[b, k], high[b, j]) - np.maximum(low[b, k], low[b, j]), 0))
                union = np.prod(high[b, k] - low[b, k]) + np.prod(high[b, j] - low[b, j]) - common
                if union > 0 and common / union > shared:
                    break
            else:
                taken.append(int(k))
        found += [[b, c, k] for k in taken]
    return found


def test_boxes_that_do_not_overlap() -> None:
    for batch, classes, n, center in ((2, 3, 20, 0), (1, 2, 8, 1), (1, 2, 0, 0)):
        boxes = drawn(batch, n, 4, least=1, most=9)
        scores = drawn(batch, classes, n, least=0, most=12) / np.float32(8)
        for most, shared, least in ((3, 0.2, -1.0), (50, 0.1, 0.5)):
            found = ops.non_max_suppression(
                boxes, scores, [most], np.float32([shared]), np.float32([least]), center_point_box=center
            )
            assert found.tolist() == kept(boxes, scores, most, shared, least, bool(center))


@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_numbers_apart(dtype: str) -> None:
    kind = np.dtype(dtype).type
    for first, end, step in ((0, 10, 3), (5, -6, -2), (3, 3, 1), (4, 1, 1)):
        found = ops.arange(kind(first), kind(end), kind(step))
        assert found.dtype == dtype
        assert np.array_equal(found, np.arange(first, end, step, dtype))
    if dtype == "float32":
        assert np.allclose(ops.arange(kind(0), kind(1), kind(0.1)), np.arange(0, 1, 0.1), rtol=1e-6)


def test_what_takes_their_results() -> None:
    """In a model: sizes that only a run tells, of which shapes and sums are made."""
    text = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[n, m] x) => (float[k] y, float s, int64[2, k] places, float[p] r) {
      places = NonZero (x)
      nil = Constant <value_float=0.0> ()
      empty = Equal (x, nil)
      held = Not (empty)
      all = Constant <value_ints=[-1]> ()
      flat = Reshape (held, all)
      found = Compress (x, flat)
      y = Exp (found)
      s = ReduceSum <keepdims=0> (found)
      shape = Shape (found)
      zero = Constant <value_ints=[0]> ()
      n = Squeeze (shape, zero)
      first = Constant <value_int=0> ()
      one = Constant <value_int=1> ()
      numbers = Range (first, n, one)
      r = Cast <to=1> (numbers)
    }"""
    model = opgen.compile(onnx.parser.parse_model(text))
    for shape in ((3, 4), (30, 40), (3, 4)):
        x = drawn(*shape, least=0, most=3)
        y, s, places, r = model(x)
        assert np.array_equal(places, np.array(np.nonzero(x)))
        np.testing.assert_allclose(y, np.exp(x[x != 0]), rtol=1e-6)
        np.testing.assert_allclose(s, x.sum(), rtol=1e-6)
        assert np.array_equal(r, np.arange(np.count_nonzero(x)))


GRAMS = {"ngram_counts": [0, 1], "ngram_indexes": [0, 1], "pool_int64s": [3, 3, 4], "weights": [1.0, 1.0]}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ngram_indexes": [0]}, "argument 'ngram_indexes': expected one for each sequence"),
        ({"weights": [1.0]}, "argument 'weights': expected one for each sequence"),
        ({"ngram_counts": [1, 0]}, "argument 'pool_int64s': expected whole sequences"),
        ({"ngram_counts": [0, 2]}, "argument 'pool_int64s': expected whole sequences"),
        ({"ngram_counts": [0, 9]}, "argument 'pool_int64s': expected whole sequences"),
    ],
)
def test_sequences_that_do_not_fit(given: dict[str, list[int]], message: str) -> None:
    lists = {name: np.array(value) for name, value in (GRAMS | given).items()}
    with pytest.raises(ArgumentError, match=message):
        count_grams(lists, skips=1)


def test_numbers_of_a_sequence_as_far_apart_as_may_be() -> None:
    lists = {name: np.array(value) for name, value in GRAMS.items()}
    assert count_grams(lists, skips=10**9).tolist() == [1, 1]


def count_grams(lists: dict[str, Any], skips: int) -> Any:
    return ops.tf_idf_vectorizer(
        np.array([3, 5, 4]),
        lists["ngram_indexes"],
        lists["pool_int64s"],
        lists["weights"].astype(np.float32),
        min_gram_length=1,
        max_gram_length=2,
        max_skip_count=skips,
        mode="TF",
        ngram_counts=lists["ngram_counts"].tolist(),
    )


def suppressed(boxes: Array, scores: Array, most: int, shared: float) -> list[int]:
    """The boxes of one class that are taken, the best first: those that overlap no taken one by more than a part."""
    area = (boxes[:, 2:] - boxes[:, :2]).prod(1)
    alive, taken = np.ones(len(boxes), bool), []
    for best in np.argsort(-scores, kind="stable"):
        if not alive[best] or len(taken) == most:
            continue
        taken.append(int(best))
        sides = np.minimum(boxes[:, 2:], boxes[best, 2:]) - np.maximum(boxes[:, :2], boxes[best, :2])
        common = np.maximum(sides, 0).prod(1)
        alive &= ~(common / (area + area[best] - common) > np.float32(shared))
    return taken


@pytest.mark.parametrize("most", [25_200])
def test_the_boxes_of_a_detector_are_held_once(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """25,200 boxes, of which pairs would take 600 MB: what a model may take at once here is 48 MiB."""
    monkeypatch.setenv("OPGEN_MODEL_MIB", "48")
    rng = np.random.default_rng(most)
    corner = rng.random((25_200, 2), np.float32)
    boxes = np.concatenate([corner, corner + rng.random((25_200, 2), np.float32) / 2], 1)
    scores = rng.permutation(25_200).astype(np.float32)
    text = f"""<ir_version: 8, opset_import: ["" : 11]>
    detector (float[1, 25200, 4] boxes, float[1, 1, 25200] scores) => (int64[n, 3] y)
      <int64[1] most = {{{most}}}, float[1] shared = {{0.4}}> {{
      y = NonMaxSuppression(boxes, scores, most, shared)
    }}"""
    found = opgen.compile(onnx.parser.parse_model(text))(boxes[None], scores[None, None])
    np.testing.assert_array_equal(found[:, 2], suppressed(boxes, scores, most, 0.4))
