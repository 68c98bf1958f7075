"""The support matrix: a part of it is right, and a planted fault of each kind is found."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from opgen.diagnostics.calls import ArgumentValueError
from opgen.grad.load import load
from tests.support.repository import ROOT
from tests.verification.support_matrix import convolutions
from tests.verification.support_matrix.__main__ import main
from tests.verification.support_matrix.convolutions import Cell, Matrix, cells
from tools.reference import Sums

MODULE = load(ROOT / "specs" / "nn_ops.op")
DENSE = MODULE.op("Conv2D")
OPS = ("--op", "Conv2D", "--op", "DepthwiseConv2dNative", "--op", "Conv2DBackpropFilter")
Function = Callable[..., np.ndarray]


@pytest.fixture
def functions(generated: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("OPGEN_SPECIALIZE", "never")
    found = importlib.util.spec_from_file_location("matrix_ops", generated)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return dict(vars(module))


def cell(padding: str, strides: tuple[int, ...] = (1, 2, 1, 1)) -> Cell:
    """The first float32 cell without padding lists, in NHWC and without dilation."""
    wanted = {"padding": padding, "strides": strides, "dilations": (1, 1, 1, 1), "data_format": "NHWC"}
    return next(c for c in cells(MODULE, DENSE) if c.dtype == "float32" and dict(c.attrs) == wanted)


def test_a_part_of_the_matrix_is_right(generated: Path, fresh_module: None) -> None:
    result = CliRunner().invoke(
        main, ["--quick", "--jobs", "1", *OPS, "--module", str(generated)], env={"OPGEN_SPECIALIZE": ""}
    )
    assert result.exit_code == 0, result.output
    for name in (*OPS[1::2], "float16", "bfloat16", "float32", "float64", "int32"):
        assert name in result.output


def test_the_cells_of_an_op_cover_all_its_types_words_and_integers() -> None:
    seen: dict[str, set[object]] = {}
    for c in cells(MODULE, DENSE):
        seen.setdefault("dtype", set()).add(c.dtype)
        for name, value in c.attrs:
            seen.setdefault(name, set()).add(value)
        assert "use_cudnn_on_gpu" not in dict(c.attrs)
    assert seen["dtype"] == {"float16", "bfloat16", "float32", "float64", "int32"}
    assert seen["data_format"] == {"NHWC", "NCHW"}
    assert seen["padding"] == {"SAME", "VALID", "EXPLICIT"}
    threes = {(1, 3, 1, 1), (1, 1, 3, 1)}
    assert len(seen["strides"]) == len(seen["dilations"]) == 16 + len(threes)
    assert threes <= seen["strides"] & seen["dilations"]


def test_some_cells_have_all_pairs_of_values_that_all_have() -> None:
    op = MODULE.op("depthwise_conv2d")
    some, every = (
        [c for _, c in convolutions.chosen_cells(MODULE, [op], amount) if c.has_meaning] for amount in ("some", "all")
    )
    assert len(some) < len(every) / 3
    pairs, wanted = ({p for c in found for p in convolutions.pairs_of(c.dtype, c)} for found in (some, every))
    assert pairs == wanted
    assert every == [c for c in cells(MODULE, op) if c.has_meaning]


def test_sizes_are_given_in_every_form_that_means_the_same() -> None:
    op = MODULE.op("Conv2DBackpropInput")
    lengths = {(len(dict(c.sizes)["input_sizes"]), c.images[-1] // c.weights[2]) for c in cells(MODULE, op)
               if dict(c.attrs)["data_format"] == "NHWC"}  # fmt: skip
    assert lengths == {(4, 1), (4, 2), (2, 1)}


def test_an_unknown_op_is_refused() -> None:
    assert CliRunner().invoke(main, ["--op", "Conv3D"]).exit_code == 2


def test_a_right_cell_and_a_rightly_refused_one(functions: dict[str, Any]) -> None:
    matrix = Matrix(MODULE, functions, seed=0)
    assert matrix.judge(cell("SAME"), 0) == "right"
    assert matrix.judge(cell("SAME", (2, 1, 1, 1)), 0) == "refused rightly"
    assert matrix.judge(cell("EXPLICIT"), 0) == "refused rightly"


def wrong_by_one_bit(function: Function) -> Function:
    def faulty(**arguments: object) -> np.ndarray:
        result = function(**arguments).copy()
        result.view(np.uint8).reshape(-1)[0] ^= 1
        return result

    return faulty


def refusing(_: Function) -> Function:
    def faulty(**arguments: object) -> np.ndarray:
        raise ArgumentValueError("Conv2D", "strides", "something else", "this")

    return faulty


def broken(_: Function) -> Function:
    def faulty(**arguments: object) -> np.ndarray:
        raise ZeroDivisionError("division by zero")

    return faulty


def accepting(function: Function) -> Function:
    def faulty(**arguments: object) -> np.ndarray:
        return function(**{**arguments, "strides": [1, 1, 1, 1]})

    return faulty


@pytest.mark.parametrize(
    ("fault", "strides", "verdict"),
    [
        (wrong_by_one_bit, (1, 2, 1, 1), "wrong: differs from the interpreter"),
        (accepting, (1, 2, 1, 1), "wrong: differs from the interpreter"),
        (refusing, (1, 2, 1, 1), "refused: Conv2D: argument 'strides': expected something else, given this"),
        (broken, (1, 2, 1, 1), "wrong: ZeroDivisionError: division by zero"),
        (accepting, (2, 1, 1, 1), "wrong: accepted, though it has no meaning"),
    ],
)
def test_faults_are_found(
    functions: dict[str, Any], fault: Callable[[Function], Function], strides: tuple[int, ...], verdict: str
) -> None:
    functions["conv2d"] = fault(functions["conv2d"])
    assert Matrix(MODULE, functions, seed=0).judge(cell("SAME", strides), 0) == verdict


def test_an_error_of_the_meaning_itself_is_found(functions: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernel and interpreter agree, and both are wrong: only the reference can tell."""
    right = convolutions.expected

    def wrong(c: Cell, tensors: Mapping[str, np.ndarray]) -> Sums:
        sums = right(c, tensors)
        return Sums(sums.values + 1e-4, sums.magnitudes)

    monkeypatch.setattr(convolutions, "expected", wrong)
    assert Matrix(MODULE, functions, seed=0).judge(cell("SAME"), 0).endswith("times the error that rounding allows")
