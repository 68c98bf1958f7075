"""What a process keeps of many different calls: it is bounded."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

from opgen.runtime.call import specialize
from opgen.runtime.call.specialize import Library
from opgen.runtime.kernels import loaded
from opgen.runtime.kernels.kernel import CompiledKernel
from tests.bindings.modules import OPS, generated

KEPT, SHAPES = 6, 20


def call(size: int, **more: Any) -> Any:
    x = np.arange(size * size, dtype=np.float32).reshape(1, size, size, 1)
    return generated(OPS).conv2d(x, np.full((1, 1, 1, 1), 2, np.float32), [1, 1, 1, 1], "SAME", **more)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    """A library that has made no call, where few kernels are kept."""
    found: Library = generated(OPS)._library
    found.operators["Conv2D"].forget()
    for variant in found.kernels["Conv2D"]._variants.values():
        variant.specialized.clear()
    found.kernels["Conv2D"]._from_shelf.clear()
    monkeypatch.setattr(specialize, "KEPT", KEPT)
    monkeypatch.setattr(loaded, "SPARE", KEPT)
    monkeypatch.setenv("OPGEN_SPECIALIZE", "always")
    return found


def test_kernels_of_sizes_that_are_no_longer_called_are_let_go(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive: list[weakref.ref[CompiledKernel]] = []
    build = specialize.build

    def counted(*arguments: Any) -> CompiledKernel:
        made = build(*arguments)
        alive.append(weakref.ref(made))
        return made

    monkeypatch.setattr(specialize, "build", counted)
    for size in range(1, SHAPES):
        assert call(size).flat[-1] == 2 * (size * size - 1)
        call(1)
    gc.collect()
    assert len(alive) >= SHAPES - 1
    assert sum(r() is not None for r in alive) <= 2 * KEPT
    for size in range(1, SHAPES):
        assert call(size).flat[-1] == 2 * (size * size - 1)


def test_a_kernel_that_is_let_go_while_others_run_it(library: Library) -> None:
    wrong: list[int] = []

    def work(seed: int) -> None:
        for k in range(120):
            size = 1 + (k * 7 + seed) % SHAPES
            if call(size).flat[-1] != 2 * (size * size - 1):
                wrong.append(size)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert wrong == []


def test_a_name_is_not_kept(library: Library) -> None:
    operator = library.operators["Conv2D"]
    for k in range(20):
        call(3, name=f"{k}" * 100_000)
    assert len(operator._plans) <= 2
    assert len(operator._last) == 1
    assert max(map(len, operator._last)) < 1000
