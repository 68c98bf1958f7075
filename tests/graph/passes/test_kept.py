"""What a pass made is taken from the cache: the same graph and the same notes, for this graph alone."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from opgen.graph.ir.nodes import Graph, op_of
from opgen.graph.passes.base import Pass, Report
from opgen.graph.passes.fuse import FUSE
from opgen.graph.passes.kept import kept
from opgen.spec.loading import load_text
from opgen.spec.unparse import write_op
from tests.graph.random_graphs import MODULE, campaign
from tests.graph.steps import Steps


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPGEN_CACHE_DIR", str(tmp_path))


class Counted:
    """A pass that counts how often it runs."""

    def __init__(self, each: Pass) -> None:
        self.runs = 0
        self._each = each
        self.kept = kept(Pass(each.name, each.contract, self._apply))

    def _apply(self, graph: Graph, report: Report) -> Graph:
        self.runs += 1
        return self._each.apply(graph, report)


def test_random_graphs_come_back() -> None:
    fuse = Counted(FUSE)

    @campaign(20)
    def run(graph: Graph) -> None:
        first, second = Report(), Report()
        made = fuse.kept.run(graph, first)
        runs = fuse.runs
        assert fuse.kept.run(graph, second) == made == FUSE.run(graph)
        assert fuse.runs == runs
        assert first.notes == second.notes

    run()
    assert fuse.runs > 0


def small(factor: float = 2.0, seed: int = 0) -> Graph:
    steps = Steps()
    x = steps("Halve", steps.input(2, 3), module=MODULE, factor=factor)
    return steps.graph(steps("Scale", x, steps.random(3, seed=seed), steps.random(3, seed=seed), module=MODULE))


def test_what_tells_graphs_apart() -> None:
    fuse, graph = Counted(FUSE), small()
    fuse.kept.run(graph)
    assert fuse.kept.run(small(seed=1)).constants == small(seed=1).constants
    assert fuse.runs == 1
    text = write_op(MODULE, graph.nodes[0].op.spec).replace("T(factor) * x", "T(factor) + x")
    module = load_text(text)
    added = replace(graph, nodes=(replace(graph.nodes[0], op=op_of(module, module.ops[0])), *graph.nodes[1:]))
    for other in (small(factor=3.0), small(factor=-2.0), added, replace(graph, name="other")):
        assert fuse.kept.run(other) == FUSE.run(other)
    assert fuse.runs == 5


def test_a_result_with_constants_of_its_own_is_not_kept() -> None:
    def shifted(graph: Graph, _: Report) -> Graph:
        constants = tuple(replace(c, data=type(c.data)(c.data.array + np.float32(1))) for c in graph.constants)
        return replace(graph, constants=constants)

    shift = Counted(Pass("shift", "Adds 1 to constants.", shifted))
    assert shift.kept.run(small()) == shift.kept.run(small())
    assert shift.runs == 2


def test_an_op_is_sent_without_what_is_of_its_process() -> None:
    op = small().nodes[0].op
    assert op in {op}
    again = pickle.loads(pickle.dumps(op))
    assert again == op
    assert "_hash" not in vars(again)
    assert again.identity == op.identity
