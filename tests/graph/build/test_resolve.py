"""From a model to a graph: shapes worked out, branches taken, problems told at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opgen.diagnostics.calls import ArgumentTypeError, ArgumentValueError
from opgen.dtypes import FLOAT32, FLOAT64, INT64, DType
from opgen.graph.build.model import Branch, Call, Input, Model, Size
from opgen.graph.build.resolve import ModelError, resolve
from opgen.graph.ir.nodes import Data, Graph
from opgen.graph.ir.text import print_node
from opgen.graph.ir.verify import verify
from opgen.graph.kernels.interpret import interpret
from opgen.spec.call.environment import AttrStored
from opgen.spec.loading import load
from opgen.spec.model.model import Sizes
from tests.graph.random_graphs import MODULE, assert_same, campaign, random_inputs

SHAPES = load(Path(__file__).parents[1] / "shapes.op")


def call(op: str, inputs: str, outputs: str, **attributes: AttrStored) -> Call:
    """A call, its values' names separated by blanks, `-` for none."""
    return Call(outputs, SHAPES, op, names(inputs), names(outputs), attributes, f"model m, node '{outputs}' ({op})")


def names(text: str) -> tuple[str | None, ...]:
    return tuple(None if name == "-" else name for name in text.split())


def model(
    calls: list[Call | Branch],
    outputs: str,
    constants: dict[str, list[float]] | None = None,
    shape: tuple[Size, ...] | None = ("n", 3),
) -> Model:
    """A model of one input `x`."""
    data = {
        n: Data(np.array(v, np.float32 if isinstance(v[0], float) else np.int64)) for n, v in (constants or {}).items()
    }
    return Model("m", (Input("x", FLOAT32, shape),), data, tuple(calls), tuple(outputs.split()))


def lines(graph: Graph) -> list[str]:
    return [print_node(graph, node).split(" at ")[0] for node in verify(graph).nodes]


def kind(*shape: int, dtype: DType = FLOAT32) -> tuple[DType, tuple[int, ...]]:
    return dtype, shape


SIZES_OF_SHAPES = model(
    [
        call("Halve", "x", "h"),
        call("ShapeOf", "h", "s"),
        call("Times", "s two", "t"),
        call("Refill", "t one", "y"),
    ],
    "y",
    {"two": [2], "one": [1.0]},
)


def test_what_only_carries_shapes_is_no_node() -> None:
    graph = resolve(SIZES_OF_SHAPES, {"x": kind(4, 3)})
    assert lines(graph) == ["y: y: float32[8, 6] = Refill<T = float32>(one) {shape = [8, 6]}"]
    assert [c.value.name for c in graph.constants] == ["one"]
    other = resolve(SIZES_OF_SHAPES, {"x": kind(0, 3)})
    assert lines(other) == ["y: y: float32[0, 6] = Refill<T = float32>(one) {shape = [0, 6]}"]
    assert graph.nodes[0].op is other.nodes[0].op


def test_integers_that_are_a_result_become_constants_where_they_were_worked_out() -> None:
    more = model([*SIZES_OF_SHAPES.calls, call("Times", "t t", "u")], "y t u", {"two": [2], "one": [1.0]})
    graph = resolve(more, {"x": kind(4, 3)})
    assert graph.constant["t"].data.array.tolist() == [8, 6]
    assert lines(graph)[1:] == ["u: u: int64[2] = Times(t, t)"]


def test_sizes_that_depend_on_elements_are_refused() -> None:
    wrong = model([call("Rounded", "x", "s"), call("Refill", "s one", "y")], "y", {"one": [1.0]}, ("n",))
    with pytest.raises(ModelError) as caught:
        resolve(wrong, {"x": kind(2)})
    assert str(caught.value) == (
        "model m, node 'y' (Refill): Refill: argument 'shape': expected values that are known before the "
        "call runs, given a tensor that is computed"
    )
    fixed = resolve(wrong, {"x": kind(2)}, {"x": np.array([2, 5], np.float32)})
    assert lines(fixed) == ["y: y: float32[2, 5] = Refill<T = float32>(one) {shape = [2, 5]}"]
    assert [v.name for v in fixed.inputs] == ["x"]  # what follows from its elements is known, and it stays an input


def test_integers_that_no_op_gives_are_told_with_the_node_that_would() -> None:
    wrong = model([call("At", "three three", "s"), call("Refill", "s one", "y")], "y", {"three": [3], "one": [1.0]})
    with pytest.raises(ModelError) as caught:
        resolve(wrong, {"x": kind(2, 3)})
    assert str(caught.value) == (
        "model m, node 'y' (Refill): takes what cannot be computed: "
        "model m, node 's' (At): At: argument 'places': "
        "expected integers from 0 to 0 (dimension 0 of 'x' has 1), given 3"
    )


def test_integers_out_of_a_large_constant() -> None:
    """The interpreter would take its time over it; a kernel does not."""
    calls = [call("Times", "large two", "t"), call("At", "t places", "s"), call("Refill", "s one", "y")]
    data: dict[str, list[float]] = {"large": list(range(30000)), "two": [2], "places": [3, 2], "one": [1.0]}
    graph = resolve(model(calls, "y", data), {"x": kind(2, 3)})
    assert lines(graph) == ["y: y: float32[6, 4] = Refill<T = float32>(one) {shape = [6, 4]}"]


def branch(condition: str) -> Branch:
    """Twice the values where a condition holds; else, in a branch within the branch, or not, half of them."""
    twice = Model("then", (), {}, (call("Halve", "x", "d", factor=2.0),), ("d",), outer=("x",))
    half = Model("half", (), {"k": Data(np.ones(3, np.float32))}, (call("Scale", "x k k", "e"),), ("e",), outer=("x",))
    same = Model("same", (), {}, (), ("x",), outer=("x",))
    inner = Branch("inner", "yes", half, same, ("f",))
    other = Model("else", (), {}, (inner,), ("f",), outer=("x", "yes"))
    return Branch("b", condition, twice, other, ("y",), "model m, node 'b' (If)")


@pytest.mark.parametrize(
    ("two", "yes", "expected"),
    [
        (4, 1, ["d: d: float32[4, 3] = Halve<T = float32>(x) {factor = 2.0}"]),
        (5, 1, ["e: e: float32[4, 3] = Scale<T = float32>(x, k, k)"]),
        (5, 0, []),
    ],
)
def test_a_branch_is_the_side_that_it_takes(two: int, yes: int, expected: list[str]) -> None:
    calls = [call("ShapeOf", "x", "s"), call("Equal", "s two", "c"), branch("c")]
    chosen = model([*calls, call("Negate1", "v", "w")], "y w", {"two": [two], "yes": [yes], "v": [1.0]})
    graph = resolve(chosen, {"x": kind(4, 3)})
    assert lines(graph)[:-1] == expected
    assert graph.output_names == ("y", "w")


def test_a_branch_whose_condition_depends_on_elements_is_refused() -> None:
    calls = [call("Rounded", "v", "s"), call("Equal", "s s", "c"), branch("c"), call("Halve", "y", "z")]
    wrong = model(calls, "z", {"yes": [1]})
    wrong = Model("m", (*wrong.inputs, Input("v", FLOAT32, None)), wrong.constants, wrong.calls, wrong.outputs)
    with pytest.raises(ModelError) as caught:
        resolve(wrong, {"x": kind(4, 3), "v": kind(2)})
    assert str(caught.value) == ("model m, node 'b' (If): its condition 'c' is known only when the model runs")


def test_all_problems_are_told_and_what_follows_from_them_is_not() -> None:
    wrong = model(
        [
            call("Scale", "x k k", "a"),
            call("Halve", "a", "b"),
            call("Times", "x x", "c"),
            call("Hlave", "x", "d"),
            call("Halve", "x", "e", factor="much"),
            call("Scale", "x k -", "f"),
            call("Halve", "x", "g h"),
        ],
        "b c",
        {"k": [1.0, 2.0]},
    )
    with pytest.raises(ModelError) as caught:
        resolve(wrong, {"x": kind(4, 3)})
    assert [p.node for p in caught.value.problems] == ["a", "c", "d", "e", "f", "g h"]
    assert (
        str(caught.value)
        == """\
model m, node 'a' (Scale): Scale: argument 'factor': expected dimension 0 to be 3 (b), given shape [2]
model m, node 'c' (Times): Times: argument 'x': expected a tensor of rank 1, given rank 2
model m, node 'd' (Hlave): Hlave: argument 'Hlave': expected an op of the module (did you mean 'Halve'?), given 'Hlave'
model m, node 'e' (Halve): Halve: argument 'factor': expected a number, given 'much'
model m, node 'f' (Scale): Scale: argument 'offset': expected a tensor, given nothing
model m, node 'g h' (Halve): Halve: argument 'Halve': expected at most 1 result, given 2"""
    )


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        ({}, ArgumentTypeError, "m: argument 'x': expected float32[n, 3, n, ?], given nothing"),
        (
            {"x": kind(2, 3, 2, 1, dtype=FLOAT64)},
            ArgumentTypeError,
            "m: argument 'x': expected float32[n, 3, n, ?], given float64[2, 3, 2, 1]",
        ),
        ({"x": kind(2, 3)}, ArgumentValueError, "m: argument 'x': expected float32[n, 3, n, ?], given shape [2, 3]"),
        (
            {"x": kind(2, 4, 2, 1)},
            ArgumentValueError,
            "m: argument 'x': expected float32[n, 3, n, ?], given shape [2, 4, 2, 1]",
        ),
        (
            {"x": kind(2, 3, 5, 1)},
            ArgumentValueError,
            "m: argument 'x': expected dimension 2 to be 2, the size of 'n' by dimension 0 of 'x', "
            "given shape [2, 3, 5, 1]",
        ),
        (
            {"x": kind(2, 3, 2, 1), "y": kind(1)},
            ArgumentTypeError,
            "m: argument 'y': expected no such input, given a tensor",
        ),
    ],
)
def test_inputs_that_do_not_fit(
    inputs: dict[str, tuple[DType, tuple[int, ...]]], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        resolve(model([], "x", shape=("n", 3, "n", None)), inputs)
    assert str(caught.value) == message


def as_model(graph: Graph) -> Model:
    """A graph as a model: sizes are constants, which are looked at when the graph is made again."""
    constants = {c.value.name: c.data for c in graph.constants}
    calls = []
    for node in graph.nodes:
        attributes = dict(node.attributes)
        tensors = iter(node.inputs)
        inputs: list[str | None] = []
        for entry in node.op.spec.inputs:
            if isinstance(entry, Sizes):
                inputs.append(f"{node.name} {entry.name}")
                constants[f"{node.name} {entry.name}"] = Data(np.array(attributes.pop(entry.name), INT64.name))
            else:
                inputs.append(next(tensors))
        calls.append(Call(node.name, MODULE, node.op.spec.name, tuple(inputs), node.outputs, attributes))
    declared = tuple(Input(v.name, v.dtype, None) for v in graph.inputs)
    return Model(graph.name, declared, constants, tuple(calls), graph.outputs)


@campaign(80)
def test_random_models_mean_the_same(graph: Graph) -> None:
    inputs = random_inputs(graph)
    again = verify(resolve(as_model(graph), {v.name: (v.dtype, v.shape) for v in graph.inputs}))
    assert_same(interpret(graph, inputs), interpret(again, inputs))
