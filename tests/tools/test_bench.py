"""The benchmark: its protocol, its arithmetic, and a sitting on tiny layers."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tools.bench import __main__ as bench
from tools.bench import report
from tools.bench.contestants import Contestant, Worker, WorkerError, importable, own_worker
from tools.bench.layers import LAYERS, QUICK, Case, read_cases
from tools.bench.limits import Limits
from tools.bench.limits import measure as measure_limits
from tools.bench.session import Row, measure
from tools.bench.workers.protocol import arguments
from tools.demo.agreement import relative_error

SMALL = Case("small", "dense", 1, 6, 7, 3, 8, 3, 3, 2, "SAME")
CHANNELWISE = Case("small_channels", "depthwise", 1, 6, 7, 4, 8, 3, 3, 1, "VALID")


@pytest.fixture(scope="module")
def worker(generated: Path) -> Iterator[Worker]:
    running = own_worker(generated)
    yield running
    running.close()


def test_the_layers_file_is_read_in_full() -> None:
    cases = read_cases(LAYERS, (1, 8))
    assert len(cases) == 2 * len(json.loads(LAYERS.read_text())["layers"])
    assert set(QUICK) <= {case.layer for case in cases}
    first = next(c for c in cases if c.layer == "r50_conv1" and c.batch == 8)
    assert first.output_shape == (8, 112, 112, 64)
    assert first.flops == 2 * 8 * 112 * 112 * 64 * 7 * 7 * 3
    assert first.bytes == 4 * (8 * 224 * 224 * 3 + 7 * 7 * 3 * 64 + 8 * 112 * 112 * 64)


def test_a_filter_for_each_channel_has_fewer_terms() -> None:
    assert CHANNELWISE.filter_shape == (3, 3, 4, 2)
    assert CHANNELWISE.output_shape == (1, 4, 5, 8)
    assert CHANNELWISE.flops == 2 * 4 * 5 * 8 * 9


def test_an_unknown_layer_is_refused() -> None:
    with pytest.raises(SystemExit, match="no layer named nothing in"):
        read_cases(LAYERS, (1,), ("nothing",))


@pytest.mark.parametrize("case", [SMALL, CHANNELWISE])
def test_our_worker_computes_what_the_case_says(worker: Worker, case: Case, tmp_path: Path) -> None:
    from tools import reference

    path = tmp_path / "result.npy"
    Contestant(worker, "generated").prepare(case, 3, 1, path)
    data, weights = arguments(case.as_json(), 3)
    call = reference.Call([1, case.stride, case.stride, 1], [1, 1, 1, 1], case.padding, (), "NHWC")
    taps = weights if case.kind == "dense" else weights.reshape(reference.channelwise(weights.shape))
    assert np.load(path).shape == case.output_shape
    assert relative_error(np.load(path), reference.forward(data, taps, call), "float32") <= 1


def test_a_sitting_gives_each_contestant_a_median(worker: Worker) -> None:
    row = measure(SMALL, 1, [Contestant(worker, "generated")], 0, rounds=2)
    assert set(row.seconds) == {"opgen"}
    assert 0 < row.seconds["opgen"] < 1
    assert (row.refused, row.disagree) == ({}, {})


def test_what_a_worker_refuses_is_a_row_and_not_the_end(worker: Worker) -> None:
    case = Case("impossible", "dense", 1, 2, 2, 3, 8, 5, 5, 1, "VALID")
    row = measure(case, 1, [Contestant(worker, "generated")], 0, rounds=1)
    assert row.seconds == {}
    assert "a window no taller than the padded input" in row.refused["opgen"]
    assert measure(SMALL, 1, [Contestant(worker, "generated")], 0, rounds=1).seconds


def test_a_worker_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match="No module named 'not_there'"):
        Worker(sys.executable, "opgen_worker", str(tmp_path / "not_there.py"))


def test_only_what_an_interpreter_has_is_a_peer() -> None:
    assert importable(sys.executable, "numpy")
    assert not importable(sys.executable, "a_library_that_nobody_has")


def test_results_that_differ_are_found(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A contestant that answers with another seed's result computes something else."""

    class Other(Contestant):
        @property
        def title(self) -> str:
            return "other"

        def prepare(self, case: Case, seed: int, threads: int, result: Path | None) -> None:
            super().prepare(case, seed + 1, threads, result)

    row = measure(SMALL, 1, [Contestant(worker, "generated"), Other(worker, "generated")], 0, rounds=1)
    assert set(row.disagree) == {"other"}
    assert row.disagree["other"] > 0.1


def test_the_limits_are_those_of_a_computer() -> None:
    limits = measure_limits(1, quick=True)
    assert 1e9 < limits.flops < 1e13
    assert 1e8 < limits.bytes < 1e13
    assert Limits(1, 100.0, 10.0).seconds(200, 10) == 2.0
    assert Limits(1, 100.0, 10.0).seconds(200, 50) == 5.0


def test_a_busy_machine_is_said_to_be_busy() -> None:
    assert report.busy(0.9, 2) is None
    assert report.busy(3.0, 2) == (
        "others use this machine (load 3.0, 2 processors): the times are not to be trusted"
    )  # fmt: skip


ROWS = (
    Row(SMALL, 1, {"opgen": 1.0, "peer": 2.0}),
    Row(CHANNELWISE, 1, {"opgen": 4.0, "peer": 2.0}),
    Row(SMALL, 2, {"peer": 2.0}, {"opgen": "no"}),
)


def test_means_and_the_worst_row() -> None:
    assert [report.ratio(row, "opgen", "peer") for row in ROWS] == [0.5, 2.0, None]
    assert report.geometric_mean([0.5, 2.0, None]) == pytest.approx(1.0)
    assert report.geometric_mean([]) is None
    assert [report.worst(row, "opgen", ["peer"]) for row in ROWS] == [0.5, 2.0, math.inf]


def test_the_table_has_losses_first_and_says_what_was_refused() -> None:
    from rich.console import Console

    console = Console(width=160, record=True, file=open("/dev/null", "w"))  # noqa: SIM115  (only the record is read)
    limits = [Limits(1, 1e9, 1e9), Limits(2, 2e9, 2e9)]
    report.show_rows(console, ROWS, limits, "opgen", ["peer"])
    report.show_means(console, ROWS, "opgen", ["peer"])
    report.show_refusals(console, ROWS)
    lines = console.export_text().split("\n")
    order = [line.split()[1] for line in lines if line.startswith("│ small") and "│" in line]
    assert order == ["small", "small_channels", "small"]
    assert "refused by opgen: small/1/forward, 2 threads: no" in lines
    assert any(line.split()[1:3] == ["all", "│"] for line in lines if line.startswith("│ all"))


def test_a_whole_sitting_prints_tables_and_writes_json(generated: Path, tmp_path: Path) -> None:
    layers = tmp_path / "layers.json"
    small = {"name": "a", "kind": "dense", "in_height": 8, "in_width": 8, "in_channels": 4, "out_channels": 8,
             "filter_height": 3, "filter_width": 3, "stride": 1, "padding": "SAME", "data_format": "NHWC"}  # fmt: skip
    layers.write_text(json.dumps({"layers": [small]}))
    output = tmp_path / "results.json"
    arguments = [
        "--quick",
        "--layers",
        layers,
        "--layer",
        "a",
        "--module",
        generated,
        "--json",
        output,
        "--threads",
        "1",
    ]
    result = CliRunner().invoke(bench.main, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    for words in ("limits of this machine", "% of limit", "a tiny call, opgen", "first call of another kernel: built"):
        assert words in result.output
    document = json.loads(output.read_text())
    assert [row["case"]["layer"] for row in document["rows"]] == ["a"]
    assert document["rows"][0]["seconds"]["opgen"] > 0
    assert {o["name"] for o in document["overheads"]} >= {"opgen generate specs", "a tiny call, opgen"}
