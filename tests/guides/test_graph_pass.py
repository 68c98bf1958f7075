"""A worked example of CONTRIBUTING's guide "A graph pass": nodes that run just before their results are taken."""

from __future__ import annotations

from opgen.graph.ir.edit import edited
from opgen.graph.ir.nodes import Graph, Node
from opgen.graph.kernels.interpret import interpret
from opgen.graph.passes.base import Pass, Report, run_passes
from opgen.graph.passes.order import ordered
from opgen.graph.passes.standard import PASSES
from opgen.graph.plan.plan import plan
from tests.graph.random_graphs import MODULE, assert_same, campaign, random_inputs
from tests.graph.steps import Steps


def late(graph: Graph, report: Report) -> Graph:
    """Order nodes so that each runs just before the first that takes its results."""
    backwards: list[Node] = []
    for node in reversed(graph.nodes):
        takers = [place for place, other in enumerate(backwards) if not set(node.outputs).isdisjoint(other.inputs)]
        backwards.insert(takers[-1] + 1 if takers else len(backwards), node)
    nodes = backwards[::-1]
    if nodes == list(graph.nodes):
        return graph
    for before, after in zip(graph.nodes, nodes, strict=True):
        if before.name != after.name:
            report.note(LATE.name, after.name, f"runs in the place of {before.name}")
    return edited(graph, nodes)


LATE = Pass("late", "A node runs just before the first that takes its results.", late, after=("common",))


def test_the_pass_does_what_its_contract_says_and_notes_it() -> None:
    steps = Steps()
    x = steps.input(64, 64)
    large = [steps("Product", x, x, module=MODULE) for _ in range(2)]
    graph = steps.graph(*(steps("RowSum", value, module=MODULE) for value in large))
    report = Report()
    after = LATE.run(graph, report)
    assert [n.name for n in after.nodes] == ["n0", "n2", "n1", "n3"]
    assert list(map(str, report.notes)) == [
        "late: n2: runs in the place of n1",
        "late: n1: runs in the place of n2",
    ]
    assert bytes_of(after) < bytes_of(graph), "one large value is there at a time"
    assert LATE.run(after) is after


def bytes_of(graph: Graph) -> int:
    """The size of a graph's arena, if every node reads all of its inputs and needs no temporary memory."""
    return plan(graph, {}, [range(len(n.inputs)) for n in graph.nodes], [0] * len(graph.nodes)).bytes


@campaign(40)
def test_it_changes_no_result(graph: Graph) -> None:
    inputs = random_inputs(graph)
    assert_same(interpret(LATE.run(graph), inputs), interpret(graph, inputs))


@campaign(10)
def test_it_takes_its_place_among_the_others(graph: Graph) -> None:
    passes = ordered((LATE, *(p for p in PASSES if not p.slow)))
    assert passes[-1] is LATE
    inputs = random_inputs(graph)
    assert_same(interpret(run_passes(graph, passes), inputs), interpret(graph, inputs))
