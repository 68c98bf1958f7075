"""A kind of schedule that breaks: the plain nest is built, it is counted and right, and what it was is shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import opgen
from opgen.diagnostics import InternalError
from opgen.loop.nodes import Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.walk import loops_in
from opgen.passes import legalize as passes
from opgen.schedule import default
from opgen.schedule.auto.chain.rows import RowChain
from opgen.schedule.auto.cpu import CpuNest
from opgen.schedule.fallback import VARIABLE
from opgen.schedule.schedule import apply
from opgen.schedule.steps import Split, Step, Unroll, Vectorize

SPEC = """op {name} {{
  type T in {{float32}}
  input x: T[n, m]
  input w: T[m, k]
  output y: T[n, k]
  output z: T[m, n]
  y[i, j] = sum[r](x[i, r] * w[r, j])
  z[p, q] = exp(x[q, p])
}}
"""
CHAIN = """op {name} {{
  type T in {{float32}}
  input x: T[n, m]
  output y: T[n, m]
  let t[i] = max[j](x[i, j])
  y[i, j] = x[i, j] - t[i]
}}
"""
TWO = """
kernel two(x: float32[64, 64]) -> (y: float32[64, 64], z: float32[64, 64]):
  for i in 0..64:
    for j in 0..64:
      y[i, j] = x[i, j] + 1.0f32
  for p in 0..64:
    for q in 0..64:
      z[p, q] = x[p, q] * 2.0f32
"""
Run = Callable[[CpuNest], None]


@pytest.fixture(autouse=True)
def as_for_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Not strict, as all other tests are; and nothing comes from a cache."""
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("OPGEN_CACHE_DIR", str(tmp_path / "cache"))


def results(tmp_path: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """What an op of the two nests gives less what it should."""
    path = tmp_path / f"{name}.op"
    path.write_text(SPEC.format(name=name))
    rng = np.random.default_rng(5)
    x, w = rng.standard_normal((32, 16), np.float32), rng.standard_normal((16, 48), np.float32)
    y, z = getattr(opgen.load(path), name.lower())(x, w)
    return y - x @ w, z - np.exp(x.T)


def planted(monkeypatch: pytest.MonkeyPatch, broken: Run) -> None:
    """In place of the schedule of the nest over p and q."""
    right = CpuNest.run
    monkeypatch.setattr(CpuNest, "run", lambda self: broken(self) if "p" in self.nest.names else right(self))


def check(tmp_path: Path, name: str, count: int = 1) -> None:
    for off in results(tmp_path, name):
        np.testing.assert_allclose(off, 0, atol=1e-4)
    assert opgen.counters()[name].fallbacks == count


def raises(error: BaseException) -> Run:
    def run(nest: CpuNest) -> None:
        nest.trial.take(Split("p", 4, "exact", "p_o", "p_i"))  # what was done before must be undone
        raise error

    return run


def test_a_kind_that_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    planted(monkeypatch, raises(IndexError("planted")))
    check(tmp_path, "Raises")
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("OPGEN_DEBUG", "1")
    check(tmp_path, "Anew")
    shown = capsys.readouterr().err
    assert "IndexError: planted" in shown
    assert "in run" in shown
    assert "opgen: the nest over p, q is built without the schedule that broke\n" in shown


def test_only_that_nest_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    planted(monkeypatch, raises(IndexError("planted")))
    kernel = parse_kernel(TWO)
    schedule, after = default.scheduled(kernel)
    kinds = {s.var: s.kind for s in loops_in(after.body)}
    assert "vector" in kinds.values()
    assert kinds["p"] == "parallel"
    assert kinds["q"] == "serial"
    assert apply(kernel, schedule) == after


def test_all_tests_are_strict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted(monkeypatch, raises(IndexError("planted")))
    monkeypatch.setenv(VARIABLE, "raise")
    with pytest.raises(IndexError, match="planted"):
        results(tmp_path, "Strict")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError()], ids=["interrupt", "memory"])
def test_what_is_no_defect_goes_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    planted(monkeypatch, raises(error))
    with pytest.raises(type(error)):
        results(tmp_path, "Interrupted")


def test_a_chain_that_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nests that feed each other are then scheduled one by one."""

    def broken(*_: object) -> None:
        raise StopIteration

    monkeypatch.setattr(RowChain, "of", broken)
    path = tmp_path / "Chain.op"
    path.write_text(CHAIN.format(name="Chain"))
    x = np.random.default_rng(6).standard_normal((8, 40), np.float32)
    np.testing.assert_allclose(opgen.load(path).chain(x), x - x.max(1, keepdims=True))
    assert opgen.counters()["Chain"].fallbacks == 1


def test_a_schedule_that_cannot_be_made_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It shows only when code is made: that is tried again after each nest, and found once more in the one at fault."""

    def vectorized(nest: CpuNest) -> None:
        assert nest.trial.take(Split("q", 8, "exact", "q_o", "q_bad"), Vectorize("q_bad"))

    def refuse(kernel: Kernel) -> Kernel:
        if any(s.var == "q_bad" for s in loops_in(kernel.body)):
            raise InternalError("planted")
        return kernel

    planted(monkeypatch, vectorized)
    monkeypatch.setattr(passes, "PIPELINE", (("refuse", refuse), *passes.PIPELINE))
    check(tmp_path, "Refused", 2)


def test_a_kernel_that_no_schedule_suits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RecursionError

    monkeypatch.setattr(default, "_for_cpu", broken)
    check(tmp_path, "Unscheduled", 2)


# What LLVM would give up on --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "most", "steps"),
    [("COPIES", 100, (Unroll("p"), Unroll("q"))), ("LANES", 16, (Vectorize("q"),))],
    ids=["copies", "lanes"],
)
def test_absurd_code_is_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, steps: tuple[Step, ...]
) -> None:
    monkeypatch.setattr(f"opgen.schedule.limits.{limit}", most)
    planted(monkeypatch, lambda nest: nest.trial.take(*steps) and None)
    check(tmp_path, limit.title(), 1)
