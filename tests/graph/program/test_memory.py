"""Memory of models: new sizes add little, and a model that is deleted gives back what it took."""

from __future__ import annotations

import ctypes
import gc
import weakref

import numpy as np
import pytest

import opgen
from opgen.runtime.kernels.loaded import Loaded
from opgen.runtime.native.library import Library
from tests.bindings.modules import SAMPLES
from tests.support.kernels import output_of

MIB = 1 << 20

PROGRAM = """
    import ctypes, gc
    import numpy as np
    import opgen
    from tests.bindings.modules import SAMPLES

    ops = opgen.load(SAMPLES)

    def resident():
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        return 4 * int(open("/proc/self/statm").read().split()[1]) / 1024
"""

SIZES = """
    model = opgen.compile(lambda a, b: ops.mat_mul(ops.mat_mul(a, b), b))
    for rows in range(1, 401):
        model(np.ones((rows, 3), np.float32), np.ones((3, 3), np.float32))
        if rows == 100:
            before = resident()
    print(resident() - before)
"""

WEIGHTS = """
    weights = np.ones((2048, 2048), np.float32)
    rows = np.ones((2048, 2048), np.float32)

    def run():
        return opgen.compile(lambda a: ops.mat_mul(ops.mat_mul(a, weights), weights))(rows)[0, 0]

    def small():
        return opgen.compile(lambda a: ops.mat_mul(ops.mat_mul(a, weights[:4, :4]), weights[:4, :4]))(rows[:, :4])

    small()
    before = resident()
    assert run() == 2048 * 2048
    print(resident() - before)
"""


@pytest.mark.parametrize("cache", ["on", "off"])
def test_new_sizes_add_little(cache: str) -> None:
    """3,000 sizes are to stay within 100 MiB, so 300 within 10."""
    assert float(output_of(PROGRAM + SIZES, OPGEN_CACHE=cache)) < 10


def test_a_deleted_model_gives_back_its_memory() -> None:
    """Its prepared weights and its arena take 16 MiB each."""
    assert float(output_of(PROGRAM + WEIGHTS, OPGEN_NUM_THREADS="1")) < 8


def test_code_is_unloaded_with_the_last_program_that_runs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opgen.runtime.kernels.loaded._loaded", Loaded())
    monkeypatch.setattr("opgen.runtime.kernels.loaded.SPARE", 0)
    ops, ones = opgen.load(SAMPLES), np.ones((5, 5), np.float32)
    model = opgen.compile(lambda a: ops.mat_mul(ops.mat_mul(a, a), a))
    assert (model(ones) == 25).all()
    programs = model.model(ones).programs
    libraries = [weakref.ref(code.library) for p in programs for code in p.codes]
    assert all(isinstance(x(), Library) for x in libraries)
    del programs, model
    gc.collect()
    assert libraries
    assert not [x() for x in libraries if x() is not None]


def test_libraries_take_no_memory_once_they_are_gone() -> None:
    from opgen.graph.program import arena_ir
    from opgen.runtime import threads
    from opgen.runtime.native.library import load_library

    def resident() -> int:
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    code = threads.object_code(arena_ir.IR)
    load_library(code, arena_ir.RUN)
    before = resident()
    for _ in range(2000):
        load_library(code, arena_ir.RUN)
    assert resident() - before < 2 * MIB
