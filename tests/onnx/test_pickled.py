"""Compiled models and functions go to other processes."""

from __future__ import annotations

import functools
import multiprocessing
import pickle
from pathlib import Path

import numpy as np
import pytest

import opgen
from generated import nn_ops
from tests.onnx.models import float_input, model, node


@opgen.compile
def blurred(image, taps):  # type: ignore[no-untyped-def]
    return nn_ops.conv2d(image, taps, [1, 1, 1, 1], "SAME")


def whole() -> bytes:
    """A model of two nodes."""
    nodes = [node("Relu", ["x"], ["h"]), node("Softmax", ["h"], ["y"])]
    return bytes(model(nodes, [float_input("x", ("n", 5))]).SerializeToString())


def run(compiled, *given):  # type: ignore[no-untyped-def]
    return compiled(*given)


@pytest.mark.parametrize("by", ["path", "bytes"])
def test_a_model_runs_in_a_process_of_its_own(by: str, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(whole())
    compiled = opgen.compile(tmp_path / "m.onnx" if by == "path" else whole())
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    expected = compiled(x)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply(run, (compiled, x))
    np.testing.assert_array_equal(found, expected)


def test_models_of_messages_and_models_come_back() -> None:
    import onnx

    from opgen.onnx.load import load

    x = np.ones((2, 5), np.float32)
    for source in (onnx.ModelProto.FromString(whole()), load(whole())):
        compiled = opgen.compile(source)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(compiled))(x), compiled(x))


def test_a_decorated_function_and_a_generated_one_run_in_a_process_of_their_own() -> None:
    image, taps = np.ones((1, 4, 4, 1), np.float32), np.ones((2, 2, 1, 1), np.float32)
    expected = blurred(image, taps)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        np.testing.assert_array_equal(pool.apply(run, (blurred, image, taps)), expected)
        np.testing.assert_array_equal(pool.apply(nn_ops.conv2d, (image, taps, [1, 1, 1, 1], "SAME")), expected)


def test_gradients_and_functions_without_a_name_come_back() -> None:
    image, taps = np.ones((1, 4, 4, 1), np.float32), np.ones((2, 2, 1, 1), np.float32)
    part = opgen.compile(functools.partial(nn_ops.conv2d, filter=taps, strides=[1, 1, 1, 1], padding="SAME"))
    gradients = [(blurred.gradient(wrt), (image, taps)) for wrt in ("taps", ["image", "taps"])]
    for compiled, given in (*gradients, (part, (image,))):
        again = pickle.loads(pickle.dumps(compiled))
        for found, expected in zip(again(*given), compiled(*given), strict=True):
            np.testing.assert_array_equal(found, expected)
