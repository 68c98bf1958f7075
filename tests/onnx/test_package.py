"""opgen without the package `onnx`: every way to a model names what to install."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.onnx.models import model, node

WITHOUT = """
import sys
for name in ("onnx", "google"):
    sys.modules[name] = None
from opgen.cli import main
main(sys.argv[1:])
"""
"""The command line where neither `onnx` nor what it brings can be imported."""


@pytest.mark.parametrize(
    "command",
    [("run", "m.onnx", "--random"), ("inspect", "m.onnx"), ("build", "m.onnx", "-o", "out")],
    ids=lambda command: command[0],
)
def test_commands_name_the_package_that_is_missing(command: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(model([node("Relu", ["x"], ["y"])]).SerializeToString())
    done = subprocess.run([sys.executable, "-c", WITHOUT, *command], cwd=tmp_path, capture_output=True, text=True)
    assert "pip install 'opgen[onnx]'" in done.stderr
    assert "internal error" not in done.stderr
    assert done.returncode == 1
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]
