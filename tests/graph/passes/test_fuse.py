"""Which nodes become one, and that it changes nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from opgen.compiler.algorithms import algorithms
from opgen.graph.fusion import accesses as reading
from opgen.graph.fusion import intermediate
from opgen.graph.ir import scratch
from opgen.graph.ir.bound import bound
from opgen.graph.ir.nodes import Graph
from opgen.graph.kernels.interpret import interpret
from opgen.graph.passes.base import Report
from opgen.graph.passes.fuse import FUSE
from opgen.spec.model import model as m
from tests.graph.random_graphs import assert_same, campaign, random_inputs
from tests.graph.steps import NN, Steps, uniform
from tests.support.graphs import assert_reads_back

WINDOWS = {"strides": (1, 1, 1, 1), "padding": "SAME", "dilations": (1, 1, 1, 1)}


def fused(graph: Graph) -> tuple[list[str], list[str]]:
    """The ops of the nodes that are left, and why what is apart is apart; asserts that results are the same."""
    report = Report()
    found = FUSE.run(graph, report)
    for node in found.nodes:
        if node not in graph.nodes:
            assert_reads_back(node)
    inputs = uniform(graph.inputs)
    assert_same(interpret(found, inputs), interpret(graph, inputs))
    return [n.op.spec.name for n in found.nodes], [n.text for n in report.notes if "->" in n.about]


@campaign(60)
def test_random_graphs(graph: Graph) -> None:
    report = Report()
    found = FUSE.run(graph, report)
    inputs = random_inputs(graph)
    assert_same(interpret(found, inputs), interpret(graph, inputs))
    for node in found.nodes:
        if node not in graph.nodes:
            assert_reads_back(node)
    kept = {v.name for v in found.values}
    for value in graph.values:
        readers = graph.readers.get(value.name, ())
        if value.name in kept:
            apart = {n.about for n in report.notes if n.text.startswith("apart: ") and len(n.text) > len("apart: ")}
            maker = graph.producer[value.name]
            assert {f"{maker.name} -> {r.name}" for r in readers} <= apart


UNARY, BINARY, ROWS = ("Relu", "Gelu", "Power"), ("Add", "Sub", "Mul", "Div"), ("RowMean", "RowSum", "RowMax")


def chain(seed: int) -> Graph:
    """A graph of matrices, rows and columns, most of whose values one node reads."""
    drawn = np.random.default_rng(seed)
    steps = Steps()
    known: dict[str, list[str]] = {"matrix": [], "column": [], "row": []}
    size = int(drawn.integers(2, 6))
    known["matrix"] += [steps.input(size, size), steps.input(size, size)]
    known["row"].append(steps.input(1, size))
    for _ in range(int(drawn.integers(3, 14))):
        kind = drawn.choice(["unary", "binary", "rows", "product"], p=[0.25, 0.45, 0.2, 0.1])
        x = last(drawn, known["matrix"])
        if kind == "unary":
            known["matrix"].append(steps(drawn.choice(UNARY), x))
        elif kind == "product":
            known["matrix"].append(steps("MatMul", x, known["matrix"][int(drawn.integers(2))]))
        elif kind == "rows":
            known["column"].append(steps(drawn.choice(ROWS), x))
        else:
            others = known[drawn.choice([k for k, v in known.items() if v])]
            pair = [x, last(drawn, others)]
            known["matrix"].append(steps(drawn.choice(BINARY), *(pair if drawn.integers(2) else pair[::-1])))
    read = {v for n in steps.nodes for v in n.inputs}
    return steps.graph(*(v.name for v in steps.values if v.name not in read))


def last(drawn: np.random.Generator, values: list[str]) -> str:
    """One of the values, one of the last mostly."""
    return values[-1 - min(int(drawn.geometric(0.6)) - 1, len(values) - 1)]


@pytest.mark.parametrize("seed", range(24))
def test_random_chains(seed: int) -> None:
    print(f"seed {seed}")
    fused(chain(seed))


def test_what_follows_a_product() -> None:
    steps = Steps()
    y = steps("Add", steps("MatMul", steps.input(4, 5), steps.input(5, 6)), steps.input(1, 6))
    y = steps("Relu", steps("Add", y, steps.input(4, 6)))
    ops, apart = fused(steps.graph(y))
    assert ops == ["MatMulAddAddRelu"]
    assert not apart


def test_products_stay_apart() -> None:
    steps = Steps()
    h = steps("Gelu", steps("MatMul", steps.input(4, 5), steps.input(5, 40)))
    ops, apart = fused(steps.graph(steps("Relu", steps("MatMul", h, steps.input(40, 6)))))
    assert ops == ["MatMulGelu", "MatMulRelu"]
    assert apart == ["apart: it belongs to the product or window that it follows"]


def test_one_of_two_products_takes_their_sum() -> None:
    steps = Steps()
    a, b = (steps("MatMul", steps.input(4, 5), steps.input(5, 6)) for _ in range(2))
    ops, apart = fused(steps.graph(steps("Relu", steps("Add", a, b))))
    assert ops == ["MatMul", "MatMulAddRelu"]
    assert apart == ["apart: a product or window has a nest of its own, without another one"]


def test_rows_are_one_op() -> None:
    steps = Steps()
    x = steps("Add", steps.input(3, 7), steps.input(3, 7))
    e = steps("Power", steps("Sub", x, steps("RowMax", x)))
    ops, apart = fused(steps.graph(steps("Div", e, steps("RowSum", e))))
    assert ops == ["AddRowMaxSubPowerRowSumDiv"]
    assert not apart


def test_what_comes_before_a_reduction_is_not_stored() -> None:
    steps = Steps()
    x = steps("Ramp", steps("Plus", steps.input(2, 4, 6, 3), steps.input(1, 1, 1, 3)), slope=0.25)
    graph = steps.graph(steps("Mean", x))
    assert fused(graph)[0] == ["PlusRampMean"]
    (node,) = FUSE.run(graph).nodes
    assert len(node.op.spec.definitions) == 1


def test_what_comes_before_a_product_is_stored() -> None:
    steps = Steps()
    x = steps("Relu", steps("Add", steps.input(4, 5), steps.input(1, 5)))
    ops, apart = fused(steps.graph(steps("MatMul", x, steps.input(5, 48))))
    assert ops == ["AddRelu", "MatMul"]
    assert apart == ["apart: each element is read 48 times, from memory"]


def test_before_a_window() -> None:
    steps = Steps()
    x = steps("Ramp", steps.input(1, 5, 5, 3))
    y = steps("DepthwiseConv2dNative", x, steps.input(3, 3, 3, 1), module=NN, **WINDOWS)
    assert fused(steps.graph(steps("Swish", y)))[0] == ["RampDepthwiseConv2dNativeSwish"]


def test_a_value_of_two_groups_is_stored() -> None:
    steps = Steps()
    x = steps("Relu", steps.input(4, 4))
    y = steps("MatMul", x, steps.input(4, 9))
    ops, apart = fused(steps.graph(steps("RowSum", x), y))
    assert ops == ["Relu", "MatMul", "RowSum"]
    assert set(apart) == {"apart: 2 nodes read it: 'n1', 'n2'"}


def test_what_the_caller_takes_is_stored() -> None:
    steps = Steps()
    x = steps("Relu", steps.input(4, 4))
    ops, apart = fused(steps.graph(steps("Gelu", x), x))
    assert ops == ["Relu", "Gelu"]
    assert apart == ["apart: the caller takes it"]


def test_a_planted_fault_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A composition that forgets the last node's mathematics."""
    steps = Steps()
    graph = steps.graph(steps("Relu", steps("Sub", steps.input(4, 4), steps.input(4, 4))))
    real = intermediate.Intermediates.add

    def wrong(self: intermediate.Intermediates, d: m.Definition) -> None:
        value = d.value
        real(self, replace(d, value=value.left) if isinstance(value, m.Operation) and value.op == "max" else d)

    monkeypatch.setattr(intermediate.Intermediates, "add", wrong)
    with pytest.raises(AssertionError):
        fused(graph)


def test_what_two_steps_make_of_a_product_belongs_to_it() -> None:
    """A value times what is made of it goes to the product before, not to the window behind."""
    steps = Steps()
    x = steps("Conv2D", steps.input(1, 4, 4, 3), steps.input(1, 1, 3, 6), module=NN, **WINDOWS)
    y = steps("Times", x, steps("Swish", x))
    z = steps("DepthwiseConv2dNative", y, steps.input(3, 3, 6, 1), module=NN, **WINDOWS)
    assert fused(steps.graph(z))[0] == ["Conv2DSwishTimes", "DepthwiseConv2dNative"]


def test_equal_nodes_are_looked_at_once() -> None:
    """Passes ask of each node several times how it reads: of forty equal ones, one answer is worked out."""
    steps = Steps()
    x = steps.input(8, 8)
    for _ in range(40):
        x = steps("Relu", x)
    before = reading._facts.cache_info()
    FUSE.run(steps.graph(x), Report())
    after = reading._facts.cache_info()
    assert (after.misses - before.misses, after.hits - before.hits) == (1, 39)


def test_what_an_algorithm_computes_stays_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A composed op has no algorithms; where one is for a call but would not be taken, its definition is composed."""
    steps = Steps()
    x = steps("Ramp", steps.input(1, 6, 6, 3))
    graph = steps.graph(steps("Ramp", steps("Conv2D", x, steps.input(3, 3, 3, 3), module=NN, **WINDOWS)))
    assert fused(graph)[0] == ["RampConv2DRamp"]
    monkeypatch.setattr(reading, "computed_otherwise", lambda call: bool(call.op.spec.algorithms))
    scratch.forget()
    ops, apart = fused(graph)
    scratch.forget()
    assert ops == ["Ramp", "Conv2D", "Ramp"]
    assert set(apart) == {"apart: an algorithm computes it, faster than the mathematics that could be put together"}


def test_whether_an_algorithm_computes_it() -> None:
    """It agrees with what a kernel is made of: large images of many channels are filtered with fewer products."""
    for size, wanted in ((6, False), (112, True)):
        steps = Steps()
        steps("Conv2D", steps.input(1, size, size, 64), steps.input(3, 3, 64, 64), module=NN, **WINDOWS)
        graph = steps.graph(steps.values[-1].name)
        assert reading.computed_otherwise(bound(graph, graph.nodes[0])) == wanted
        with algorithms("off"):
            assert not reading.computed_otherwise(bound(graph, graph.nodes[0]))
