"""Which kernels of known sizes share their work among threads."""

from __future__ import annotations

import numpy as np
import pytest

from generated import nn_ops
from opgen.runtime import kernel, threads


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
    kernel.forget_kernels()
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
