"""The benchmark of common ops: all of them run, whoever else is there."""

from __future__ import annotations

import sys

from click.testing import CliRunner

from opgen.spec import load
from tools import bench_ops
from tools.bench.contestants import Worker


def test_without_pytorch_there_are_times_alone() -> None:
    options = ["--op", "softmax", "--op", "column_sums", "--rounds", "1", "--peer-python", "torch=nowhere"]
    result = CliRunner().invoke(bench_ops.main, options)
    assert result.exit_code == 0, result.output
    rows = [line.split() for line in result.stdout.splitlines()[1:]]
    assert [row[0] for row in rows].count("softmax") == sum(op == "softmax" for op, _ in bench_ops.CASES)
    assert all(float(row[-1]) > 0 for row in rows)
    assert "PyTorch is in none of these interpreters" in result.output


def test_every_op_of_the_spec_is_measured() -> None:
    ops = {op.function_name for op in load(bench_ops.SPEC).ops}
    assert ops == {op for op, _ in bench_ops.CASES}


def test_an_unknown_op_is_named() -> None:
    result = CliRunner().invoke(bench_ops.main, ["--op", "soft_max"])
    assert result.exit_code == 2
    assert "unknown op 'soft_max'" in result.output


def test_contestants_get_the_same_numbers() -> None:
    """Two workers of ours agree."""
    workers = [Worker(sys.executable, "ops_worker", 1, str(bench_ops.SPEC)) for _ in range(2)]
    try:
        row = bench_ops._row("mat_vec", ((5, 7), (7,)), workers, 1)
    finally:
        for worker in workers:
            worker.close()
    assert row.own > 0
    assert row.peer > 0
