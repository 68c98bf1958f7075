"""Large temporary results of kernels lie in memory that is kept for the next call."""

from __future__ import annotations

import ctypes
import random
import resource
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import opgen
from opgen.runtime import threads
from opgen.runtime.kernels import temporaries
from opgen.runtime.memory import temporaries_ir
from opgen.runtime.memory.blocks import LARGE
from opgen.runtime.native.library import Library, load_library
from tests.support.kernels import output_of

SPEC = """
op Twice {
  input x: float32[n, m]
  output y: float32[n, m]
  let sums[i] = sum[j < m](x[i, j]) where i < n
  let scaled[i, j] = sum[k < i + 1](x[k, j]) / (1.0 + sums[i] * sums[i]) where i < n, j < m
  y[i, j] = scaled[n - 1 - i, j] + scaled[i, m - 1 - j]
}
"""


class Memory:
    """The code, loaded anew; `most` bytes may be idle."""

    def __init__(self, most: int = 4 * LARGE) -> None:
        names = (temporaries_ir.TAKE, temporaries_ir.GIVE, temporaries_ir.MOST)
        self.library: Library = load_library(threads.object_code(temporaries_ir.IR), *names)
        take, give, word = (self.library.address(name) for name in names)
        self.take = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(take)
        self.give = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(give)
        ctypes.c_int64.from_address(word).value = most


@pytest.fixture
def memory() -> Memory:
    return Memory()


def test_a_large_block_is_kept_for_one_that_is_about_as_large(memory: Memory) -> None:
    first = memory.take(LARGE + 1000)
    ctypes.memset(first, 1, LARGE + 1000)
    memory.give(first)
    again = memory.take(LARGE)
    assert again == first
    other = memory.take(LARGE)
    assert other != first
    memory.give(again)
    memory.give(other)
    assert memory.take(2 * LARGE) not in (first, other)


def test_no_more_is_kept_than_may_be() -> None:
    """In a new process: in one with a large heap `malloc` may give memory that is resident already."""
    program = "from tests.runtime.memory.test_temporaries import blocks_in_use; print(*blocks_in_use())"
    taken, given, huge = map(float, output_of(program).split())
    assert taken > 5.5
    assert given < 4.5
    assert huge < 4.5


def blocks_in_use() -> Iterator[float]:
    """Memory in use, in blocks: of six that are taken, after they are given back, after a larger one is."""
    memory = Memory()
    blocks = [memory.take(LARGE) for _ in range(6)]
    before = resident()
    for block in blocks:
        ctypes.memset(block, 1, LARGE)
    yield (resident() - before) / LARGE
    for block in blocks:
        memory.give(block)
    yield (resident() - before) / LARGE
    huge = memory.take(5 * LARGE)
    ctypes.memset(huge, 1, 5 * LARGE)
    memory.give(huge)
    yield (resident() - before) / LARGE


def resident() -> int:
    return 4096 * int(Path("/proc/self/statm").read_text().split()[1])


def test_more_blocks_at_once_than_there_are_slots(memory: Memory) -> None:
    blocks = [memory.take(LARGE) for _ in range(temporaries_ir.SLOTS + 5)]
    assert len(set(blocks)) == len(blocks)
    for block in blocks:
        memory.give(block)


@pytest.mark.parametrize("seed", range(3))
def test_threads_never_share_a_block(memory: Memory, seed: int) -> None:
    wrong: list[object] = []

    def work(number: int) -> None:
        rng, held = random.Random(100 * seed + number), []
        for step in range(300):
            if held and rng.random() < 0.5:
                block, mark = held.pop(rng.randrange(len(held)))
                if ctypes.c_int64.from_address(block).value != mark:
                    wrong.append((seed, number, step))
                memory.give(block)
            else:
                block, mark = memory.take(rng.choice([100, LARGE, 2 * LARGE])), 1000 * number + step
                ctypes.c_int64.from_address(block).value = mark
                held.append((block, mark))
        for block, _ in held:
            memory.give(block)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def faults(call: object, times: int = 4) -> float:
    """Pages that are made anew in each call."""
    assert callable(call)
    call()
    call()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        call()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / times


def test_an_op_makes_no_pages_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "twice.op"
    path.write_text(SPEC)
    x, y = np.ones((20, 1 << 19), np.float32), np.empty((20, 1 << 19), np.float32)
    ops = opgen.load(path)
    monkeypatch.setenv("OPGEN_NUM_THREADS", "1")
    assert faults(lambda: ops.twice(x, out=y)) < 100


def test_the_machine_says_how_much_is_kept() -> None:
    library = temporaries._library()
    most = ctypes.c_int64.from_address(library.address(temporaries_ir.MOST)).value
    assert 0 < most <= temporaries_ir.KEPT
