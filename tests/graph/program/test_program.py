"""A program computes what its graph's nodes do one by one, bit for bit, in an arena of any contents."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from opgen import algorithms
from opgen.compiler.algorithms import Mode
from opgen.diagnostics.calls import ArgumentError
from opgen.dtypes import FLOAT32
from opgen.graph.compiled.compiled import CompiledModel
from opgen.graph.ir.bound import Kind
from opgen.graph.ir.nodes import Array, Graph
from opgen.graph.kernels.interpret import compiled, interpret
from opgen.graph.program import bucketing as variety
from opgen.graph.program import programs
from opgen.graph.program.prepare import load, with_kernels
from opgen.graph.program.program import program
from opgen.graph.program.programs import Passed
from opgen.graph.program.weights import array_of
from opgen.runtime.threads import get_num_threads, set_num_threads
from tests.graph.random_graphs import assert_same, campaign, random_inputs
from tests.graph.steps import NN, Steps, as_it_is, uniform
from tests.support.graphs import chain


def results(model: CompiledModel, inputs: dict[str, Array]) -> tuple[Array, ...]:
    found = model(*inputs.values())
    return found if isinstance(found, tuple) else (found,)


@campaign(60)
def test_random_graphs(graph: Graph) -> None:
    inputs = random_inputs(graph)
    model = CompiledModel.of_graph(graph)
    expected = interpret(graph, inputs, compiled)
    for _ in range(2):
        assert_same(results(model, inputs), expected)
        for arena in model.pool.arenas:
            arena[...] = 0xFF


def convolutions(channels: int, size: int) -> Graph:
    """Convolutions that pack, pad and keep what they need for themselves, with a residual."""
    steps = Steps()
    x = steps.input(1, size, size, channels)
    first = steps.random(3, 3, channels, channels)
    second = steps.random(1, 1, channels, channels)
    h = steps("Conv2D", x, first, module=NN, strides=(1, 1, 1, 1), padding="SAME")
    h = steps("Conv2D", h, second, module=NN, strides=(1, 2, 2, 1), padding="VALID")
    h = steps("Conv2D", h, first, module=NN, strides=(1, 1, 1, 1), padding="SAME")
    return steps.graph(h)


def test_kernels_have_their_room_in_the_arena() -> None:
    """An algorithm works on blocks, of which each thread has one of its own."""
    graph = convolutions(64, 56)
    inputs = dict(uniform(graph.inputs))
    with algorithms("default"):
        model = CompiledModel.of_graph(graph)
    (made,) = (p.program for p in model.programs)
    assert any(x.room is not None and x.room[1] > 0 for x in made.entry.launches), "no thread has a part of its own"
    assert all(k.room is not None for k in made.kernels)
    (expected,) = interpret(graph, inputs, compiled)
    before = get_num_threads()
    found = set()
    try:
        for count in (1, 2, 3, 70):
            set_num_threads(count)
            for _ in range(3):
                (result,) = results(model, inputs)
                found.add(result.tobytes())
                for arena in model.pool.arenas:
                    arena[...] = 0xFF
    finally:
        set_num_threads(before)
    assert len(found) == 1, "the same bits for any number of threads, whatever the arena held"
    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


def test_what_depends_on_constants_alone_is_prepared_once() -> None:
    graph = convolutions(64, 28)
    inputs = dict(uniform(graph.inputs))
    with algorithms("off"):
        model = CompiledModel.of_graph(graph)
        each_time = program(graph, apart=False)
        found = results(model, inputs)
    (loaded,) = model.programs
    assert loaded.program.prepared
    assert not each_time.prepared
    assert_same(found, interpret(graph, inputs, compiled))
    whole = load(with_kernels(each_time, graph), [c.data.array for c in graph.constants], model.pool)
    result = np.empty(graph.value[graph.outputs[0]].shape, np.float32)
    whole.bind()([inputs["x0"].ctypes.data, result.ctypes.data])
    assert_same((result,), found)


def of_any_size(length: int) -> CompiledModel:
    """The chain for any number of rows and columns."""

    def prepare(given: Mapping[str, Kind], _: Mapping[str, Array]) -> Passed:
        (_, (rows, columns)) = given["x0"]
        return as_it_is(chain(length, rows, columns))

    return CompiledModel("chain", {"x0": FLOAT32, "x1": FLOAT32}, prepare)


def test_an_arena_is_as_large_as_what_is_alive_at_once() -> None:
    steps = Steps()
    x = steps.input(64, 64)
    for _ in range(9):
        x = steps("MatMul", x, x)
    model = CompiledModel.of_graph(steps.graph(x))
    (made,) = (p.program for p in model.programs)
    assert made.bound == 2 * 64 * 64 * 4
    assert made.arena == made.bound


def test_outputs_that_are_inputs_constants_or_given_twice() -> None:
    steps = Steps()
    x, c = steps.input(3, 4), steps.random(3, 4)
    h = steps("Add", x, c)
    graph = steps.graph(h, x, c, h)
    inputs = dict(uniform(graph.inputs))
    model = CompiledModel.of_graph(graph)
    assert_same(results(model, inputs), interpret(graph, inputs, compiled))
    assert_same(results(model, inputs), interpret(graph, inputs, compiled))


def test_results_are_written_where_the_caller_wants_them() -> None:
    model = CompiledModel.of_graph(chain(3))
    x, y = np.ones((5, 7), np.float32), np.ones((1, 7), np.float32)
    out = np.zeros((5, 7), np.float32)
    for _ in range(3):
        out[...] = 0
        assert model(x, y, out=out) is out
        assert (out == 4).all()
    with pytest.raises(
        ArgumentError, match=r"^steps: argument 'out': expected memory that no input or other result uses"
    ):
        model(x, y, out=x)
    with pytest.raises(
        ArgumentError, match=r"^steps: argument 'out': expected float32\[5, 7\], given float32\[5, 6\]$"
    ):
        model(x, y, out=np.zeros((5, 6), np.float32))
    assert (x == 1).all()


def test_calls_by_name_and_from_lists() -> None:
    model = CompiledModel.of_graph(chain(2, 1, 2))
    found = model.run({"x1": [[1.0, 2.0]], "x0": [[0.5, 0.25]]})
    assert {n: a.tolist() for n, a in found.items()} == {"v1_z": [[2.5, 4.25]]}
    reversed_view = np.array([[2.0, 1.0]], np.float32)[:, ::-1]
    assert model(reversed_view, reversed_view).tolist() == [[3.0, 6.0]]


def test_wrong_inputs_are_named() -> None:
    model = CompiledModel.of_graph(chain(2))
    x, y = np.ones((5, 7), np.float32), np.ones((1, 7), np.float32)
    for call, message in (
        (lambda: model(x), r"steps: argument 'tensors': expected 2 \(x0, x1\), given 1"),
        (lambda: model(x, y[0]), r"steps: argument 'x1': expected float32\[1, 7\], given float32\[7\]"),
        (lambda: model(x.astype(np.float64), y), r"steps: argument 'x0': expected float32, given float64\[5, 7\]"),
        (lambda: model.run({"x0": x}), "steps: argument 'x1': expected a tensor, given nothing"),
        (lambda: model.run({"x0": x, "z": y}), "steps: unknown input 'z'; it takes x0, x1"),
        (lambda: model.run({"x0": x, "x11": y}), r"steps: unknown input 'x11'; did you mean 'x1'\?"),
    ):
        with pytest.raises(ArgumentError, match=f"^{message}$"):
            call()


def test_runs_at_the_same_time() -> None:
    model = CompiledModel.of_graph(chain(40, 30, 50))
    rng = np.random.default_rng(0)
    given = [(rng.random((30, 50), np.float32), rng.random((1, 50), np.float32)) for _ in range(8)]
    expected = [model(*g).tobytes() for g in given]

    def run(k: int) -> bool:
        return all(model(*given[k]).tobytes() == expected[k] for _ in range(200))

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(run, range(8)))
    assert 1 <= len(model.pool.arenas) <= 8


def test_other_sizes_are_other_programs_and_few_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "PROGRAMS", 4)
    monkeypatch.setattr(variety, "SPECIAL", 3)
    model = of_any_size(3)
    rng = np.random.default_rng(1)
    largest = 0
    for _ in range(3):
        for rows in (3, 4, 90, 5, 6, 7, 8):
            x, y = rng.random((rows, 5), np.float32), rng.random((1, 5), np.float32)
            np.testing.assert_allclose(model(x, y), x + 3 * y, rtol=1e-6)
            assert len(model.programs) <= 4
            largest = max(p.program.arena_bytes(get_num_threads()) for p in model.programs)
            assert sum(a.nbytes for a in model.pool.arenas) <= largest
    kernels = {k.key for p in model.programs for k in p.program.kernels}
    assert len(kernels) == 2, "sizes beyond the first few share a kernel for what is in place, and one for what is not"


def test_a_model_calls_while_another_runs() -> None:
    inner = CompiledModel.of_graph(chain(2))
    outer = CompiledModel("outer", {"x0": FLOAT32, "x1": FLOAT32}, lambda *_: as_it_is(nested(inner)))
    x, y = np.ones((5, 7), np.float32), np.ones((1, 7), np.float32)
    assert (outer(x, y) == 4).all()


def nested(inner: CompiledModel) -> Graph:
    """A graph that is made by running a model."""
    assert (inner(np.ones((5, 7), np.float32), np.ones((1, 7), np.float32)) == 3).all()
    return chain(3)


def test_programs_of_one_model_share_their_weights() -> None:
    weights = np.random.default_rng(3).random((64 * 64 + 1,), np.float32)[1:].reshape(1, 1, 64, 64)

    def of(rows: int) -> Graph:
        s = Steps()
        x, w = s.input(1, rows, 28, 64), s.constant(weights)
        return s.graph(s("Conv2D", x, w, module=NN, strides=(1, 1, 1, 1), padding="SAME"))

    graphs = {rows: of(rows) for rows in (28, 30)}
    model = CompiledModel("shared", {"x0": FLOAT32}, lambda kinds, _: as_it_is(graphs[kinds["x0"][1][1]]))
    for rows, graph in graphs.items():
        inputs = {"x0": np.random.default_rng(rows).random((1, rows, 28, 64), np.float32)}
        np.testing.assert_allclose(model(inputs["x0"]), interpret(graph, inputs, compiled)[0], rtol=1e-4)
    first, second = ({id(a) for a in map(array_of, p.rows) if a is not None} for p in model.programs)
    assert first == second


def test_each_choice_of_algorithms_has_its_program() -> None:
    """Whichever is asked for first, and however often they take turns."""
    graph = convolutions(64, 56)
    inputs = dict(uniform(graph.inputs))
    modes: tuple[Mode, ...] = ("off", "default", "off", "default", "default", "off")
    expected = {}
    for each in modes[:2]:
        with algorithms(each):
            expected[each] = results(CompiledModel.of_graph(graph), inputs)[0].tobytes()
    assert expected["off"] != expected["default"], "an algorithm rounds in another way"
    with algorithms("default"):
        model = CompiledModel.of_graph(graph)
    for each in modes:
        with algorithms(each):
            assert results(model, inputs)[0].tobytes() == expected[each]
            assert model.run(inputs)[model.programs[-1].program.outputs[0].name].tobytes() == expected[each]
    assert len(model.programs) == 2
