"""ONNX's own tests of what goes step by step: running sums and recurrent networks, all directions and layouts."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import pytest

import opgen

onnx = pytest.importorskip("onnx")
OPERATORS = {"CumSum", "RNN", "GRU", "LSTM"}
LEAST = 20
"""Tests that there are at least; more come with newer versions of ONNX."""


@functools.cache
def _tests() -> dict[str, Any]:
    """The tests of nodes of these operators, by name."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {case.name: case for case in collect_testcases(None)}
    return {n: c for n, c in found.items() if {node.op_type for node in c.model.graph.node} <= OPERATORS}


def test_all_of_them() -> None:
    names = sorted(_tests())
    assert len(names) >= LEAST, names
    for name, case in _tests().items():
        model = opgen.compile(case.model)
        for inputs, outputs in case.data_sets:
            found = model(*inputs)
            results = found if isinstance(found, tuple) else (found,)
            assert len(results) == len(outputs), name
            for result, right in zip(results, outputs, strict=True):
                np.testing.assert_allclose(result, right, rtol=1e-4, atol=1e-6, err_msg=name)
