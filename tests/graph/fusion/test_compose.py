"""A group of nodes as one op computes what they compute, and reads back from its text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import strategies as st

from opgen.compiler import toolchain
from opgen.compiler.artifact import STAGES, Stage
from opgen.compiler.make import artifact
from opgen.compiler.request import Compilation, Cuda, OpVariant
from opgen.dtypes import DTYPES
from opgen.graph.fusion import compose as composing
from opgen.graph.fusion import unify as settling
from opgen.graph.fusion.compose import compose
from opgen.graph.fusion.unify import CannotComposeError
from opgen.graph.ir.bound import bound
from opgen.graph.ir.nodes import Graph, Node
from opgen.graph.ir.replace import outside, with_nodes
from opgen.graph.ir.verify import verify
from opgen.graph.kernels.interpret import interpret
from opgen.graph.passes.fuse import FUSE
from opgen.spec.call.environment import AttrStored
from opgen.spec.loading import load_text
from tests.graph.random_graphs import assert_same, campaign, random_inputs
from tests.graph.steps import NN, Steps, uniform
from tests.support.graphs import assert_reads_back

COMPOSED: list[int] = []
"""How many nodes were put together in the random tests."""


def groups(graph: Graph) -> Iterator[tuple[Node, ...]]:
    """Connected nodes, no path out of which leads back: each node, with ever more of those that it takes from."""
    for at, node in enumerate(graph.nodes):
        group = [node]
        for other in reversed(graph.nodes[:at]):
            takes = any(v in n.inputs for n in group for v in other.outputs)
            if takes and _closed(graph, [other, *group]):
                group.insert(0, other)
                yield tuple(group)


def _closed(graph: Graph, group: Sequence[Node]) -> bool:
    names = {n.name for n in group}
    after: set[str] = set()
    for node in graph.nodes:
        reached = any(v in after for v in node.inputs)
        if node.name in names and reached:
            return False
        if (reached or any(v in m.outputs for m in group for v in node.inputs)) and node.name not in names:
            after |= set(node.outputs)
    return True


@campaign(40, choice=st.integers(0, 1000))
def test_random_groups(graph: Graph, choice: int) -> None:
    inputs = random_inputs(graph)
    found = list(groups(graph))
    if not found:
        return
    group = found[choice % len(found)]
    if not outside(graph, group):
        return
    try:
        whole = compose(graph, group, outside(graph, group))
    except CannotComposeError:
        return
    COMPOSED.append(len(group))
    assert_reads_back(whole)
    changed = verify(with_nodes(graph, {n.name: whole for n in group}), "compose")
    assert_same(interpret(changed, inputs), interpret(graph, inputs))


def assert_whole(graph: Graph, dtype: str = "float32") -> Node:
    """Asserts that all of a graph's nodes are one op, which computes the same bits; gives the node."""
    whole = compose(graph, graph.nodes, outside(graph, graph.nodes))
    assert_reads_back(whole)
    changed = verify(with_nodes(graph, dict.fromkeys(graph.node, whole)), "compose")
    inputs = uniform(graph.inputs)
    expected, found = interpret(graph, inputs), interpret(changed, inputs)
    if dtype in ("float16", "bfloat16"):
        # The single ops round the value between them to 16 bits, the whole does not: one rounding of a value of at
        # most 64, whose weight in the result is at most 2, and the result's own, rounded either way.
        unit = 2.0 ** -DTYPES[dtype].precision
        for a, b in zip(expected, found, strict=True):
            largest = np.abs(a.astype(np.float64)).max(initial=0)
            assert np.abs(a.astype(np.float64) - b.astype(np.float64)).max(initial=0) <= 4 * unit * max(largest, 1)
    else:
        assert_same(found, expected)
    return whole


WINDOWS = {"strides": (1, 2, 2, 1), "padding": "SAME", "dilations": (1, 1, 1, 1)}
PADDINGS = {"padding": "EXPLICIT", "explicit_paddings": (0, 0, 1, 2, 0, 1, 0, 0)}
EXPLICIT = {"strides": (1, 1, 2, 1), "dilations": (1, 1, 1, 1), **PADDINGS}


@pytest.mark.parametrize("attributes", [WINDOWS, EXPLICIT])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_sum_with_what_follows(attributes: dict[str, AttrStored], groups: int, dtype: str) -> None:
    steps = Steps()
    x = steps.input(2, 5, 6, 4, dtype=dtype)
    y = steps("Conv2D", x, steps.input(3, 2, 4 // groups, 6, dtype=dtype), module=NN, **attributes)
    y = steps("Norm", y, *(steps.random(6, dtype=dtype) for _ in range(4)), epsilon=0.25)
    shape = next(v.shape for v in steps.values if v.name == y)
    y = steps("Plus", y, steps.input(*shape, dtype=dtype))
    whole = assert_whole(steps.graph(steps("Ramp", y, slope=0.25)), dtype)
    paddings = ["explicit_paddings"] if "explicit_paddings" in attributes else []
    assert [a.name for a in whole.op.spec.attrs] == ["strides", *paddings, "dilations", "epsilon", "slope"]


def test_a_layout_is_put_in_place() -> None:
    steps = Steps()
    x, w = steps.input(1, 4, 5, 6), steps.input(2, 2, 4, 2)
    y = steps("DepthwiseConv2dNative", x, w, module=NN, **(WINDOWS | {"strides": (1, 1, 2, 1), "data_format": "NCHW"}))
    assert next(v.shape for v in steps.values if v.name == y) == (1, 8, 3, 6)
    y = steps("Norm", y, *(steps.random(8) for _ in range(4)), order="NCHW")
    whole = assert_whole(steps.graph(steps("Swish", y)))
    assert all(i.layout is None for i in whole.op.spec.tensors)


@pytest.mark.parametrize("groups", [1, 2])
def test_a_sum_with_what_comes_before(groups: int) -> None:
    steps = Steps()
    x = steps("Ramp", steps.input(2, 5, 6, 4), slope=-0.5)
    x = steps("Plus", x, steps.input(1, 1, 1, 4))
    assert_whole(steps.graph(steps("Conv2D", x, steps.input(3, 2, 4 // groups, 6), module=NN, **WINDOWS)))


def test_a_gradient_is_an_op_like_any_other() -> None:
    steps = Steps()
    dy, w = steps.input(1, 3, 3, 2), steps.input(3, 3, 4, 2)
    dx = steps("Conv2DBackpropInput", w, dy, module=NN, input_sizes=(1, 6, 6, 4), **WINDOWS)
    assert_whole(steps.graph(steps("Times", dx, steps.input(1, 6, 1, 4))))


def test_values_that_others_need_stay_outputs() -> None:
    steps = Steps()
    y = steps("Conv2D", steps.input(1, 4, 4, 4), steps.input(3, 3, 2, 6), module=NN, **WINDOWS)
    z = steps("Ramp", y)
    assert assert_whole(steps.graph(z, y)).outputs == (y, z)


def test_rows() -> None:
    """A normalisation of its single steps."""
    steps = Steps()
    x = steps.input(3, 5)
    d = steps("Sub", x, steps("RowMean", x))
    s = steps("Deviation", steps("RowMean", steps("Mul", d, d)))
    y = steps("Add", steps("Mul", steps("Div", d, s), steps.input(1, 5)), steps.input(1, 5))
    assert_whole(steps.graph(y))


def test_names_are_such_as_specs_may_have() -> None:
    """With a number after it, a name may hold two underscores, or be of a family of C's macros."""
    text = """
    op Twice { type T in {float32} input x_: T[n] input X: T[n] output y: T[n] y[i] = x_[i] + X[i] }
    op Sums { type T in {float32} input x_: T[n] input X: T[n] input y: T[n] output z: T[n] z[i] = x_[i] + y[i] * X[i] }
    """
    module = load_text(text)
    steps = Steps()
    x = steps("Twice", steps.input(3), steps.input(3), module=module)
    whole = assert_whole(steps.graph(steps("Sums", steps.input(3), steps.input(3), x, module=module)))
    assert [i.name for i in whole.op.spec.inputs] == ["x_", "X", "x_2", "X2"]


def test_a_size_that_follows_from_itself() -> None:
    """What is added to the result of windows is what they slide over: sizes that are equal in this call."""
    steps = Steps()
    x = steps.input(1, 4, 5, 3)
    y = steps("Conv2D", x, steps.input(3, 3, 3, 3), module=NN, **(WINDOWS | {"strides": (1, 1, 1, 1)}))
    assert_whole(steps.graph(steps("Plus", y, x)))
    assert_whole(steps.graph(steps("Plus", x, y)))


def test_named_integers_stand_before_their_use() -> None:
    """The first of two branches has a named integer of sizes that the other branch makes."""
    text = """
    op Part { type T in {float32} input x: T[a, b, c, d] let all = b * c output y: T[a, b, c, d]
      y[i, j, k, l] = x[i, j, k, l] / T(all) }
    """
    steps = Steps()
    x = steps("Part", steps.input(1, 4, 5, 3), module=load_text(text))
    same = WINDOWS | {"strides": (1, 1, 1, 1)}
    y = steps("Conv2D", steps.input(1, 4, 5, 2), steps.input(3, 3, 2, 3), module=NN, **same)
    assert_whole(steps.graph(steps("Plus", y, x)))


def test_digits_of_one_place_are_none() -> None:
    """A group with one output, whose sum with its input is one op: both factors of the channels are 1 there."""
    steps = Steps()
    x = steps.input(1, 4, 5, 3)
    y = steps("Conv2D", x, steps.input(3, 3, 1, 3), module=NN, **(WINDOWS | {"strides": (1, 1, 1, 1)}))
    assert_whole(steps.graph(steps("Plus", x, y)))


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_of_a_composed_op(stage: Stage) -> None:
    steps = Steps()
    y = steps("Conv2D", steps.input(1, 8, 8, 16), steps.input(3, 3, 16, 32), module=NN, **WINDOWS)
    y = steps("Ramp", steps("Plus", y, steps.input(1, 1, 1, 32)), slope=0.25)
    graph = steps.graph(y)
    whole = compose(graph, graph.nodes, {y})
    call = bound(with_nodes(graph, dict.fromkeys(graph.node, whole)), whole)
    target = Cuda() if stage in ("cuda", "ptx") else toolchain.host()
    source = OpVariant(whole.op.module, whole.op.spec, call.variant)
    text = artifact(Compilation(source, target, call.environment)).text(stage)
    op = "op Conv2DPlusRamp {"
    wanted = {"spec": op, "model": op, "schedule": "split", "why": "<- chosen", "ptx": ".entry"}
    assert wanted.get(stage, "conv2d_plus_ramp") in text, text[:500]


@pytest.mark.parametrize("shape", [(3, 4), (1, 4), (3, 1), (1, 1), (0, 4), (30, 40)])
def test_what_is_composed_is_the_same_whatever_was_composed_before(
    shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An op of several is made once for all sizes: no number decides what it is but those that are 1."""

    def graph(rows: int, columns: int) -> Graph:
        s = Steps()
        x, y, z = s.input(rows, columns), s.input(1, columns), s.input(rows, 1)
        h = s("Add", s("Mul", x, y), z)
        return s.graph(s("Relu", h), s("RowSum", h))

    for size in ((5, 6), (1, 6), (5, 1), (2, 2)):
        FUSE.run(graph(*size))
    found = FUSE.run(graph(*shape))
    monkeypatch.setattr(composing, "_composed", composing._composed.__wrapped__)
    monkeypatch.setattr(settling, "_settled", settling._settled.__wrapped__)
    assert FUSE.run(graph(*shape)) == found
