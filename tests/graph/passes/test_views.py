"""Views of views, and the op that stands for several."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from opgen.dtypes import FLOAT32
from opgen.graph.fusion.reshaped import view_between
from opgen.graph.ir.bound import bound, make_node
from opgen.graph.ir.nodes import Graph, Value
from opgen.graph.ir.text import data_of, parse_graph, print_graph
from opgen.graph.ir.verify import verify
from opgen.graph.kernels.interpret import interpret
from opgen.graph.passes.base import Report
from opgen.graph.passes.dead import DEAD
from opgen.graph.passes.views import VIEWS
from opgen.graph.plan.views import view_of
from tests.graph.random_graphs import MODULE, SEED, random_inputs
from tests.graph.steps import Steps

FACTORS = st.lists(st.sampled_from((1, 2, 2, 3, 4, 5)), max_size=5)


@st.composite
def shapes(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes of the same factors, cut in different places, with ones strewn in."""
    factors = draw(FACTORS)

    def cut() -> tuple[int, ...]:
        found, size = [], 1
        for factor in factors:
            size *= factor
            if draw(st.booleans()):
                found.append(size)
                size = 1
        return (*found, size) if size > 1 or draw(st.booleans()) else tuple(found)

    return cut(), cut()


@seed(SEED)
@settings(max_examples=100, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(shapes())
def test_one_op_from_a_shape_to_another(pair: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    print(f"OPGEN_SEED={SEED}")
    source, target = pair
    found = view_between(source, target)
    assert found is not None
    op, pieces = found
    assert prod(pieces) == prod(source)
    x = Value("x", FLOAT32, source)
    node, made = make_node("n", op, [x], ["y"], {"pieces": pieces})
    assert made[0].shape == target
    graph = verify(Graph("g", (x,), (), made, (node,), ("y",)))
    inputs = random_inputs(graph)
    np.testing.assert_array_equal(interpret(graph, inputs)[0], inputs["x"].reshape(target))
    assert view_of(bound(graph, node)) == 0
    assert parse_graph(print_graph(graph), data_of(graph)) == graph


def test_shapes_whose_pieces_do_not_fit_into_each_other() -> None:
    assert view_between((2, 3), (3, 2)) is None
    assert view_between((4, 2, 3), (4, 3, 2)) is None


def test_shapes_that_are_cut_alike_have_one_op() -> None:
    one, other = view_between((4, 6), (2, 12)), view_between((10, 3), (5, 6))
    assert one is not None
    assert other is not None
    assert (one[1], other[1]) == ((2, 2, 6), (5, 2, 3))
    assert one[0] is other[0]


def test_views_of_views_take_the_first() -> None:
    steps = Steps()
    x = steps.input(4, 6)
    flat = steps("Join", x, module=MODULE)
    rows = steps("Cut", flat, module=MODULE, width=12)
    wide = steps("Widen", rows, module=MODULE)
    again = steps("Cut", flat, module=MODULE, width=6)
    total = steps("Add", again, x, module=MODULE)
    odd = steps("Cut", flat, module=MODULE, width=8)
    turned = steps("Turn", x, module=MODULE)
    graph = steps.graph(wide, total, odd, turned)
    report = Report()
    after = DEAD.run(VIEWS.run(graph, report))
    assert [(n.name, n.op.spec.name, n.inputs) for n in after.nodes] == [
        ("n0", "Join", (x,)),
        ("n2", "View", (x,)),
        ("n4", "Add", (x, x)),
        ("n5", "Cut", (flat,)),
        ("n6", "Turn", (x,)),
    ]
    assert list(map(str, report.notes)) == [
        f"views: n0: is a view of '{x}'",
        f"views: n1: is a view of '{x}', past '{flat}'",
        f"views: n2: is a view of '{x}', past '{rows}'",
        f"views: n3: is '{x}' as it is",
        f"views: n5: is a view of '{flat}'",
    ]
    inputs = random_inputs(graph)
    for one, other in zip(interpret(graph, inputs), interpret(after, inputs), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (1, 1), (0, 3)])
def test_a_transposition_that_moves_nothing_is_a_view(shape: tuple[int, int]) -> None:
    steps = Steps()
    turned = steps("Turn", steps.input(*shape), module=MODULE)
    graph = steps.graph(turned)
    assert view_of(bound(graph, graph.nodes[0])) == 0
