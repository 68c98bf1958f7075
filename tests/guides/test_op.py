"""A worked example of CONTRIBUTING's guide "An op": from a spec to a function, its pages and its gradient."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
from click.testing import CliRunner

import opgen
from opgen.cli import main

SPEC = '''"""Losses."""

op Huber {
  """The Huber loss of each row: quadratic up to `delta`, linear beyond."""

  type T in {float32, float64}

  input predictions: T[rows, columns]
    """Scores of a model."""
  input targets: T[rows, columns]
    """Labels."""
  attr delta: float = 1.0
    """The error from which on the loss is linear."""
  output loss: T[rows]
    """The mean loss of each row."""

  let error[i, j] = abs(predictions[i, j] - targets[i, j])
  let least[i, j] = min(error[i, j], T(delta))
  loss[i] = sum[j](least[i, j] * (error[i, j] - T(0.5) * least[i, j])) / T(columns)

  example "An error below `delta`, and one above" {
    predictions = [[0.5, 3.0]]
    targets = [[0.0, 0.0]]
    loss = [1.3125]
  }
}
'''


def opgen_(*arguments: str) -> str:
    done = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_an_op_from_its_spec_to_a_gradient(tmp_path: Path) -> None:
    spec = tmp_path / "losses.op"
    spec.write_text(SPEC)
    opgen_("check", str(spec))  # the example is computed, too
    opgen_("fmt", "--check", str(spec))
    opgen_("generate", str(spec), "-o", str(tmp_path / "generated"))
    assert "huber" in (tmp_path / "generated" / "losses.md").read_text().lower()

    place = importlib.util.spec_from_file_location("losses", tmp_path / "generated" / "losses.py")
    assert place is not None
    assert place.loader is not None
    losses = importlib.util.module_from_spec(place)
    place.loader.exec_module(losses)
    rng = np.random.default_rng(1)
    predictions, targets = rng.standard_normal((2, 5, 7))
    error = np.abs(predictions - targets)
    expected = np.where(error <= 0.75, error**2 / 2, 0.75 * (error - 0.375)).mean(axis=1)
    np.testing.assert_allclose(losses.huber(predictions, targets, delta=0.75), expected, rtol=1e-12)

    slope = opgen.gradient(losses.huber, "predictions")
    found = slope(predictions, targets, grad_loss=np.ones(5))
    np.testing.assert_allclose(found, np.clip(predictions - targets, -1, 1) / 7, rtol=1e-12)
