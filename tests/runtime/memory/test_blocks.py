"""Large blocks of memory are used again once nobody refers to them, and not before."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from opgen.dtypes import FLOAT32
from opgen.runtime.memory import blocks
from opgen.runtime.memory.address import address
from opgen.runtime.memory.buffers import empty_aligned
from tests.bindings.modules import OPS, generated
from tests.support.kernels import run_program

LENGTH = blocks.LARGE // 4
"""Elements of float32 of a block that is large."""


@pytest.fixture(autouse=True)
def _none_kept() -> Iterator[None]:
    blocks._free.clear()
    yield
    blocks._free.clear()


def test_a_large_array_gets_the_memory_of_one_that_is_gone() -> None:
    first = empty_aligned((LENGTH,), FLOAT32)
    at = address(first)
    del first
    assert address(empty_aligned((2, LENGTH // 2), FLOAT32)) == at


@pytest.mark.parametrize("keep", [lambda a: a[5:], lambda a: a.reshape(2, -1).T, memoryview, np.from_dlpack])
def test_memory_that_is_referred_to_is_left_alone(keep: Callable[[np.ndarray], object]) -> None:
    first = empty_aligned((LENGTH,), FLOAT32)
    first[...] = 3
    kept = keep(first)
    del first
    gc.collect()
    empty_aligned((LENGTH,), FLOAT32)[...] = 4
    assert np.asarray(kept).min() == 3


def test_two_arrays_at_a_time_share_nothing() -> None:
    first, second = empty_aligned((LENGTH,), FLOAT32), empty_aligned((LENGTH,), FLOAT32)
    assert not np.may_share_memory(first, second)


def test_a_block_that_is_far_too_large_is_not_taken() -> None:
    first = empty_aligned((2 * LENGTH,), FLOAT32)
    at, end = address(first), address(first) + first.nbytes
    del first
    assert not at <= address(empty_aligned((LENGTH,), FLOAT32)) < end


def test_no_more_is_kept_than_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "KEPT", 2 * blocks.LARGE + 4096)
    arrays = [empty_aligned((LENGTH,), FLOAT32) for _ in range(4)]
    assert not blocks._free
    arrays.clear()
    assert sum(m.nbytes for m in blocks._free.values()) <= blocks.KEPT
    assert len(blocks._free) == 2


def test_what_is_too_large_to_be_kept_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "KEPT", 2 * blocks.LARGE + 4096)
    small, large = empty_aligned((LENGTH,), FLOAT32), empty_aligned((3 * LENGTH,), FLOAT32)
    del small
    del large
    assert len(blocks._free) == 1


def test_smaller_arrays_are_none_of_this() -> None:
    empty_aligned((LENGTH // 2,), FLOAT32)
    assert not blocks._free


def test_repeated_calls_use_the_memory_of_results_that_are_gone() -> None:
    ops = generated(OPS)
    x, f = np.ones((1, 512, 512, 1), np.float32), np.full((1, 1, 1, 32), 2, np.float32)
    given = {"strides": [1, 1, 1, 1], "padding": "VALID"}
    prepared = ops.prepare.conv2d(x, f, **given)
    places = set()
    for run in (lambda: ops.conv2d(x, f, **given), lambda: prepared(x, f)):
        for _ in range(3):
            result = run()
            assert result.nbytes == blocks.LARGE
            places.add(address(result))
            del result
    assert len(places) == 1
    kept = prepared(x, f)
    assert address(prepared(x * 2, f)) != address(kept)
    assert (kept == 2).all()
    assert prepared(x, f, out=kept) is kept


class _Cycle:
    """Something that only a collection of garbage finds."""

    itself: _Cycle
    result: np.ndarray


def test_blocks_that_come_back_while_one_is_sought() -> None:
    """Python up to 3.11 may collect garbage wherever an object is made, also amid a look at what is kept."""
    held = [(n, n) for n in range(4000)]  # none in the interpreter's own stock of tuples
    before = gc.get_threshold()
    try:
        for count in range(25):
            gc.disable()
            cycle = _Cycle()
            cycle.itself, cycle.result = cycle, empty_aligned((LENGTH,), FLOAT32)
            del cycle
            large = [np.empty(2 * blocks.LARGE, np.uint8) for _ in range(3)]
            blocks._free.clear()
            blocks._free.update((id(m), m) for m in large)
            held += [(n, n) for n in range(50)]
            gc.set_threshold(gc.get_count()[0] + count, *before[1:])
            gc.enable()
            empty_aligned((LENGTH,), FLOAT32)
    finally:
        gc.set_threshold(*before)
        gc.enable()


FAULTS = """
    import resource
    import numpy as np
    from generated import nn_ops
    from opgen.runtime.threads import set_num_threads
    set_num_threads(1)
    rng = np.random.default_rng(0)
    x, f = (rng.standard_normal(s, dtype=np.float32) for s in ((1, 56, 56, 64), (3, 3, 64, 64)))
    faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        nn_ops.conv2d(x, f, [1, 1, 1, 1], "SAME")
    before = faults()
    for _ in range(20):
        nn_ops.conv2d(x, f, [1, 1, 1, 1], "SAME")
    print((faults() - before) / 20)
"""


def test_memory_that_kernels_give_back_is_not_made_anew_for_each_call() -> None:
    """An algorithm's kernel has megabytes of its own, and its result has 800 KB: some 1000 pages.  The second process
    finds the kernel in the cache: building one would have taught the C library, too.
    """
    for _ in range(2):
        done = run_program(FAULTS, OPGEN_ALGORITHMS="all")
        assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 20
