"""Functions that are compiled: what they take and give, when they are captured again, how they nest."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import opgen
from opgen.diagnostics.calls import ArgumentTypeError, ArgumentValueError
from opgen.graph.compiled import function as functions
from opgen.runtime.call.recording import CaptureError
from tests.graph.random_graphs import campaign, random_inputs, same_bits
from tests.support.graphs import replayed

OPS = opgen.load(Path(__file__).parents[1] / "ops.op")
X = np.arange(6, dtype=np.float32).reshape(2, 3)
Y = np.ones((1, 3), np.float32)


class Lender:
    """An array that is known by DLPack alone."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def test_called_as_the_function_itself_would_be() -> None:
    times: list[tuple[int, ...]] = []

    @opgen.compile
    def chain(x: Any, y: Any, count: int = 2) -> Any:
        """Adds and turns."""
        times.append(x.shape)
        for _ in range(count):
            x = OPS.add(x, y)
        return OPS.turn(x)

    assert (chain.__name__, chain.__doc__) == ("chain", "Adds and turns.")
    for _ in range(3):
        np.testing.assert_array_equal(chain(X, Y), (X + 2 * Y).T)
        np.testing.assert_array_equal(chain(y=Y, x=X), (X + 2 * Y).T)
        np.testing.assert_array_equal(chain(X, Y, 3), (X + 3 * Y).T)
    assert times == [(2, 3), (2, 3)]
    wide = np.ones((4, 5), np.float32)
    np.testing.assert_array_equal(chain(wide, wide), (3 * wide).T)
    np.testing.assert_array_equal(chain(X.astype(np.int32), Y.astype(np.int32)), (X + 2).T.astype(np.int32))
    np.testing.assert_array_equal(chain(X, Y), (X + 2 * Y).T)
    assert times[2:] == [(4, 5), (2, 3)]


def test_out_and_tensors_of_other_libraries() -> None:
    turn = opgen.compile(lambda x: OPS.turn(x))
    out = np.empty((3, 2), np.float32)
    assert turn(X, out=out) is out
    np.testing.assert_array_equal(out, X.T)
    np.testing.assert_array_equal(turn(Lender(X + 1)), X.T + 1)
    np.testing.assert_array_equal(turn(Lender(X + 2)), X.T + 2)
    np.testing.assert_array_equal(turn((X + 3).T.copy().T), X.T + 3)
    both = opgen.compile(lambda x: (OPS.turn(x), OPS.row_sum(x)))
    sums = np.empty(2, np.float32)
    assert both(X, out=(out, sums))[1] is sums
    np.testing.assert_array_equal(sums, X.sum(1))


def test_tensors_within_others_and_results_that_nest() -> None:
    @opgen.compile
    def model(weights: dict[str, Any], *rows: Any, **more: Any) -> Any:
        return {"sum": OPS.add(weights["a"], rows[0]), "all": [OPS.turn(weights["b"][1]), more["z"], 2.0]}

    for scale in (1, 2, 3):
        found = model({"a": X, "b": (0, scale * X)}, Y, Y, z=X)
        assert list(found) == ["sum", "all"]
        np.testing.assert_array_equal(found["sum"], X + Y)
        np.testing.assert_array_equal(found["all"][0], scale * X.T)
        np.testing.assert_array_equal(found["all"][1], X)
        assert found["all"][2] == 2.0
    assert model.model({"a": X, "b": (0, X)}, Y, Y, z=X).input_names == ("weights['a']", "weights['b'][1]", "rows[0]",
                                                                         "rows[1]", "more['z']")  # fmt: skip


def test_compiled_functions_and_models_in_others() -> None:
    inner = opgen.compile(lambda x, y: OPS.add(x, y))
    model = opgen.compile(inner.graph(X, Y))
    np.testing.assert_array_equal(model(X, Y), X + Y)

    @opgen.compile
    def outer(x: Any, y: Any) -> Any:
        return model(inner(model(x, y), y), Y)

    np.testing.assert_array_equal(outer(X, Y), X + 3)
    assert [n.op.spec.name for n in outer.graph(X, Y).nodes] == ["Add", "Add", "Add"]
    with pytest.raises(CaptureError, match="'out' cannot be given"):
        opgen.compile(lambda x: model(x, Y, out=X))(X)
    with pytest.raises(ArgumentValueError, match=r"argument 'y': expected float32\[1, 3\], given float32\[2, 3\]"):
        opgen.compile(lambda x: model(x, x))(X)


def test_methods() -> None:
    class Layer:
        def __init__(self, weights: Any) -> None:
            self.weights = weights

        @opgen.compile
        def run(self, x: Any) -> Any:
            return OPS.add(x, self.weights)

    one, two = Layer(X), Layer(2 * X)
    for _ in range(2):
        np.testing.assert_array_equal(one.run(X), 2 * X)
        np.testing.assert_array_equal(two.run(X), 3 * X)


def test_values_of_python_are_a_part_of_the_model_and_models_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "MODELS", 3)
    seen: list[object] = []

    @opgen.compile
    def scaled(x: Any, factor: Any) -> Any:
        seen.append(factor)
        return OPS.halve(x, factor=float(factor))

    for factor in (1, 1.0, True, 1, 1.0, True):
        np.testing.assert_array_equal(scaled(X, factor), X)
    assert [type(s) for s in seen] == [int, float, bool]
    np.testing.assert_array_equal(scaled(X, 2), 2 * X)  # the first is forgotten
    np.testing.assert_array_equal(scaled(X, 1), X)
    assert seen[3:] == [2, 1]


ALIKE = [0.0, -0.0, 0, False, float("nan"), 1, 1.0, True, np.float32(0), np.float64(0), np.int64(0), "0", None]
"""Values that Python compares otherwise than to the bit."""


@dataclass(frozen=True)
class Setting:
    """A value of a user's own class."""

    of: Any


class Pair(NamedTuple):
    """A tuple of a user's own class."""

    first: Any


@pytest.mark.parametrize("wrapped", [lambda v: v, lambda v: [v], lambda v: Pair(v), Setting, lambda v: {"of": (v,)}])
def test_values_of_python_are_told_apart_to_the_bit(wrapped: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "MODELS", 2 * len(ALIKE))
    seen: list[Any] = []

    @opgen.compile
    def same(x: Any, setting: Any) -> Any:
        seen.append(setting)
        return OPS.add(x, x)

    for _ in range(2):
        for value in ALIKE:
            same(X, wrapped(value))
    assert len(seen) == len(ALIKE)
    same(X, wrapped(-float("nan")))
    same(X, wrapped(float("nan")))
    assert len(seen) == len(ALIKE) + 1  # NaNs of other bits are others


def test_keys_of_dictionaries_are_told_apart() -> None:
    @opgen.compile
    def chosen(x: Any, by: Any) -> Any:
        return OPS.add(x, by[0.0]) if type(next(iter(by))) is float else OPS.turn(x)

    assert chosen(X, {0.0: Y}).shape == (2, 3)
    assert chosen(X, {0: Y}).shape == (3, 2)
    assert chosen(X, {False: Y}).shape == (3, 2)


def test_zeros_of_either_sign_are_arguments_of_their_own() -> None:
    @opgen.compile
    def quotient(x: Any, by: Any) -> Any:
        return x / by

    for sign in (1.0, -1.0, 1.0):
        with np.errstate(divide="ignore"):
            np.testing.assert_array_equal(quotient(Y, 0.0 * sign), Y / np.float32(0.0 * sign))


def test_what_cannot_be_compiled_is_said() -> None:
    with pytest.raises(CaptureError, match=r"^<lambda> returns None, expected a tensor, or tensors"):
        opgen.compile(lambda x: None)(X)
    with pytest.raises(ArgumentTypeError, match=r"expected tensors, and values that can be told apart"):
        opgen.compile(lambda x, y: x)(X, {1, 2})
    with pytest.raises(ArgumentTypeError, match=r"argument 'x': expected a tensor of a type that ops have"):
        opgen.compile(lambda x: x)(X.astype(np.complex64))
    with pytest.raises(ArgumentTypeError, match=r"^Negate1: argument 'x': expected"):
        opgen.compile(lambda x: OPS.negate1(x))("text")
    by_shape = opgen.compile(lambda x: x if x.shape[0] == 2 else [x])
    by_shape(X)
    with pytest.raises(CaptureError, match="in another order or nesting"):
        by_shape(Y)
    with pytest.raises(TypeError, match="missing a required argument: 'y'"):
        opgen.compile(lambda x, y: x)(X)


def test_many_threads() -> None:
    chain = opgen.compile(lambda x, y: OPS.add(OPS.turn(OPS.turn(x)), y))
    wrong: list[int] = []

    def work(number: int) -> None:
        x = np.full((number % 3 + 1, 4), number, np.float32)
        for _ in range(50):
            if not np.array_equal(chain(x, x), 2 * x):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@campaign(15)
def test_what_is_compiled_computes_what_the_calls_do(graph: Any) -> None:
    function = replayed(graph)
    compiled = opgen.compile(function)
    inputs = list(random_inputs(graph).values())
    found = compiled(*inputs)
    for one, other in zip(function(*inputs), found, strict=True):
        assert same_bits(np.asarray(one), other)


@pytest.mark.parametrize("literals", [("0.0", "-0.0"), ("-0.0", "0.0")])
def test_ops_that_differ_in_the_sign_of_a_zero_are_different(literals: tuple[str, str], tmp_path: Path) -> None:
    lines = (
        "op {} {{",
        '"""Scales."""',
        'input x: float32[n] """In."""',
        'output y: float32[n] """Out."""',
        "y[i] = x[i] * ({})",
        "}}\n",
    )
    text = "\n".join(lines)
    x = np.array([1, 2], np.float32)
    for number, literal in enumerate(literals):
        spec = tmp_path / f"scaled_{number}.op"
        spec.write_text(text.format("Fade", literal) + text.format("Twice", "2"))
        ops = opgen.load(spec)
        for function in (ops.fade, lambda v, ops=ops: ops.twice(ops.fade(v))):
            assert same_bits(opgen.compile(function)(x), x * np.float32(literal))
