"""ONNX's tests of nodes: those listed pass, no other does, and all others are refused by node, operator and reason."""

from __future__ import annotations

import pytest

from tests.onnx.node_cases import cases, listed, outcomes

PARTS = 16
"""In how many parts they run, so that processors share them."""
HINT = "if that is meant, write the list anew: python -m tests.onnx.node_cases"


@pytest.mark.parametrize("part", range(PARTS))
def test_of_nodes(part: int) -> None:
    wanted = listed()
    found = list(outcomes(part, PARTS))
    lost = [f"{o.name}: {o.said}" for o in found if o.name in wanted and not o.passed]
    new = [o.name for o in found if o.passed and o.name not in wanted]
    strange = [f"{o.name}: {o.said}" for o in found if not (o.passed or o.refused) and o.name not in wanted]
    assert not lost, "\n".join(["these are listed as passing:", *lost])
    assert not new, "\n".join(["these pass and are not listed:", *new, HINT])
    assert not strange, "\n".join(["these are neither right nor refused by node, operator and reason:", *strange])


def test_the_list_names_tests() -> None:
    names = listed()
    assert names <= {case.name for case in cases()}
    assert len(names) > 700
