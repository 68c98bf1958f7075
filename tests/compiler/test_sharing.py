"""Which kernels of known sizes share their work among threads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import opgen
from generated import nn_ops
from opgen.runtime import threads
from opgen.runtime.kernels import kernel, loaded


def call(size: int) -> np.ndarray:
    x, w = np.ones((1, size, size, 17), np.float32), np.ones((3, 3, 17, 16), np.float32)
    return nn_ops.conv2d(x, w, [1, 1, 1, 1], "SAME")


@pytest.mark.parametrize(("size", "shares"), [(3, False), (40, True)])
def test_small_work_is_done_by_the_caller_alone(size: int, shares: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[kernel.CompiledKernel] = []
    build = kernel.CompiledKernel.__init__

    def recorded(self: kernel.CompiledKernel, *arguments: object, **named: object) -> None:
        build(self, *arguments, **named)
        made.append(self)

    monkeypatch.setattr(kernel.CompiledKernel, "__init__", recorded)
    loaded.forget()
    call(size)
    assert [k.parallel for k in made] == [shares]
    bound = made[0].words((0,) * len(made[0].kernel.buffers), (), 2)
    assert (bound[0], bound[1]) == ((threads.parallel_for().address, 2) if shares else (0, 1))


@pytest.mark.parametrize(("size", "shares"), [(3, False), (40, True)])
def test_so_is_that_of_generic_kernels(size: int, shares: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPGEN_SPECIALIZE", "never")
    bound: list[kernel.BoundKernel] = []
    bind = kernel.CompiledKernel.bind

    def recorded(self: kernel.CompiledKernel, *arguments: object) -> kernel.BoundKernel:
        bound.append(bind(self, *arguments))
        return bound[-1]

    monkeypatch.setattr(kernel.CompiledKernel, "bind", recorded)
    monkeypatch.setattr(threads, "get_num_threads", lambda: 2)
    nn_ops._conv2d.forget()
    call(size)
    nn_ops._conv2d.forget()
    (found,) = bound
    assert found.packed()[1] == (2 if shares else 1)


TRIANGLES = """op Triangles {
  input x: float32[n]
  attr k: int >= 0
  output y: float32[n]
  y[i] = sum[j < k // (i + 1)](sum[r < j](x[r])) + (if i < k then sum[j < n // k](x[j]) else 0)
}
"""


def test_loops_that_depend_on_others_are_estimated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A generic kernel whose loops' ends vary, or are ruled out where a size divides by 0."""
    monkeypatch.setenv("OPGEN_SPECIALIZE", "never")
    (tmp_path / "triangles.op").write_text(TRIANGLES)
    run = opgen.load(tmp_path / "triangles.op").triangles
    x = np.arange(1, 6, dtype=np.float32)
    for k in (0, 2, 3):
        sums = [sum(x[:j].sum() for j in range(k // (i + 1))) + (x[: 5 // k].sum() if i < k else 0) for i in range(5)]
        assert run(x, k=k).tolist() == sums
