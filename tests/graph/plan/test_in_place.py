"""Results that are written over operands: less memory, and the same bits; where it must not be, it is not."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import opgen.passes.in_place
import opgen.runtime.kernels.loaded
from opgen.dtypes import FLOAT32
from opgen.graph.compiled.compiled import CompiledModel
from opgen.graph.ir.bound import Kind
from opgen.graph.ir.nodes import Array, Graph
from opgen.graph.kernels.interpret import compiled, interpret
from opgen.graph.passes.base import run_passes
from opgen.graph.passes.fuse import FUSE
from opgen.graph.program.explain import memory, nodes_text, plan_text
from opgen.graph.program.program import Program, program
from opgen.graph.program.programs import Passed
from opgen.loop.nodes import Kernel
from opgen.runtime.kernels.loaded import Loaded
from opgen.spec.loading import load_text
from tests.graph.random_graphs import MODULE, SEED, assert_same, random_inputs
from tests.graph.steps import NN, OPS, Steps, as_it_is, uniform


def shared(made: Program) -> list[tuple[int, int, int]]:
    """Node, operand and result of what is written over."""
    return [(node, k, r) for node, pairs in made.in_place.items() for k, r in pairs]


def run(graph: Graph, inputs: dict[str, Array]) -> tuple[Program, tuple[Array, ...]]:
    model = CompiledModel.of_graph(graph)
    for arena in model.pool.arenas:
        arena[...] = 0xFF
    found = model(*inputs.values())
    return model.programs[0].program, found if isinstance(found, tuple) else (found,)


def checked(graph: Graph) -> Program:
    """The graph's program; asserts that it computes what the nodes do one by one, each with memory of its own."""
    inputs = random_inputs(graph)
    made, found = run(graph, inputs)
    assert_same(found, interpret(graph, inputs, compiled))
    assert made.bound <= made.arena
    return made


# Where it is done ------------------------------------------------------------------------------------------------


def test_a_chain_takes_one_place() -> None:
    steps = Steps()
    x, y = steps.input(64, 64), steps.input(1, 64)
    for _ in range(5):
        x = steps("Add", x, y)
    made = checked(steps.graph(x))
    assert shared(made) == [(node, 0, 0) for node in range(1, 5)]
    assert made.arena == 0, "all of it is written where the caller wants the result"
    assert made.apart == 2 * 64 * 64 * 4


def test_a_product_takes_the_place_of_what_is_added() -> None:
    steps = Steps()
    x = steps.input(64, 32)
    h = steps("MatMul", x, steps.random(32, 64))
    y = steps("Add", steps("MatMul", steps("Relu", h), steps.random(64, 64, seed=1)), h)
    graph = run_passes(steps.graph(steps("MatMul", y, steps.random(64, 64, seed=2))), (FUSE,))
    made = checked(graph)
    assert [graph.nodes[node].inputs[k] for node, k, _ in shared(made)] == [graph.nodes[0].outputs[0]]
    assert made.arena == 2 * 64 * 64 * 4 < made.apart == 3 * 64 * 64 * 4


def test_windows_with_a_residual() -> None:
    steps = Steps()
    same = {"strides": (1, 1, 1, 1), "padding": "SAME"}
    h = steps("Conv2D", steps.input(1, 8, 8, 16), steps.random(3, 3, 16, 16), module=NN, **same)
    a = steps("Conv2D", steps("Ramp", h), steps.random(3, 3, 16, 16, seed=1), module=NN, **same)
    y = steps("Plus", a, h)
    graph = run_passes(steps.graph(steps("Largest", y)), (FUSE,))
    made, (found,) = run(graph, inputs := dict(uniform(graph.inputs)))
    assert len(shared(made)) == 1
    np.testing.assert_array_equal(found, interpret(graph, inputs, compiled)[0])


def test_it_is_said_what_is_written_over_what() -> None:
    steps = Steps()
    x = steps.input(16, 16)
    for _ in range(3):
        x = steps("Relu", x)
    graph = steps.graph(steps("RowSum", x))
    made = checked(graph)
    lines = plan_text(graph, made).splitlines()
    assert [line.partition("; ")[2] for line in lines if "written over" in line] == [
        "v1_y is written over v0_y",
        "v2_y is written over v1_y",
    ]
    assert memory(made, 1)[2] == "in place 2 results over operands; else the arena would take 1.0 KiB more"
    assert nodes_text(graph, made).count(", over v") == 2


# Where it is not -------------------------------------------------------------------------------------------------


def ends_in(steps: Steps, name: str, *outputs: str) -> list[tuple[int, int]]:
    """What the last node so far shares, where what it makes is no output, but summed."""
    node = len(steps.nodes) - 1
    made = checked(steps.graph(*outputs, steps("RowSum", name)))
    return list(made.in_place.get(node, ()))


def test_inputs_constants_and_outputs_stay() -> None:
    steps = Steps()
    assert ends_in(steps, steps("Add", steps.input(16, 16), steps.random(16, 16))) == []
    steps = Steps()
    h = steps("Relu", steps.input(16, 16))
    assert ends_in(steps, steps("Relu", h), h) == []
    steps = Steps()
    h = steps("Relu", steps.input(16, 16))
    assert ends_in(steps, steps("Relu", h)) == [(0, 0)]


def test_what_is_read_later_stays() -> None:
    steps = Steps()
    h = steps("Relu", steps.input(16, 16))
    y = steps("Relu", h)
    assert not checked(steps.graph(steps("RowSum", y), steps("RowSum", h))).in_place


def test_a_view_that_is_read_later_stays() -> None:
    steps = Steps()
    h = steps("Relu", steps.input(8, 8))
    view = steps("Join", h, module=MODULE)
    y = steps("Relu", h)
    made = checked(steps.graph(steps("RowSum", y), steps("Negate1", view, module=MODULE)))
    assert made.views == (1,)
    assert list(made.in_place) == [4], "not what reads the operand before the view is read"


def test_an_operand_that_is_taken_twice_stays() -> None:
    steps = Steps()
    h = steps("Relu", steps.input(16, 16))
    assert ends_in(steps, steps("Add", h, h)) == []
    view = steps("Cut", steps("Join", h, module=MODULE), module=MODULE, width=16)
    assert ends_in(steps, steps("Add", h, view)) == []


@pytest.mark.parametrize("op", ["Turn", "Product", "Peak", "Centre"])
def test_what_is_read_elsewhere_stays(op: str) -> None:
    """Turned, in a sum, in a maximum of columns; of rows less their mean all is read before any is stored."""
    steps = Steps()
    h = steps("Relu", steps.input(48, 48))
    others = [steps("Relu", steps.input(48, 48))] if op == "Product" else []
    assert ends_in(steps, steps(op, h, *others, module=MODULE)) == ([(0, 0)] if op == "Centre" else [])


def test_what_stretches_and_what_has_another_type_stays() -> None:
    steps = Steps()
    row, h = steps("Relu", steps.input(1, 16)), steps.input(16, 16)
    assert ends_in(steps, steps("Add", row, h)) == []
    steps = Steps()
    whole = steps("Whole", steps("Relu", steps.input(16, 16)), module=MODULE)
    made = checked(steps.graph(steps("RowSum", whole, module=MODULE)))
    assert not made.in_place, "its elements are as wide, but of another type"


def test_general_kernels_have_places_of_their_own() -> None:
    steps = Steps()
    x = steps.input(16, 16)
    for _ in range(3):
        x = steps("Relu", x)
    graph = steps.graph(x)
    assert not program(graph, [None] * len(graph.nodes)).in_place
    assert program(graph).in_place


def test_kernels_for_several_sizes_write_over_operands() -> None:
    """The sizes beyond the first of a model whose inputs vary."""

    def prepare(kinds: Mapping[str, Kind], _: Mapping[str, Array]) -> Passed:
        steps = Steps()
        x = steps.input(*kinds["x0"][1])
        for _ in range(3):
            x = steps("Relu", steps("Add", x, steps.random(1, 32)))
        return as_it_is(steps.graph(x))

    model = CompiledModel("rows", {"x0": FLOAT32}, prepare)
    for rows in range(1, 14):
        x = np.random.default_rng(rows).random((rows, 32), np.float32)
        model(x)
    ((*_, last),) = (model.programs,)
    assert isinstance(last.program, Program)
    assert len(last.program.in_place) == 5


def test_one_of_two_results_takes_an_operand() -> None:
    steps = Steps()
    h = steps("Relu", steps.input(16, 16))
    first, second = steps.several("Both", h, module=PAIRS)
    made = checked(steps.graph(steps("RowSum", first), steps("RowSum", second)))
    assert [pair for pairs in made.in_place.values() for pair in pairs] == [(0, 1)], "the first is stored first"


PAIRS = load_text(
    '''
op Both {
  """Two results of one operand."""
  type T in {float32}
  input x: T[a, b] """Values."""
  output y: T[a, b] """Twice."""
  output z: T[a, b] """Half."""
  y[i, j] = 2 * x[i, j]
  z[i, j] = x[i, j] / 2
}
''',
    "pairs.op",
)


# Random graphs, and a fault --------------------------------------------------------------------------------------

GRAPHS = int(os.environ.get("OPGEN_GRAPHS", 24))


def drawn(number: int) -> Graph:
    """Some steps on matrices, each on values made not long before, which most often end there.

    Few of them make numbers that need many bits: all sums are exact, in whatever order.
    """
    rng = random.Random(SEED * 10_000 + number)
    steps, size = Steps(), rng.choice((4, 16, 20, 37))
    given = [
        steps.input(size, size),
        steps.input(size, size),
        steps.constant(np.arange(size, dtype=np.float32)[None] - 3),
    ]
    last = [given[0]]
    rare = ["MatMul", "Mul", "Mul", *(["Centre"] if size in (4, 16) else [])]
    for _ in range(rng.randint(3, 8)):
        op = rng.choice(("Relu", "Relu", "Turn", "Add", "Add", "Sub", *rare))
        if op in rare:
            rare.remove(op)
        x = rng.choice(last[-2:])
        if op in ("Add", "Sub", "Mul", "MatMul"):
            last.append(steps(op, x, rng.choice(given[:2] if op == "MatMul" else [*given, *last[-3:]][:5])))
        else:
            last.append(steps(op, x, module=MODULE if op in ("Centre", "Turn") else OPS))
    return steps.graph(last[-1], *rng.sample(last, rng.choice((0, 0, 1))))


@pytest.mark.parametrize("part", range(2))
def test_random_graphs(part: int) -> None:
    print(f"OPGEN_SEED={SEED}")
    found = 0
    for number in range(part, GRAPHS, 2):
        graph = drawn(number)
        found += bool(checked(graph).in_place)
        checked(run_passes(graph, (FUSE,)))
    assert found >= GRAPHS / 6, "what is looked at is there"


def test_a_fault_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Were everything allowed, a graph would compute something else."""
    monkeypatch.setenv("OPGEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(opgen.runtime.kernels.loaded, "_loaded", Loaded())
    monkeypatch.setattr(opgen.passes.in_place, "may_overwrite", same_dimensions)

    def all_checked() -> None:
        for number in range(20):
            checked(drawn(number))

    with pytest.raises(AssertionError, match="is not"):
        all_checked()


def same_dimensions(kernel: Kernel, operand: str, result: str) -> bool:
    """What remains of the question without the proof."""
    (x,), (y,) = ([b for b in kernel.buffers if b.name == name] for name in (operand, result))
    return (x.dtype, x.shape) == (y.dtype, y.shape)
