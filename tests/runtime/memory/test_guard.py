"""Arrays between protected pages."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable

import numpy as np
import pytest

from opgen.runtime.memory.guard import Side, guarded_copy, guarded_empty


def ending_of(work: Callable[[], object]) -> int:
    """The exit status of a child that does the work: 0, or minus the signal that ended it."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)
        signal.signal(signal.SIGBUS, signal.SIG_DFL)
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("side", ["end", "start"])
@pytest.mark.parametrize("size", [1, 3, 1024, 1025, 5000])
def test_the_array_touches_the_protected_page(side: Side, size: int) -> None:
    guarded = guarded_empty((size,), np.dtype(np.float32), side)
    first = guarded.array.ctypes.data
    outside = first + 4 * size if side == "end" else first - 1
    inside = first + 4 * size - 1 if side == "end" else first
    assert ending_of(lambda: ctypes.string_at(inside, 1)) == 0
    assert ending_of(lambda: ctypes.string_at(outside, 1)) == -signal.SIGSEGV
    assert ending_of(lambda: ctypes.memset(outside, 0, 1)) == -signal.SIGSEGV


def test_a_copy_is_equal_and_may_be_read_only() -> None:
    source = np.arange(30, dtype=np.int32).reshape(5, 6)[:, ::2]
    guarded = guarded_copy(source, read_only=True)
    np.testing.assert_array_equal(guarded.array, source)
    assert guarded.array.flags.c_contiguous
    first = guarded.array.ctypes.data
    assert ending_of(lambda: ctypes.string_at(first, guarded.array.nbytes)) == 0
    assert ending_of(lambda: ctypes.memset(first, 0, 1)) == -signal.SIGSEGV


@pytest.mark.parametrize("side", ["end", "start"])
def test_writes_beside_the_array_on_its_open_side_are_noticed(side: Side) -> None:
    guarded = guarded_empty((5,), np.dtype(np.float32), side)
    guarded.array[...] = 1
    assert not guarded.damaged()
    beside = guarded.array.ctypes.data + (-1 if side == "end" else 20)
    ctypes.memset(beside, 0, 1)
    assert guarded.damaged()


@pytest.mark.parametrize("side", ["end", "start"])
def test_an_empty_array_has_no_memory_that_may_be_touched(side: Side) -> None:
    guarded = guarded_copy(np.zeros((0, 4), np.float64), side, read_only=True)
    assert guarded.array.shape == (0, 4)
    if side == "end":
        first = guarded.array.__array_interface__["data"][0]
        assert ending_of(lambda: ctypes.string_at(first, 1)) == -signal.SIGSEGV


def test_a_scalar_has_a_page_of_its_own() -> None:
    guarded = guarded_copy(np.array(7, np.int64))
    assert guarded.array.shape == ()
    assert guarded.array[()] == 7
