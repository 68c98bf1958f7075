"""`opgen.compile`: what it takes, what it gives, and what it costs to call."""

from __future__ import annotations

import timeit

import numpy as np
import pytest

import opgen
from opgen.diagnostics import UserError
from opgen.diagnostics.calls import ArgumentError
from opgen.dtypes import FLOAT32, INT32, INT64
from opgen.graph.build.model import Call, Input, Model
from opgen.graph.compiled.compiled import CompiledModel
from opgen.graph.ir.nodes import Data
from opgen.runtime.call.tensors import Array
from opgen.spec.loading import load_text
from tests.graph.random_graphs import MODULE
from tests.graph.steps import OPS
from tests.support.graphs import chain

ONES = [1, 1, 1, 1]


def tensor(*shape: int, dtype: str = "float32") -> Array:
    return np.random.default_rng(len(shape)).uniform(-1, 1, shape).astype(dtype)


def addition(shape: tuple[int | str | None, ...]) -> Model:
    """A model that adds a constant row to a matrix, twice."""
    calls = tuple(Call(f"n{k}", OPS, "Add", ("x" if k == 0 else "h0", "row"), (f"h{k}",), {}) for k in range(2))
    row = Data(np.arange(3, dtype=np.float32).reshape(1, 3))
    return Model("addition", (Input("x", FLOAT32, shape),), {"row": row}, calls, ("h1",))


@pytest.mark.parametrize("shape", [("n", 3), (2, 3), (None, None)])
def test_a_model_of_any_size(shape: tuple[int | str | None, ...]) -> None:
    model = opgen.compile(addition(shape))
    assert isinstance(model, CompiledModel)
    assert model.programs == ()
    for rows in (2, 5, 1) if shape != (2, 3) else (2,):
        x = tensor(rows, 3)
        expected = x + 2 * np.arange(3, dtype=np.float32)
        np.testing.assert_allclose(model(x), expected, rtol=1e-6)
        assert list(model.run({"x": x})) == ["h1"]
    with pytest.raises(ArgumentError, match=r"^addition: argument 'x': expected "):
        model(tensor(2, 3, 1))


def test_a_call_like_the_last_one_costs_microseconds() -> None:
    """Ten tiny nodes: at most 5 us, by the best of many runs."""
    model = opgen.compile(chain(10))
    x, y = tensor(5, 7), tensor(1, 7)
    model(x, y)
    best = min(timeit.repeat(lambda: model(x, y), number=200, repeat=50)) / 200
    assert best < 5e-6, f"{best * 1e6:.2f} us"


def test_tensors_of_another_library() -> None:
    """One that lends its memory by DLPack."""

    class Lent:
        def __init__(self, array: Array) -> None:
            self.array = array

        def __dlpack__(self, **options: object) -> object:
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.array.__dlpack_device__()

    model = opgen.compile(chain(2))
    x, y = tensor(5, 7), tensor(1, 7)
    for _ in range(3):
        np.testing.assert_array_equal(model(Lent(x), Lent(y)), model(x, y))


def filling() -> Model:
    """A model with an input whose values are the sizes of its result."""
    inputs = (Input("n", INT32, (1,)), Input("shape", INT64, (2,)))
    return Model("filling", inputs, {}, (Call("fill", MODULE, "Refill", ("shape", "n"), ("y",), {}),), ("y",))


def test_an_input_whose_values_are_sizes() -> None:
    model = opgen.compile(filling())
    for rows, columns in ((2, 3), (2, 3), (4, 1), (2, 3), (0, 2)):
        found = model(np.array([rows], np.int32), np.array([rows, columns], np.int64))
        np.testing.assert_array_equal(found, np.full((rows, columns), rows, np.int32))
    assert len(model.programs) == 3
    with pytest.raises(UserError, match="shape"):
        model(np.array([1], np.int32), np.array([-1, 2], np.int64))


TAKING = load_text(
    '''
op Pick {
  """Elements by their places."""
  input x: float32[n] """Elements."""
  input at: int64[m] """Their places."""
  output y: float32[m] """Those elements."""
  y[i] = x[at[i]]
}
''',
    "taking.op",
)


def test_an_element_that_is_no_subscript_is_told_by_its_node() -> None:
    calls = (
        Call("first", TAKING, "Pick", ("x", "at"), ("h",), {}),
        Call("second", TAKING, "Pick", ("h", "next"), ("y",), {}),
    )
    inputs = (Input("x", FLOAT32, ("n",)), Input("at", INT64, ("m",)), Input("next", INT64, ("k",)))
    model = opgen.compile(Model("picking", inputs, {}, calls, ("y",)))
    x = np.arange(5, dtype=np.float32)
    at, bad = np.array([4, 0, 2], np.int64), np.array([0, 7, 1], np.int64)
    for _ in range(3):
        np.testing.assert_array_equal(model(x, at, np.array([2, 1], np.int64)), [2, 0])
        for given, node in (((x, bad, at[1:2]), "first"), ((x, at, bad[:2]), "second")):
            with pytest.raises(ArgumentError, match=rf"^picking: node '{node}' \(Pick\): argument 'at': .* given 7$"):
                model(*given)
