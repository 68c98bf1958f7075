"""Models beside a peer: what counts as right, the order of the table, and the whole of it on a small model."""

from __future__ import annotations

import io
import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from tools.bench import models
from tools.bench.contestants import Worker, WorkerError
from tools.bench.models import Row, difference, load, losses_first, show
from tools.bench.peers import Found
from tools.bench.workers.protocol import save

X = np.array([[1.0, -100.0], [np.nan, np.inf]], np.float32)


def test_what_is_right_and_what_is_wrong() -> None:
    assert difference({"x": X}, {"x": X.copy()}) == ""
    near, far = X.copy(), X.copy()
    near[0, 0], far[0, 0] = 1.09, 1.11
    assert difference({"x": near}, {"x": X}) == ""
    assert difference({"x": far}, {"x": X}) == "x: differs by 0.0011 of the largest"
    elsewhere = X.copy()
    elsewhere[1, 1] = -np.inf
    assert difference({"x": elsewhere}, {"x": X}) == "x: infinities or NaNs elsewhere"
    assert difference({"x": X}, {"y": X}) == "results x instead of y"
    assert difference({"x": X[0]}, {"x": X}) == "x: float32[2] instead of float32[2, 2]"
    assert difference({"x": X.astype(np.float64)}, {"x": X}) == "x: float64[2, 2] instead of float32[2, 2]"
    whole = np.array([1000000, 2], np.int64)
    assert difference({"n": whole}, {"n": whole + np.array([1, 0])}) == "n: 1 of 2 elements differ"
    zeros = np.zeros(3, np.float32)
    assert difference({"x": zeros + np.float32(1e-9)}, {"x": zeros}) == "x: differs by 1e-09 of the largest"


def test_results_go_through_a_file(tmp_path: Path) -> None:
    results = {"onnx::Shape/1": X, "file": np.arange(3), "names": np.zeros((0, 2), np.bool_)}
    save(str(tmp_path / "r.npz"), results)
    found = load(tmp_path / "r.npz")
    assert list(found) == list(results)
    assert difference(found, results) == ""


def test_losses_come_first() -> None:
    def row(name: str, own: float, **kinds: str) -> Row:
        return Row(name, 0, "1x2", compared=True, seconds={"opgen": own, models.PEER: 1.0}, **kinds)

    rows = [row("fast", 0.5), row("slow", 4.0), row("bad", 0.1, wrong="x: differs"), Row("no", 1, "3", refused="why")]
    assert [r.model for r in losses_first(rows)] == ["bad", "no", "slow", "fast"]
    stream = io.StringIO()
    show(Console(file=stream, width=160), rows, Found((), {models.PEER: "not in python"}))
    text = stream.getvalue()
    assert "absent: ONNX Runtime: not in python" in text
    assert "wrong: bad at 1x2: x: differs" in text
    assert "refused: no at 3: why" in text
    assert "2 of 4 models are right at all their sizes" in text
    assert [float(r.ratio or 0) for r in rows[:2]] == [2.0, 0.25]


def test_a_worker_that_does_not_answer_is_ended(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.json")  # nobody writes to it
    worker = Worker(sys.executable, "model_worker", 1, limit=60.0)
    worker._limit = 0.2
    case = {"manifest": str(tmp_path / "m.json"), "size": 0}
    begin = time.perf_counter()
    with pytest.raises(WorkerError, match=r"no answer within 0\.2 s"):
        worker.ask({"do": "prepare", "variant": "", "case": case, "seed": 0, "offset": 0, "result": ""})
    worker.close()
    assert time.perf_counter() - begin < 30


def test_many_sizes_are_summed_up() -> None:
    def row(number: int, grown: float, **kinds: str) -> Row:
        facts = {"opgen": {"programs": float(number), "bytes": grown * 2**20}}
        return Row("m", number, f"1x{number}", compared=True, facts=facts, **kinds)

    stream = io.StringIO()
    console = Console(file=stream, width=160)
    assert models.show_changing(console, [row(1, 8), row(2, 4), row(3, 1), row(3, 0)])
    assert not models.show_changing(console, [row(1, 8), row(2, 4, wrong="x: differs")])
    assert stream.getvalue().splitlines() == [
        "4 of 4 sizes are right; at most 3 programs; memory grew by 12 MiB in the first half, 1 MiB in the second",
        "wrong: m at 1x2: x: differs",
        "1 of 2 sizes are right; at most 2 programs; memory grew by 8 MiB in the first half, 4 MiB in the second",
    ]
