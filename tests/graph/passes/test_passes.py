"""Each pass changes nothing of what a graph means, on random graphs, and does what it says on small ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from opgen.diagnostics import InternalError
from opgen.diagnostics.calls import ArgumentValueError
from opgen.graph.ir.nodes import Graph
from opgen.graph.ir.text import data_of, parse_graph, print_graph, print_node
from opgen.graph.kernels.interpret import interpret
from opgen.graph.passes import base, fold
from opgen.graph.passes.base import Pass, Report, run_passes
from opgen.graph.passes.common import COMMON
from opgen.graph.passes.dead import DEAD
from opgen.graph.passes.fold import FOLD
from opgen.graph.passes.results import RESULTS
from opgen.graph.passes.shapes import SHAPES
from opgen.graph.passes.standard import CLEANING
from opgen.graph.passes.views import VIEWS
from opgen.spec.loading import load
from tests.graph.random_graphs import MODULE, assert_same, campaign, random_inputs
from tests.graph.steps import Steps

PASSES = (DEAD, COMMON, FOLD, RESULTS, SHAPES, VIEWS)


def checked(graph: Graph, passes: tuple[Pass, ...]) -> Graph:
    """The graph after passes, which means the same to its caller."""
    after = run_passes(graph, passes)
    assert after.inputs == graph.inputs
    assert after.result_names == graph.result_names
    inputs = random_inputs(graph)
    assert_same(interpret(graph, inputs), interpret(after, inputs))
    return after


@pytest.mark.parametrize("each", PASSES, ids=lambda p: p.name)
def test_a_pass_changes_no_result(each: Pass) -> None:
    @campaign(60)
    def run(graph: Graph) -> None:
        checked(graph, (each,))

    run()


@campaign(60, passes=st.lists(st.sampled_from(PASSES), max_size=5))
def test_passes_in_any_order_change_no_result(graph: Graph, passes: list[Pass]) -> None:
    checked(graph, tuple(passes))


@campaign(60)
def test_afterwards_nothing_is_left_to_do(graph: Graph) -> None:
    after = run_passes(graph, CLEANING)
    again = run_passes(after, CLEANING)
    assert again == after
    assert {c.value.name for c in after.constants} <= set(after.taken())


def nodes_of(graph: Graph) -> list[str]:
    return [print_node(graph, node) for node in graph.nodes]


def notes(each: Pass, graph: Graph) -> list[str]:
    report = Report()
    each.run(graph, report)
    return list(map(str, report.notes))


def test_dead_ends_go_and_inputs_stay() -> None:
    steps = Steps()
    x, unused = steps.input(2, 3), steps.input(4)
    kept, dead = steps.several("Parts", x, module=MODULE)
    steps("Negate1", unused, module=MODULE)
    steps("Negate1", steps.random(5), module=MODULE)
    graph = steps.graph(kept)
    after = DEAD.run(graph)
    assert [n.name for n in after.nodes] == ["n0"]
    assert [v.name for v in after.values] == [kept, dead]
    assert after.constants == ()
    assert after.inputs == graph.inputs
    assert notes(DEAD, graph) == ["dead: n1: no output depends on it", "dead: n2: no output depends on it"]
    assert DEAD.run(after) is after


def test_nodes_and_constants_that_are_there_twice() -> None:
    steps = Steps()
    x, ones = steps.input(2, 3), np.ones(3, np.float32)
    one = steps("Scale", x, steps.constant(ones), steps.constant(np.zeros(3, np.float32)), module=MODULE)
    two = steps("Scale", x, steps.constant(ones.copy()), steps.constant(-np.zeros(3, np.float32)), module=MODULE)
    three = steps("Scale", x, "c2", "c1", module=MODULE)
    half = steps("Halve", x, module=MODULE, factor=0.0)
    other = steps("Halve", x, module=MODULE, factor=-0.0)
    after = COMMON.run(steps.graph(one, two, three, half, other))
    assert after.outputs == (one, two, one, half, other)
    assert after.result_names == (one, two, three, half, other)
    assert [c.value.name for c in after.constants] == ["c0", "c1", "c3"]
    assert notes(COMMON, steps.graph(one, three)) == [
        "common: c2: has the elements of 'c0'",
        "common: n2: computes what 'n0' does",
    ]


def test_what_depends_on_constants_and_shapes_alone_is_worked_out() -> None:
    steps = Steps()
    x = steps.input(2, 3)
    weights = steps("Scale", steps.random(2, 3), steps.random(3), steps.random(3), module=MODULE)
    summed = steps("Add", x, weights, module=MODULE)
    columns = steps("Count", x, module=MODULE)
    after = DEAD.run(FOLD.run(steps.graph(summed, columns)))
    assert nodes_of(after) == [f"n1: {summed}: float32[2, 3] = Add<T = float32>(x0, {weights})"]
    assert after.constant[columns].data.array.tolist() == [3]
    again = FOLD.run(steps.graph(summed, columns))
    assert again.constant[weights].data is after.constant[weights].data


@pytest.mark.parametrize("size", [100, 3000])
def test_what_is_worked_out_is_what_the_definition_says(size: int) -> None:
    """The larger one by a kernel."""
    steps = Steps()
    result = steps("Scale", steps.random(2, size), steps.random(size), steps.random(size), module=MODULE)
    graph = steps.graph(result)
    assert FOLD.run(graph).nodes == ()
    np.testing.assert_allclose(interpret(FOLD.run(graph), {})[0], interpret(graph, {})[0], rtol=1e-6)


def test_a_number_repeated_is_not_kept_in_memory() -> None:
    steps = Steps()
    large = steps("Refill", steps.random(1), module=MODULE, shape=(1024, 1024))
    graph = steps.graph(large)
    assert FOLD.run(graph) == graph
    assert notes(FOLD, graph) == ["fold: n0: depends on constants alone, but its result is much larger than they"]


def test_what_has_no_result_stays() -> None:
    steps = Steps()
    table, places = steps.constant(np.arange(3, dtype=np.int64)), steps.constant(np.array([5], np.int64))
    graph = steps.graph(steps("At", table, places, module=load(Path(__file__).parents[1] / "shapes.op")))
    assert FOLD.run(graph) is graph
    assert notes(FOLD, graph) == ["fold: n0: has no result: a run will say why"]
    with pytest.raises(ArgumentValueError) as caught:
        interpret(graph, {})
    assert (
        str(caught.value) == "At: argument 'places': expected integers from 0 to 2 (dimension 0 of 'x' has 3), given 5"
    )


def test_what_no_memory_holds_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise MemoryError("kernel halve: not enough memory for its temporary buffers")

    monkeypatch.setattr(fold, "worked_out", refused)
    steps = Steps()
    graph = steps.graph(steps("Halve", steps.random(2, 3), module=MODULE))
    assert FOLD.run(graph) is graph


def test_what_is_taken_for_its_shape_is_not_made() -> None:
    steps = Steps()
    x, row = steps.input(2, 3, 4), steps.input(3)
    twice = steps("Multiply", x, x, module=MODULE)
    rows, zeros = steps.several("Spread", row, twice, module=MODULE, order="ABC")
    graph = steps.graph(rows, zeros)
    after = DEAD.run(SHAPES.run(graph))
    assert nodes_of(after) == [
        f'n1: {rows}: float32[2, 3], {zeros}: float32[4] = Spread<T = float32>({row}) {{order = "ABC", x = [2, 3, 4]}}'
    ]
    assert notes(SHAPES, graph) == ["shapes: n1: is told the sizes of x"]
    assert parse_graph(print_graph(after), data_of(after)) == after


def test_a_result_that_nobody_takes_is_not_computed() -> None:
    steps = Steps()
    row, x, other = steps.input(3), steps.input(2, 3, 4), steps.input(4, 2, 3)
    rows, _ = steps.several("Spread", row, x, module=MODULE, order="ABC")
    _, zeros = steps.several("Spread", row, other, module=MODULE, order="CAB")
    graph = steps.graph(rows, zeros)
    after = RESULTS.run(graph)
    assert nodes_of(after) == [
        f'n0: {rows}: float32[2, 3] = Spread<T = float32, U = float32>({row}, {x}) {{order = "ABC"}}',
        f'n1: {zeros}: float32[4] = Spread<T = float32, U = float32>({row}, {other}) {{order = "CAB"}}',
    ]
    assert notes(RESULTS, graph) == ["results: n0: nobody takes zeros", "results: n1: nobody takes y"]
    assert parse_graph(print_graph(after), data_of(after)) == after
    parts = steps.several("Parts", steps("Turn", rows, module=MODULE), module=MODULE)
    checked(steps.graph(zeros, parts[0]), CLEANING)


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
def test_a_planted_fault_is_found() -> None:
    """Random graphs tell of one that the verifier cannot see; the verifier says which pass broke a graph."""

    def changed(graph: Graph, _: Report) -> Graph:
        nodes = [
            replace(n, attributes=(("factor", -float(str(n.attributes[0][1]))),)) if n.op.spec.name == "Halve" else n
            for n in graph.nodes
        ]
        return replace(graph, nodes=tuple(nodes))

    @campaign(300)
    def run(graph: Graph) -> None:
        checked(graph, (Pass("planted", "Changes a factor.", changed),))

    with pytest.raises(AssertionError):
        run()
    steps = Steps()
    flags = steps("Less", steps.input(2, 3), steps.input(2, 3), module=MODULE)
    graph = steps.graph(steps("Choose", flags, "x0", "x1", module=MODULE))

    def broken(graph: Graph, _: Report) -> Graph:
        return replace(graph, nodes=tuple(replace(n, inputs=n.inputs[::-1]) for n in graph.nodes))

    with pytest.raises(InternalError, match=r"^graph 'steps' after 'planted': node 'n1': Choose: argument 'flag': "):
        Pass("planted", "Turns inputs round.", broken).run(graph)


def test_a_graph_that_passes_leave_as_it_is_is_verified_once(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps()
    graph = steps.graph(steps("Plus", steps.input(1, 1, 2, 3), steps.input(1, 1, 2, 3)))
    verified: list[Graph] = []
    monkeypatch.setattr(base, "verify", lambda seen, after: verified.append(seen))
    same = Pass("same", "Nothing is changed.", lambda given, _: given)
    copied = Pass("copied", "The graph is made again.", lambda given, _: replace(given))
    assert run_passes(graph, (same, same, copied, same)) == graph
    assert [v is graph for v in verified] == [True, False]
