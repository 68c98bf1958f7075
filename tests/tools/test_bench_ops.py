"""The benchmark of common ops: all of them run, whoever else is there."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from click.testing import CliRunner

from opgen.spec import load
from tools import bench_ops
from tools.bench.contestants import Worker
from tools.bench.op_rows import CASES, MODULE, ROWS, SPEC, OpRow
from tools.bench.workers.ops_worker import Ops
from tools.bench.workers.protocol import Given

JOINED = OpRow("onnx_ops", "concat", ("3x5", "3x2"), (("axis", 1),), together=True)
PLACES = OpRow("onnx_ops", "gather", ("9x4", "3:int64<9"))


def test_without_pytorch_there_are_times_alone() -> None:
    options = ["--op", "softmax", "--op", "column_sums", "--rounds", "1", "--peer-python", "torch=nowhere"]
    result = CliRunner().invoke(bench_ops.main, options)
    assert result.exit_code == 0, result.output
    rows = [line.split() for line in result.stdout.splitlines()[1:]]
    assert [row[0] for row in rows].count("softmax") == sum(row.op == "softmax" for row in ROWS)
    assert all(float(row[-1]) > 0 for row in rows)
    assert "PyTorch is in none of these interpreters" in result.output


def test_every_op_of_the_spec_is_measured() -> None:
    ops = {op.function_name for op in load(SPEC).ops}
    assert ops == {op for op, _ in CASES}


def test_there_are_sixty_rows_and_more_each_with_a_function_of_pytorch() -> None:
    worker = (Path(bench_ops.__file__).parent / "bench/workers/torch_functions.py").read_text()
    assert len(ROWS) >= 60
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert [row.op for row in ROWS if f'"{row.op}"' not in worker] == []


def test_ops_of_onnx_are_called_as_a_user_calls_them() -> None:
    """Several tensors as a list, attributes, integers below a limit; what it finds is what numpy finds."""
    given = [Given(row.case, 0).inputs for row in (JOINED, PLACES)]
    ops = Ops(1, str(SPEC), str(MODULE))
    joined, taken = (ops.prepare("ops", row.case, Given(row.case, 0)).run() for row in (JOINED, PLACES))
    np.testing.assert_array_equal(joined, np.concatenate(given[0], 1))
    np.testing.assert_array_equal(taken, given[1][0][given[1][1]])


def test_an_unknown_op_is_named() -> None:
    result = CliRunner().invoke(bench_ops.main, ["--op", "soft_max"])
    assert result.exit_code == 2
    assert "unknown op 'soft_max'" in result.output


def test_contestants_get_the_same_numbers() -> None:
    """Two workers of ours agree."""
    workers = [Worker(sys.executable, "ops_worker", 1, str(SPEC), str(MODULE)) for _ in range(2)]
    try:
        row = bench_ops._row(OpRow("common_ops", "mat_vec", ("5x7", "7")), workers, 1)
    finally:
        for worker in workers:
            worker.close()
    assert row.own > 0
    assert row.peer > 0
