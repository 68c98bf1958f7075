"""Ops that are legal and unlike those of the other specs: called as a user calls them, and compared with numpy."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import opgen

SPEC = '''
op RunningSum {
  """Each element and all before it: the number of terms differs from element to element."""
  type T in {float32, int32}
  input x: T[n] """A row."""
  output y: T[n] """The sums."""
  y[i] = sum[j < i + 1](x[j])
}

op Neighbours {
  """The elements before and after, of a row that may stretch."""
  type T in {float32}
  input x: T[n | 1] """A row, or one element for all places."""
  input other: T[n | 1] shape_only """Another, of which only the length counts."""
  output y: T[n] """A hundred times the element before, plus the one after."""
  y[i] = 100 * (x[i - 1] else 3) + (x[i + 1] else 4)
}

op Added {
  """Two tensors that stretch."""
  type T in {float32}
  input x: T[n | 1, m | 1] """One."""
  input y: T[n | 1, m | 1] """The other."""
  output z: T[n, m] """The sum."""
  z[i, j] = x[i, j] + y[i, j]
}

op Correlation {
  """A row's windows, every `step` places, times a filter."""
  type T in {float32, float64}
  input x: T[n] """A row."""
  input f: T[k] """The filter."""
  attr step: int >= 1 = 1 """The distance of windows."""
  let count = ceildiv(n, step)
  output y: T[count] """One value a window."""
  y[i] = sum[r](x[i * step + r] * f[r])
}

op Gate {
  """Negates if a number exceeds thresholds that are no integers."""
  type T in {float32, float64}
  input x: T[n] """A row."""
  attr level: float = 0.5 """The number."""
  require level >= 0.125 : level "at least an eighth"
  output y: T[n] """The row, or its negative."""
  y[i] = if level > 0.25 and abs(level) * 2 < 1.5 then -x[i] else x[i]
}
'''


@pytest.fixture(scope="module")
def ops(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    path: Path = tmp_path_factory.mktemp("specs") / "unusual.op"
    path.write_text(SPEC)
    return opgen.load(str(path))


@pytest.fixture(autouse=True, params=["always", "never"])
def specialization(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels for just these sizes, and kernels for all."""
    monkeypatch.setenv("OPGEN_SPECIALIZE", request.param)


@pytest.mark.parametrize("n", [0, 1, 5, 16, 40])
def test_a_reduction_whose_length_depends_on_the_element(ops: ModuleType, n: int) -> None:
    x = np.arange(n, dtype=np.int32) * 7 - 11
    assert np.array_equal(ops.running_sum(x), np.cumsum(x))
    assert np.array_equal(ops.running_sum(x.astype(np.float32)), np.cumsum(x).astype(np.float32))


@pytest.mark.parametrize("size", [1, 4])
def test_a_stretched_row_ends_where_the_result_does(ops: ModuleType, size: int) -> None:
    given = np.arange(5, 5 + size, dtype=np.float32)
    x = np.broadcast_to(given, 4)
    expected = 100 * np.concatenate([[3], x[:-1]]) + np.concatenate([x[1:], [4]])
    assert np.array_equal(ops.neighbours(given, np.zeros(4, np.float32)), expected)


@pytest.mark.parametrize(("one", "other"), [((0, 3), (0, 3)), ((0, 1), (1, 3)), ((1, 1), (0, 0)), ((2, 0), (1, 1))])
def test_nothing_stretches_to_nothing(ops: ModuleType, one: tuple[int, int], other: tuple[int, int]) -> None:
    x, y = np.ones(one, np.float32), np.ones(other, np.float32)
    assert ops.added(x, y).shape == (x + y).shape


@pytest.mark.parametrize("step", [1, 2, 3])
def test_strided_windows_of_one_dimension(ops: ModuleType, step: int) -> None:
    x, f = np.arange(50.0), np.array([1.0, -2.0, 4.0])
    rows = np.concatenate([x, np.zeros(3)])
    expected = [rows[i : i + 3] @ f for i in range(0, 50, step)]
    assert np.array_equal(ops.correlation(x, f, step), expected)


@pytest.mark.parametrize(("level", "sign"), [(0.125, 1), (0.25, 1), (0.3, -1), (0.7, -1), (0.75, 1), (2.5, 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_conditions_on_numbers_that_are_no_integers(ops: ModuleType, level: float, sign: int, dtype: type) -> None:
    x = np.arange(1, 20, dtype=dtype)
    assert np.array_equal(ops.gate(x, level), sign * x)
    with pytest.raises(ValueError, match="at least an eighth"):
        ops.gate(x, 0.0625)
