"""`opgen.record` and `opgen.last_call`: what ran, kernel by kernel."""

from __future__ import annotations

import contextvars
import hashlib
import os
import threading
from pathlib import Path

import numpy as np
import pytest

import opgen
from generated import nn_ops as nn
from generated import onnx_ops as onnx
from opgen.cache import entries, pickled
from opgen.compiler.object import ObjectCode
from opgen.compiler.toolchain import NoCompilerError
from opgen.diagnostics import UserError
from opgen.graph.program.loaded import LoadedProgram
from opgen.runtime import threads
from opgen.runtime.kernels import launcher, loaded

IMAGE = np.ones((1, 8, 8, 4), np.float32)
TAPS = np.ones((3, 3, 4, 4), np.float32)
ONES = [1, 1, 1, 1]


@pytest.fixture(autouse=True)
def fresh() -> None:
    """No kernels of earlier calls are in the process."""
    forget()


def forget() -> None:
    loaded.forget()
    kernels = nn._library.kernels["Conv2D"]
    kernels._variants.clear()
    kernels._from_shelf.clear()
    nn._library.operators["Conv2D"].forget()


def test_a_call_of_an_op_has_all_that_decided_it() -> None:
    with opgen.record() as calls:
        nn.conv2d(IMAGE, TAPS, ONES, "SAME")
    (call,) = calls
    assert (call.op, call.device) == ("Conv2D", "cpu")
    assert [str(t) for t in (*call.tensors, *call.results)] == [
        "float32[1, 8, 8, 4]", "float32[3, 3, 4, 4]", "float32[1, 8, 8, 4]"]  # fmt: skip
    assert call.attributes["strides"] == (1, 1, 1, 1)
    assert call.attributes["padding"] == "SAME"
    (kernel,) = call.kernels
    assert (kernel.op, kernel.kernel, kernel.algorithm, kernel.node) == ("Conv2D", "conv2d_float32_NHWC", None, None)
    assert (kernel.specialized, kernel.built, kernel.threads) == (True, True, 1)
    assert kernel.seconds == call.seconds > 0
    kept = [pickled.take(path.stem, ObjectCode) for path in Path(str(entries.default().path)).glob("*.kernel")]
    assert kernel.code_hash in {hashlib.sha256(found.code).hexdigest() for found in kept if found is not None}


def test_only_calls_in_a_block_are_listed_and_blocks_may_be_in_each_other() -> None:
    nn.conv2d(IMAGE, TAPS, ONES, "SAME")
    with opgen.record() as outer:
        nn.conv2d(IMAGE, TAPS, ONES, "SAME")
        with opgen.record() as inner:
            nn.conv2d(IMAGE, TAPS, [1, 2, 2, 1], "SAME")
        nn.conv2d(IMAGE, TAPS, ONES, "VALID")
    nn.conv2d(IMAGE, TAPS, ONES, "SAME")
    assert [c.results[0].shape for c in outer] == [(1, 8, 8, 4), (1, 4, 4, 4), (1, 6, 6, 4)]
    assert list(inner) == [outer[1]]
    assert opgen.last_call() is outer[-1]


def test_every_way_of_calling_is_seen() -> None:
    expected = nn.conv2d(IMAGE, TAPS, ONES, "SAME")
    out = np.empty_like(expected)
    prepared = nn.prepare.conv2d(IMAGE, TAPS, ONES, "SAME")
    with opgen.record() as calls:
        found = [
            nn.conv2d(IMAGE, TAPS, ONES, "SAME"),
            nn.conv2d(IMAGE, TAPS, ONES, "SAME", out=out),
            nn.conv2d(np.asfortranarray(IMAGE), TAPS.tolist(), ONES, "SAME"),
            prepared(IMAGE, TAPS),
            prepared(IMAGE, TAPS, out=out),
        ]
    assert len(calls) == len(found)
    assert len({k.code_hash for k in calls.kernels}) == 1
    assert all(np.array_equal(y, expected) for y in found)
    with opgen.record() as several:
        onnx.top_k(np.arange(6, dtype=np.float32), [2])
    assert len(several[0].results) == 2


def test_a_kernel_for_any_sizes_and_one_from_the_cache_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with opgen.record() as calls:
        nn.conv2d(IMAGE, TAPS, ONES, "SAME")
    first = calls.kernels[0]
    forget()
    with opgen.record() as calls:
        nn.conv2d(IMAGE, TAPS, ONES, "SAME")
        monkeypatch.setenv("OPGEN_SPECIALIZE", "never")
        nn.conv2d(IMAGE[:, :5], TAPS, ONES, "SAME")
    cached, generic = calls.kernels
    assert (cached.built, cached.code_hash, cached.specialized) == (False, first.code_hash, True)
    assert not generic.specialized


def test_an_algorithm_has_its_name_also_from_the_cache() -> None:
    image, taps = np.ones((1, 28, 28, 64), np.float32), np.ones((3, 3, 64, 64), np.float32)
    with opgen.record() as calls:
        nn.conv2d(image, taps, ONES, "SAME")
        forget()
        nn.conv2d(image, taps, ONES, "SAME")
        with opgen.algorithms("off"):
            nn.conv2d(image, taps, ONES, "SAME")
    assert [k.algorithm for k in calls.kernels] == ["minimal_filtering", "minimal_filtering", None]


def test_a_run_of_a_model_has_a_kernel_for_each_node() -> None:
    @opgen.compile
    def two(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        return nn.conv2d(nn.conv2d(x, w, ONES, "SAME"), w, [1, 2, 2, 1], "SAME")

    expected = two(IMAGE, TAPS)
    with opgen.record() as calls:
        assert np.array_equal(two(IMAGE, TAPS), expected)
    (call,) = calls
    assert (call.op, [t.name for t in call.tensors]) == ("two", ["x", "w"])
    assert [k.op for k in call.kernels] == ["Conv2D", "Conv2D"]
    assert len({k.node for k in call.kernels}) == 2
    taken = [k.seconds for k in call.kernels]
    assert all(t is not None and t > 0 for t in taken)
    assert sum(t or 0 for t in taken) == pytest.approx(call.seconds)


def test_without_a_compiler_only_the_whole_run_of_a_model_has_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    model = opgen.compile(lambda x: onnx.relu(x))
    expected = model(IMAGE)

    def missing(_: LoadedProgram) -> None:
        raise NoCompilerError("no LLVM")

    monkeypatch.setattr(LoadedProgram, "clocked", missing)
    with opgen.record() as calls:
        assert np.array_equal(model(IMAGE), expected)
    (call,) = calls
    assert call.seconds > 0
    assert [k.seconds for k in call.kernels] == [None]


def test_threads_with_a_copy_of_the_context_are_recorded_and_others_are_not() -> None:
    def work() -> None:
        nn.conv2d(IMAGE, TAPS, ONES, "SAME")

    work()
    with opgen.record() as calls:
        workers = [threading.Thread(target=contextvars.copy_context().run, args=(work,)) for _ in range(4)]
        others = [threading.Thread(target=work) for _ in range(4)]
        for t in (*workers, *others):
            t.start()
        for t in (*workers, *others):
            t.join()
    assert len(calls) == 4


def test_a_call_outside_of_blocks_is_launched_by_machine_code_as_before() -> None:
    for _ in range(2):
        nn.conv2d(IMAGE, TAPS, ONES, "SAME")
    (launch,) = nn._library.operators["Conv2D"]._last.values()
    assert launch(IMAGE, TAPS, None) is not None
    with opgen.record():
        assert launch(IMAGE, TAPS, None) is None
        threads.set_num_threads(threads.get_num_threads())
    assert not launcher.held()
    with pytest.raises(UserError), opgen.record():
        raise UserError("an error in a block")
    nn.conv2d(IMAGE, TAPS, ONES, "SAME")
    nn.conv2d(IMAGE, TAPS, ONES, "SAME")
    assert nn._library.operators["Conv2D"]._last.popitem()[1](IMAGE, TAPS, None) is not None


def test_print_shows_a_table() -> None:
    with opgen.record() as calls:
        nn.conv2d(IMAGE, TAPS, ONES, "SAME")
    head, row = str(calls).splitlines()
    assert head.split() == ["op", "algorithm", "us", "threads", "made", "for", "from", "kernel", "code", "tensors"]
    assert row.startswith("Conv2D")
    assert "input float32[1, 8, 8, 4], filter float32[3, 3, 4, 4]" in row
    assert str(calls[0]) == str(calls)
    assert repr(calls) == "<1 recorded call>"


def test_without_a_recorded_call_the_last_one_is_an_error() -> None:
    with pytest.raises(UserError, match="no call has been recorded: make it inside"):
        contextvars.Context().run(opgen.last_call)


def test_a_forked_child_has_the_blocks_of_its_own_thread_alone() -> None:
    opened, done = threading.Event(), threading.Event()

    def records() -> None:
        with opgen.record():
            opened.set()
            done.wait(60)

    other = threading.Thread(target=records)
    other.start()
    opened.wait(60)
    held = [_held_in_a_child()]
    with opgen.record():
        held.append(_held_in_a_child())
        done.set()
        other.join()
        assert launcher.held()
    assert held == [False, True]
    assert not launcher.held()


def _held_in_a_child() -> bool:
    child = os.fork()
    if child == 0:
        os._exit(launcher.held())
    return bool(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def test_a_block_may_be_closed_in_another_context() -> None:
    block = opgen.record()
    contextvars.copy_context().run(block.__enter__)
    assert launcher.held()
    block.__exit__(None, None, None)
    assert not launcher.held()
