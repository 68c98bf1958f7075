"""Kernels whose sizes are open as far as a model's sizes vary: right, few, by the schedules of those for one size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

import opgen
from opgen.compiler import transfer as carried
from opgen.compiler.symbolic import CLOSED, LEAST, History, Opening
from opgen.diagnostics import InternalError
from opgen.dtypes import FLOAT32
from opgen.graph.build.model import Call, Input, Model
from opgen.graph.ir.bound import bound
from opgen.graph.ir.nodes import Array, Data, Graph
from opgen.graph.kernels.interpret import compiled, interpret
from opgen.graph.kernels.kernels import integers_of
from opgen.graph.program import bucketing as variety
from opgen.graph.program.arena import ArenaPool
from opgen.graph.program.prepare import load, with_kernels
from opgen.graph.program.program import program
from opgen.loop.nodes import Kernel
from opgen.schedule.schedule import Schedule
from tests.graph.random_graphs import SEED, assert_same, campaign, random_inputs
from tests.graph.steps import NN


def network() -> Model:
    """Windows with and without strides, over sizes that vary; channels do not."""
    rng = np.random.default_rng(SEED)
    weights = {f"w{k}": Data(rng.uniform(-1, 1, (3, 3, 8, 8)).astype(np.float32)) for k in range(2)}
    calls = (
        Call("first", NN, "Conv2D", ("x", "w0"), ("a",), {"strides": (1, 1, 1, 1), "padding": "SAME"}),
        Call("next", NN, "Conv2D", ("a", "w1"), ("b",), {"strides": (1, 2, 2, 1), "padding": "SAME"}),
    )
    return Model("network", (Input("x", FLOAT32, ("n", "h", "w", 8)),), weights, calls, ("b",))


def image(batch: int, height: int, width: int) -> Array:
    rng = np.random.default_rng([SEED, batch, height, width])
    return rng.uniform(-1, 1, (batch, height, width, 8)).astype(np.float32)


def test_a_model_at_many_sizes() -> None:
    """One that varies, in all classes that kernels are made for; then others beside it; none at all, too."""
    model = opgen.compile(network())
    widths = [20, 33, 47, 70, 65, 101, 3, 1, 66, 67, 0]
    sizes = [*((1, 9, w) for w in widths), (2, 9, 40), (1, 1, 1), (2, 30, 100)]
    made: dict[tuple[int, int, int], set[str]] = {}
    for size in sizes:
        x = image(*size)
        found = model(x)
        graph = model.stages({"x": (FLOAT32, x.shape)}).last
        np.testing.assert_allclose(found, interpret(graph, {"x": x}, compiled)[0], rtol=1e-5, atol=1e-5)
        made[size] = {k.symbol for k in model.programs[-1].program.kernels}
    wide = [made[1, 9, w] for w in (101, 66, 67)]
    assert all(kernels == wide[0] for kernels in wide[1:]), "widths of one class have the same kernels"
    special = set().union(*(made[size] for size in sizes[: variety.SPECIAL]))
    assert not special & wide[0]
    everything = set().union(*made.values()) - special
    assert len(everything) <= len(wide[0]) * (len(LEAST) + 4), "kernels for classes of sizes, not for sizes"


@campaign(25, number=st.integers(0, 2**32))
def test_random_graphs_with_random_openings(graph: Graph, number: int) -> None:
    """Whatever is open, a kernel computes the same."""
    rng = np.random.default_rng(number)
    openings: list[Opening | None] = []
    for node in graph.nodes:
        values = integers_of(bound(graph, node))
        kinds = dict.fromkeys(n for n in values if rng.integers(2))
        free = tuple((n, next((least for least in LEAST if least <= values[n]), None)) for n in kinds)
        openings.append(None if rng.integers(8) == 0 else Opening(free, (), tuple((n, values[n]) for n, _ in free)))
    inputs = random_inputs(graph)
    made = program(graph, openings)
    loaded = load(with_kernels(made, graph), [c.data.array for c in graph.constants], ArenaPool())
    results = [np.empty(v.shape, v.dtype.name) for v in made.outputs]
    loaded.bind()([*(np.ascontiguousarray(a).ctypes.data for a in inputs.values()), *(r.ctypes.data for r in results)])
    assert_same(results, interpret(graph, inputs, compiled))


@seed(SEED)
@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-3, 100), st.integers(0, 3)), min_size=1, max_size=60),
    st.integers(-5, 5),
    st.integers(1, 3),
)
def test_what_is_open_holds_for_the_last_call(drawn: list[tuple[int, int]], offset: int, constant: int) -> None:
    history = History()
    for a, b in drawn:
        values = {"a": a, "b": b, "c": a + offset, "d": constant, "e": a * a}
        history.add(values)
        opening = history.opening()
        opening.require(values)
        assert "d" not in opening.names
        assert {name for name, _ in opening.like} == {name for name, _ in opening.free}
        assert not any(name == "c" for name, _ in opening.free), "it is always the same number more than another"
    if len({a for a, _ in drawn}) == 1 and len({b for _, b in drawn}) == 1:
        assert opening == CLOSED


def test_a_call_that_a_kernel_is_not_for_is_a_defect() -> None:
    opening = Opening((("n", 16),), (("m", "n", 2),))
    opening.require({"n": 16, "m": 18})
    for values in ({"n": 15, "m": 17}, {"n": 16, "m": 17}):
        with pytest.raises(InternalError, match="a kernel for"):
            opening.require(values)


def test_kernels_have_the_schedules_of_those_for_one_size(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """All kernels of a model of windows, so that none is slow."""
    monkeypatch.setenv("OPGEN_CACHE_DIR", str(tmp_path / "cache"))
    carried_over = carried.carried_over
    done: list[bool] = []

    def noted(kernel: Kernel, schedule: Schedule) -> tuple[Schedule, Kernel] | None:
        after = carried_over(kernel, schedule)
        done.append(after is not None)
        return after

    monkeypatch.setattr(carried, "carried_over", noted)
    model = opgen.compile(network())
    for width in (34, 52, 20, 38, 43, 51, 60):
        model(image(1, 11, width))
    assert done, "kernels were built before"
    assert all(done), "each is carried over at once"
