"""ONNX's operators on the GPU: the first cells of each one's matrix that run, beside the interpreter."""

from __future__ import annotations

import pytest

from opgen.grad import load
from opgen.runtime.devices.cuda_driver import cuda_available
from opgen.spec.model.model import Version
from tests.verification.support_matrix import on_cuda
from tests.verification.support_matrix.operators import SPECS, operators, running

pytestmark = pytest.mark.gpu

VERSIONS = operators(load(SPECS), ()) if cuda_available() else []
CELLS = 2
"""Of each operator."""


@pytest.mark.parametrize("version", VERSIONS, ids=[v.op for v in VERSIONS])
def test_cells_are_right(version: Version) -> None:
    for cell in running(load(SPECS), version, 0, CELLS):
        verdict = on_cuda.judge(cell, 0, "cuda")
        assert verdict in ("right", "refused rightly", "left out"), f"{cell}\n{verdict}"
