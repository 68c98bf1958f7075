"""The matrix of ONNX's operators: its rows cover all pairs, a part of it is right, and planted faults are found."""

from __future__ import annotations

import itertools
import os
import random
import time
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from opgen.diagnostics.calls import ArgumentValueError
from opgen.grad import load
from opgen.graph.compiled.compiled import CompiledModel
from opgen.runtime.devices.emulation import EmulatedKernel
from tests.verification.support_matrix import judge, on_cuda, references, workers
from tests.verification.support_matrix.__main__ import main
from tests.verification.support_matrix.cells import Cell, Given, cells
from tests.verification.support_matrix.covering import covering
from tests.verification.support_matrix.operators import SPECS

MODULE = load(SPECS)


def test_rows_cover_all_pairs() -> None:
    factors = {"a": range(5), "b": range(3), "c": (True, False), "d": "wxyz"}
    rows = covering(factors, random.Random(0), 100)
    for one, other in itertools.combinations(factors, 2):
        pairs = {(row[one], row[other]) for row in rows}
        assert pairs == set(itertools.product(factors[one], factors[other]))
    assert len(rows) <= 26  # of 20 at least, and 120 combinations


def test_cells_have_all_types_ranks_and_words() -> None:
    (version,) = (v for v in MODULE.versions if v.op == "GatherElements")
    found = list(cells(MODULE, version, 28, 0))
    assert {len(c.inputs[0].shape) for c in found if c.inputs[0]} == {0, 1, 2, 3, 4, 5}
    assert {c.inputs[1].dtype for c in found if c.inputs[1]} == {"int32", "int64"}
    assert {c.attributes.get("axis") for c in found} >= {None, 0, 1, -1}
    assert found == list(cells(MODULE, version, 28, 0))


def test_a_part_of_it_is_right() -> None:
    result = CliRunner().invoke(
        main, ["--sample", "4", "--jobs", "1", "--op", "Relu", "--op", "Gather", "--op", "Transpose"]
    )
    assert result.exit_code == 0, result.output
    assert "all 3" in result.output


def test_an_operator_that_is_not_there() -> None:
    assert CliRunner().invoke(main, ["--op", "Conv3D"]).exit_code == 2


RELU = Cell("Relu", "Relu", 14, (Given("X", "float32", (2, 3)),))
OUTSIDE = Cell("Softmax", "Softmax", 13, (Given("input", "float32", (2, 3)),), {"axis": 2})


def wrong_by_one_bit(run: Any) -> Any:
    def faulty(self: object, inputs: Any) -> Any:
        found = {name: array.copy() for name, array in run(self, inputs).items()}
        for array in found.values():
            array.view(np.uint8).reshape(-1)[0] ^= 1
        return found

    return faulty


def refusing(_: Any) -> Any:
    def faulty(*_: object) -> Any:
        raise ArgumentValueError("Relu", "X", "something else", "this")

    return faulty


def broken(_: Any) -> Any:
    def faulty(*_: object) -> Any:
        raise ZeroDivisionError("division by zero")

    return faulty


def test_cells_are_judged() -> None:
    assert judge.judge(RELU, 0) == "right"
    assert judge.judge(OUTSIDE, 0) == "refused rightly"


@pytest.mark.parametrize(
    ("fault", "verdict"),
    [
        (wrong_by_one_bit, "wrong: differs from the interpreter by bits"),
        (refusing, "refused: Relu: argument 'X': expected something else, given this"),
        (broken, "wrong: ZeroDivisionError: division by zero"),
    ],
)
def test_faults_are_found(fault: Any, verdict: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CompiledModel, "run", fault(CompiledModel.run))
    assert judge.judge(RELU, 0) == verdict


def test_an_error_of_the_meaning_itself_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "expected", lambda *_: [np.ones((2, 3))])
    assert judge.judge(RELU, 0).startswith("wrong: result 0 is ")


def test_what_the_standard_forbids_is_not_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "forbidden", lambda *_: "it says so")
    assert judge.judge(RELU, 0) == "accepted: it says so"
    assert references.Unknown is judge.Unknown


def fate(task: str) -> str:
    if task == "crash":
        os.abort()
    if task == "hang":
        time.sleep(60)
    return task


def test_what_crashes_or_hangs_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "PATIENCE", 1.0)
    found = workers.verdicts(["a", "crash", "b", "hang", "c"], fate, 2, 3, lambda _: None)
    assert found == ["a", "wrong: ended by SIGABRT", "b", "wrong: nothing for 1 s", "c"]


# CUDA C ----------------------------------------------------------------------------------------------------------


def test_a_part_of_it_is_right_in_cuda_c() -> None:
    ops = ("Relu", "Gather", "NonZero")
    named = [word for op in ops for word in ("--op", op)]
    result = CliRunner().invoke(main, ["--device", "emulated", "--sample", "2", "--jobs", "1", *named])
    assert result.exit_code == 0, result.output
    assert "6 cells of ONNX's operators" in result.output
    (row,) = (line for line in result.output.splitlines() if "all 3" in line)
    right, refused = (int(cell) for cell in row.split("│")[2:4])
    assert right + refused == 6, result.output  # none left out


@pytest.mark.parametrize(
    ("fault", "verdict"),
    [
        (lambda a, reverse: a ^ 1, "wrong: differs from the interpreter by bits"),
        (lambda a, reverse: a ^ reverse, "wrong: InternalError: 'Y' depends on the order of threads"),
    ],
)
def test_faults_in_cuda_c_are_found(fault: Any, verdict: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = EmulatedKernel.__call__

    def faulty(self: EmulatedKernel, arrays: Any, parameters: Any, *, reverse: bool = False) -> Any:
        found = run(self, arrays, parameters, reverse=reverse)
        return {name: fault(a.view(np.uint32), reverse).view(a.dtype) for name, a in found.items()}

    monkeypatch.setattr(EmulatedKernel, "__call__", faulty)
    assert on_cuda.judge(RELU, 0, "emulated") == verdict
