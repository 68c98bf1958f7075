"""The passes that every model goes through, all in a row: the results are those of the graph as it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opgen.graph.ir.nodes import Graph
from opgen.graph.kernels.interpret import interpret
from opgen.graph.passes.base import run_passes
from opgen.graph.passes.standard import STANDARD
from tests.graph.random_graphs import campaign, random_inputs


def test_random_graphs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Constants that go into weights round elsewhere: so the last bits may differ."""
    monkeypatch.setenv("OPGEN_CACHE_DIR", str(tmp_path))

    @campaign(80)
    def run(graph: Graph) -> None:
        after = run_passes(graph, STANDARD)
        assert after.inputs == graph.inputs
        assert after.result_names == graph.result_names
        inputs = random_inputs(graph)
        for expected, found in zip(interpret(graph, inputs), interpret(after, inputs), strict=True):
            assert (expected.dtype, expected.shape) == (found.dtype, found.shape)
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)

    run()
