"""A new pass takes one file: its place among the others, what is run after it, and where it is shown come of that."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from opgen.cli.inspect_model import Inspected
from opgen.diagnostics import InternalError
from opgen.graph.compiled.staged import stages
from opgen.graph.ir.edit import edited
from opgen.graph.ir.nodes import Graph
from opgen.graph.passes import standard
from opgen.graph.passes.base import Pass, Report
from opgen.graph.passes.order import ordered
from tests.graph.steps import Steps

PAGE = Path(__file__).parents[3] / "opgen" / "graph" / "README.md"


def _apply(graph: Graph, report: Report) -> Graph:
    """Name the nodes by their number."""
    report.note(NUMBERED.name, graph.name, f"{len(graph.nodes)} nodes")
    return edited(graph, [replace(node, name=f"number_{k}") for k, node in enumerate(graph.nodes)])


NUMBERED = Pass("numbered", "Nodes are named by their number.", _apply, after=("views",), then=("dead",))


def test_it_has_its_place() -> None:
    names = [p.name for p in ordered((NUMBERED, *standard.PASSES))]
    at = names.index("numbered")
    assert names.index("views") < at
    assert names[at + 1] == "dead"
    names[at : at + 2] = []
    assert names == [p.name for p in standard.STANDARD]


def test_inspect_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standard, "STANDARD", ordered((NUMBERED, *standard.PASSES)))
    steps = Steps()
    y = steps("Relu", steps.input(2, 3))
    shown = Inspected(stages(steps.graph(y))).text("graph", None)
    assert "\n# numbered: Nodes are named by their number.\ngraph " in shown
    assert "number_0" in shown
    assert "\n# fold, as before: What depends on constants alone" in shown


def test_passes_that_wait_for_each_other_are_refused() -> None:
    with pytest.raises(InternalError, match="passes one, two comes after another"):
        ordered(Pass(name, "", _apply, after=(other,)) for name, other in (("one", "two"), ("two", "one")))


def test_the_page_has_all_passes_as_they_are_declared() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([\w, ]*) \| ([\w, ]*) \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.M)
    declared = [(p.name, ", ".join(p.after), ", ".join(p.then), p.contract) for p in standard.PASSES]
    assert [tuple(part.strip() for part in row) for row in rows] == declared
