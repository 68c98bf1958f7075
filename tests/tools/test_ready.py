"""How long models take until their first result: the table, and the whole of it on a small model."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from tests.onnx.models import float_input, model, node
from tools.models.manifest import Input, Manifest, write
from tools.ready import Row, Start, main, show


def test_the_slowest_from_the_cache_comes_first() -> None:
    rows = [
        Row("quick", Start(9.0, 12.0), (Start(0.5, 0.3), Start(0.25, 0.2)), 3.2),
        Row("slow", Start(1.0, 2.0), (Start(0.75, 0.6),), 100.0),
    ]
    stream = io.StringIO()
    show(Console(file=stream, width=160), rows)
    found = [line.split() for line in stream.getvalue().splitlines()]
    assert found[1:] == [
        ["slow", "1.00", "2.00", "0.75", "0.60", "100"],
        ["quick", "9.00", "12.00", "0.25", "0.20", "3"],
    ]


@pytest.mark.parametrize(("most", "status"), [("100", 0), ("0.001", 1)])
def test_a_small_model(tmp_path: Path, most: str, status: int) -> None:
    path = tmp_path / "small.onnx"
    path.write_bytes(model([node("Relu", ["x"], ["y"])], [float_input("x", (3,))]).SerializeToString())
    write(Manifest("small", path, "a small model", ((Input("x", "float32", (3,)),),)))
    done = CliRunner().invoke(main, [str(tmp_path), "--runs", "1", "--threads", "1", "--most", most])
    assert done.exit_code == status, done.output
    name, cold, _, cached, _, _ = done.output.splitlines()[-1].split()
    assert name == "small"
    assert 0 < float(cached) < float(cold)
