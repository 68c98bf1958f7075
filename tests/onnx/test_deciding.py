"""Inputs whose elements decide about shapes: which ones do is found by what depends on them, all others are data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

import opgen
from opgen.graph.compiled.staged import StagedModel
from opgen.graph.program.programs import VARIED

HEAD = '<ir_version: 8, opset_import: ["" : 18]>\n'

RESHAPED = """g (int64[n] ids, int64[r] shape) => (y) { a = Abs (ids) y = Reshape (a, shape) }"""

BOTH = """g (float[n] x, int64[r] shape) => (y, z) {
  y = Reshape (x, shape)
  part = Mul (shape, shape)
  z = Cast <to = 1> (part)
}"""

CHOICE = """g (float[n] x, bool c, int64[r] one, int64[q] other) => (y) {
  y = If (c) <then_branch = t () => (a) { a = Reshape (x, one) }, else_branch = e () => (b) { b = Reshape (x, other) }>
}"""

LENGTHS = """g (float[rows, k] x, int64[rows] lengths) => (y, mask) {
  most = ReduceMax <keepdims = 0> (lengths)
  zero = Constant <value_int = 0> ()
  one = Constant <value_int = 1> ()
  places = Range (zero, most, one)
  axes = Constant <value_ints = [1]> ()
  each = Unsqueeze (lengths, axes)
  mask = Less (places, each)
  y = ReduceSum (x, axes)
}"""


def models(text: str) -> tuple[StagedModel, ReferenceEvaluator]:
    """The model, and the reference."""
    parsed = parser.parse_model(HEAD + text)
    return opgen.compile(parsed), ReferenceEvaluator(parsed)


def compare(model: StagedModel, reference: ReferenceEvaluator, given: dict[str, Any]) -> None:
    """Runs both."""
    for found, wanted in zip(model.run(given).values(), reference.run(None, given), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6, strict=True)


def floats(*shape: int) -> Any:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def test_integers_that_reach_no_shape_are_data() -> None:
    model, reference = models(RESHAPED)
    for number in range(5):
        compare(model, reference, {"ids": np.arange(24) - number, "shape": np.int64([-1, 1])})
    assert len(model.programs) == 1
    assert not model.programs[0].runnable.weights
    compare(model, reference, {"ids": np.arange(24), "shape": np.int64([4, 6])})
    assert len(model.programs) == 2
    for number in range(3):
        compare(model, reference, {"ids": np.arange(100) - number, "shape": np.int64([2, 50])})
    assert len(model.programs) == 3


def test_integers_that_are_data_and_a_shape() -> None:
    model, reference = models(BOTH)
    for shape in ([3, 4], [4, 3], [-1, 2], [3, 4], [12]):
        compare(model, reference, {"x": floats(12), "shape": np.int64(shape)})
    assert len(model.programs) == 4
    assert all(p.runnable.nodes for p in model.programs)  # nothing is folded


def test_which_inputs_decide_may_depend_on_others() -> None:
    model, reference = models(CHOICE)
    x, row, column = floats(6), np.int64([1, 6]), np.int64([6, 1])
    for c, one, other in ((True, row, column), (True, row, row), (False, row, row), (False, column, row)):
        compare(model, reference, {"x": x, "c": np.array(c), "one": one, "other": other})
    assert len(model.programs) == 2
    compare(model, reference, {"x": x, "c": np.array(True), "one": column, "other": row})
    assert len(model.programs) == 3


def test_what_follows_from_changing_elements_is_computed_apart() -> None:
    model, reference = models(LENGTHS)
    choose = np.random.default_rng(3)
    for _ in range(30):
        lengths = choose.integers(1, 4, 5)
        lengths[choose.integers(5)] = choose.integers(3, 6)
        compare(model, reference, {"x": floats(5, 2), "lengths": lengths})
    assert model.parts
    assert len(model.programs) <= VARIED + 2 + 3  # apart: what comes before, and what follows for 3, 4 and 5


@pytest.mark.parametrize("text", [RESHAPED, BOTH])
def test_another_model_of_the_same_bytes_takes_its_programs_from_the_cache(
    text: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPGEN_CACHE_DIR", str(tmp_path))
    parsed = parser.parse_model(HEAD + text)
    first, second = (opgen.compile(parsed.SerializeToString()) for _ in range(2))
    names = [i.name for i in parsed.graph.input]
    rows = [(floats(12), np.int64([3, 4])), (floats(12), np.int64([2, 6]))]
    rows = [(x.astype(np.int64) if text == RESHAPED else x, shape) for x, shape in rows]
    for row in rows:
        first.run(dict(zip(names, row, strict=True)))

    def never(*_: object) -> None:
        raise AssertionError("the model is resolved")

    monkeypatch.setattr("opgen.graph.build.resolve.resolve", never)
    for row in rows:
        found = second.run(dict(zip(names, row, strict=True)))
        assert found["y"].shape == tuple(row[1])
