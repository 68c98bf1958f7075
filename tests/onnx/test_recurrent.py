"""ONNX's own tests of what goes step by step: running sums and recurrent networks, all directions and layouts."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import pytest

import opgen
from opgen.diagnostics import UserError

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


def _with_activations(operator: str, words: list[str], direction: str, **more: object) -> Any:
    gates, directions = {"RNN": 1, "GRU": 3, "LSTM": 4}[operator], 2 if direction == "bidirectional" else 1
    shapes = {"x": [2, 1, 4], "w": [directions, 3 * gates, 4], "r": [directions, 3 * gates, 3]}
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    given = {**({"activations": words} if words else {}), **more}
    node = helper.make_node(operator, list(shapes), ["y"], hidden_size=3, direction=direction, **given)
    inputs = [helper.make_tensor_value_info(n, kind, s) for n, s in shapes.items()]
    output = helper.make_tensor_value_info("y", kind, [2, directions, 1, 3])
    model = helper.make_model(
        helper.make_graph([node], "recurrent", inputs, [output]), opset_imports=[helper.make_opsetid("", 14)]
    )
    rng = np.random.default_rng(1)
    return opgen.compile(model)(*(rng.standard_normal(s).astype(np.float32) for s in shapes.values()))


@pytest.mark.parametrize("operator", ["RNN", "GRU", "LSTM"])
def test_activations(operator: str) -> None:
    """Those that ONNX takes where none are given may be said; others are refused, in either direction."""
    usual = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}[operator]
    plain = _with_activations(operator, [], "bidirectional")
    np.testing.assert_array_equal(_with_activations(operator, 2 * usual, "bidirectional"), plain)
    numbers = {"activation_alpha": [0.5], "activation_beta": [2.0, 3.0]}  # which these activations do not have
    np.testing.assert_array_equal(_with_activations(operator, 2 * usual, "bidirectional", **numbers), plain)
    for words, direction in (
        ([*usual[:-1], "Relu"], "forward"),
        ([*usual, *usual[:-1], "Relu"], "bidirectional"),
    ):
        with pytest.raises(UserError, match="argument 'activations': expected"):
            _with_activations(operator, words, direction)
