"""A fault planted in any pass is found by the random graphs that the pass is tested on, or by the verifier after it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pytest

from opgen.diagnostics import InternalError
from opgen.graph.fusion import scaled
from opgen.graph.fusion.linear import ZERO, Affine
from opgen.graph.ir import scratch
from opgen.graph.ir.bound import Bound
from opgen.graph.ir.nodes import Array, Graph, Node, Op
from opgen.graph.kernels.interpret import interpret
from opgen.graph.passes import common, dead, fold, results, shapes, views
from opgen.graph.passes import fold_post_scale as affine
from opgen.graph.passes.base import Pass, Report
from opgen.spec.model import model as m
from tests.graph.random_graphs import assert_same, campaign, random_inputs
from tests.graph.steps import Steps

Plant: TypeAlias = "Callable[[pytest.MonkeyPatch], Pass]"


def in_dead(patch: pytest.MonkeyPatch) -> Pass:
    """Nodes that only later outputs depend on go."""
    patch.setattr(dead, "needed", lambda g, real=dead.needed: real(replace(g, outputs=g.outputs[:1], output_names=())))
    return dead.DEAD


def in_common(patch: pytest.MonkeyPatch) -> Pass:
    """Nodes are the same whatever their attributes."""
    patch.setattr(common, "repr", lambda _: "", raising=False)
    return common.COMMON


def in_fold(patch: pytest.MonkeyPatch) -> Pass:
    """What is worked out is nothing."""

    def nothing(call: Bound, arrays: Sequence[Array | None]) -> tuple[Array, ...]:
        return tuple(np.zeros_like(a) for a in real(call, arrays))

    real = fold.worked_out
    patch.setattr(fold, "_found", OrderedDict())
    patch.setattr(fold, "worked_out", nothing)
    return fold.FOLD


def in_results(patch: pytest.MonkeyPatch) -> Pass:
    """The wrong outputs go."""

    def wrong(op: Op, lost: frozenset[str]) -> Op:
        return real(op, frozenset(o.name for o in op.spec.outputs if o.name not in lost))

    real = results._without
    patch.setattr(results, "_without", wrong)
    return results.RESULTS


def in_shapes(patch: pytest.MonkeyPatch) -> Pass:
    """Sizes are told the wrong way round."""

    def wrong(graph: Graph, node: Node, report: Report) -> Node:
        told = real(graph, node, report)
        if told is node:
            return node
        return replace(told, attributes=tuple((n, v[::-1] if isinstance(v, tuple) else v) for n, v in told.attributes))

    real = shapes._told
    patch.setattr(shapes, "_told", wrong)
    return shapes.SHAPES


def in_views(patch: pytest.MonkeyPatch) -> Pass:
    """Whatever gives as many elements as it takes moves nothing."""
    patch.setattr(views, "view_of", lambda call: 0 if len(call.op.spec.tensors) == 1 == len(call.results) else None)
    return views.VIEWS


def in_affine(patch: pytest.MonkeyPatch) -> Pass:
    """What is added is forgotten."""

    def wrong(value: m.Expr, tensor: str, dtype: str) -> Affine | None:
        found = real(value, tensor, dtype)
        return None if found is None else replace(found, term=ZERO)

    real = scaled.affine_in
    patch.setattr(scaled, "affine_in", wrong)
    scratch.forget()
    return affine.AFFINE


PLANTS: tuple[Plant, ...] = (in_dead, in_common, in_fold, in_results, in_shapes, in_views)


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """Other tests do not see results that were computed with a fault in place."""
    yield
    scratch.forget()


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@pytest.mark.parametrize(
    "plant", [in_dead, in_common, in_fold, in_results, in_shapes, in_views], ids=lambda p: p.__name__
)
def test_random_graphs_find_it(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    each = plant(monkeypatch)

    @campaign(400, shrinks=False)
    def run(graph: Graph) -> None:
        inputs = random_inputs(graph)
        assert_same(interpret(each.run(graph), inputs), interpret(graph, inputs))

    with pytest.raises((AssertionError, InternalError)):
        run()


def test_what_is_moved_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random graphs seldom have constants that scale and move a sum's results."""
    steps = Steps()
    y = steps("MatMul", steps.input(3, 4), steps.random(4, 5))
    graph = steps.graph(steps("Add", steps("Mul", y, steps.random(1, 5)), steps.random(1, 5)))
    inputs = random_inputs(graph)
    np.testing.assert_allclose(interpret(affine.AFFINE.run(graph), inputs)[0], interpret(graph, inputs)[0], rtol=1e-5)
    found = in_affine(monkeypatch).run(graph)
    assert found != graph
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(interpret(found, inputs)[0], interpret(graph, inputs)[0], rtol=1e-5)
