"""Running the command as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from opgen.cli import main

ROOT = Path(__file__).resolve().parents[2]

Run = Callable[..., "subprocess.CompletedProcess[str]"]

GOOD = '''"""Small ops."""

op ScaledSum {
  """alpha times x, plus y."""

  type T in {float32, float64}

  input x: T[count]
    """The scaled term."""
  input y: T[count]
    """The other term."""
  attr alpha: float = 2.0
    """The factor of `x`."""
  output z: T[count]
    """The sum."""

  z[i] = alpha * x[i] + y[i]
}
'''

BAD = GOOD.replace("x[i] + y[i]", "x[i] + w[i]").replace("input y: T[count]", "input y: U[count]")


@pytest.fixture
def opgen(tmp_path: Path) -> Run:
    """Runs `opgen ...` in a new folder, with an empty kernel cache and no terminal."""

    def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        env = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "OPGEN_CACHE_DIR": str(tmp_path / "cache"),
            **environment,
        }
        command = [sys.executable, "-m", "opgen", *map(str, arguments)]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)

    return run


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """As `opgen`, within this process: faster, for what does not depend on a process of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPGEN_CACHE_DIR", str(tmp_path / "cache"))

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        result = CliRunner().invoke(main, list(map(str, arguments)))
        return subprocess.CompletedProcess(arguments, result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """A spec without mistakes, formatted."""
    path = tmp_path / "small.op"
    path.write_text(GOOD)
    return path


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    """A spec with two mistakes."""
    path = tmp_path / "bad.op"
    path.write_text(BAD)
    return path
