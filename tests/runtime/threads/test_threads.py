"""The number of threads, and the parallel loop by each of its means."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from opgen.runtime import threads
from opgen.runtime.native import parallel_ir
from opgen.runtime.threads import ThreadingError, openmp
from tests.support.kernels import output_of, run_program

Body = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
Loop = ctypes.CFUNCTYPE(None, Body, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)

RANGES = [(0, 1), (0, 2), (0, 10), (-4, 9), (5, 5), (7, 3), (1000, 1007), (2**62, 2**62 + 5), (-(2**63), -(2**63) + 3)]

HAS_OPENMP = openmp.find() is not None
MODES = [
    parallel_ir.SERIAL,
    pytest.param(parallel_ir.OPENMP, marks=pytest.mark.skipif(not HAS_OPENMP, reason="no OpenMP runtime")),
    parallel_ir.PTHREAD,
]


def table() -> ctypes.Array[ctypes.c_int64]:
    found, runtime = threads.parallel_for().table, openmp.find()
    assert found is not None
    if runtime is not None:
        found[1:3] = list(runtime.functions)
    return found


def pieces(begin: int, end: int, count: int) -> list[tuple[int, int]]:
    """The pieces that the body is called on, in order."""
    seen: list[tuple[int, int]] = []
    body = Body(lambda context, first, last: seen.append((first, last)))
    Loop(threads.parallel_for().address)(body, None, begin, end, count)
    return sorted(seen)


def expected(begin: int, end: int, count: int) -> list[tuple[int, int]]:
    """Each thread's stretch in eight pieces of the same length, the last what is left."""
    n = max(0, end - begin)
    team = min(count, n)
    bounds = [(begin + n * t // team, begin + n * (t + 1) // team) for t in range(team)]
    size = [-(-(last - first) // parallel_ir.PIECES) for first, last in bounds]
    return [(i, min(i + s, last)) for (first, last), s in zip(bounds, size, strict=True) for i in range(first, last, s)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("count", [1, 2, 3, 7, 33])
def test_the_pieces_cover_the_range_once(mode: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    words = table()
    usual = words[0]
    words[0] = mode
    try:
        for begin, end in RANGES:
            found = pieces(begin, end, count)
            alone = mode == parallel_ir.SERIAL or min(count, end - begin) <= 1
            assert found == ([(begin, end)] if alone and begin < end else expected(begin, end, count))
    finally:
        words[0] = usual


def test_pthread_threads_are_threads_of_their_own() -> None:
    words = table()
    usual = words[0]
    words[0] = parallel_ir.PTHREAD
    seen: set[int] = set()
    together = threading.Barrier(3, timeout=30)

    def body(context: object, first: int, last: int) -> None:
        together.wait()
        seen.add(threading.get_native_id())

    try:
        Loop(threads.parallel_for().address)(Body(body), None, 0, 3, 3)
    finally:
        words[0] = usual
    assert len(seen) == 3


@pytest.mark.parametrize("mode", MODES[1:])
def test_a_thread_that_is_held_up_has_its_work_done_by_another(mode: int) -> None:
    words = table()
    usual = words[0]
    words[0] = mode
    done: dict[int, set[int]] = {}
    lock = threading.Lock()
    rest_done = threading.Event()

    def body(context: object, first: int, last: int) -> None:
        with lock:
            holds = not done
            done.setdefault(threading.get_native_id(), set()).update(range(first, last))
            if set().union(*done.values()) == set(range(64)):
                rest_done.set()
        if holds:
            rest_done.wait(60)

    try:
        Loop(threads.parallel_for().address)(Body(body), None, 0, 64, 2)
    finally:
        words[0] = usual
    assert rest_done.is_set()
    assert len(done) == 2


@pytest.mark.parametrize("failing", ["all", "odd"])
def test_a_thread_that_cannot_be_created_has_its_stretch_run_by_others(failing: str) -> None:
    create_type = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)
    words = table()
    usual = list(words)
    create = create_type(words[3])
    asked: list[object] = []
    pool = fresh_pool()

    def refuse(*arguments: int) -> int:
        asked.append(arguments)
        return 11 if failing == "all" or len(asked) % 2 == 0 else create(*arguments)

    refusing = create_type(refuse)
    words[0] = parallel_ir.PTHREAD
    words[3] = ctypes.cast(refusing, ctypes.c_void_p).value or 0
    try:
        for loop in range(1, 4):  # what could not be had is asked for again by the next
            assert pieces(0, 100, 6) == expected(0, 100, 6)
            assert len(asked) == (loop if failing == "all" else 2 * loop)
            assert pool.memory.workers == (0 if failing == "all" else loop)
    finally:
        words[:] = usual


@pytest.fixture
def pooled() -> Iterator[None]:
    words = table()
    usual = words[0]
    words[0] = parallel_ir.PTHREAD
    yield
    words[0] = usual


def fresh_pool() -> threads.Workers:
    """The pool, without workers."""
    pool = threads.parallel_for().pool
    assert pool is not None
    pool.dismiss()
    pool.prepare()
    return pool


@pytest.mark.usefixtures("pooled")
def test_workers_stay() -> None:
    pool = fresh_pool()
    seen: set[int] = set()
    body = Body(lambda context, first, last: seen.add(threading.get_native_id()))
    for _ in range(300):
        Loop(threads.parallel_for().address)(body, None, 0, 64, 3)
    assert pool.memory.workers == 2
    assert threading.get_native_id() in seen
    assert len(seen) <= 3
    pool.dismiss()
    assert pieces(0, 100, 6) == expected(0, 100, 6)  # by the caller
    assert pool.memory.workers == 0


@pytest.mark.usefixtures("pooled")
def test_workers_leave_signals_to_the_threads_of_the_program() -> None:
    """A signal that a worker took would not end a call of the main thread that waits for something.

    Of faults the handlers run (Python's faulthandler): the system ends a process whose thread blocks its own fault.
    """
    fresh_pool()
    before = set(os.listdir("/proc/self/task"))
    assert pieces(0, 100, 3) == expected(0, 100, 3)
    workers = set(os.listdir("/proc/self/task")) - before
    assert len(workers) == 2
    faults = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE)
    for worker in workers:
        assert all(blocked_by(worker) >> (number - 1) & 1 for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM))
        end = time.monotonic() + 20
        while any(blocked_by(worker) >> (number - 1) & 1 for number in faults):  # as long as the thread begins
            assert time.monotonic() < end
            time.sleep(0.01)


def blocked_by(thread: str) -> int:
    status = Path(f"/proc/self/task/{thread}/status").read_text()
    found = re.search(r"SigBlk:\s*([0-9a-f]+)", status)
    assert found is not None
    return int(found[1], 16)


@pytest.mark.usefixtures("pooled")
def test_callers_share_the_workers() -> None:
    """Each gets all of its own loop done, whoever does it; there are no more workers than one of them asks for."""
    pool = fresh_pool()
    wrong: list[object] = []

    def call(number: int) -> None:
        for k in range(50):
            begin, end, count = 1000 * number, 1000 * number + 7 * k, 2 + number % 4
            found = pieces(begin, end, count)
            if found != expected(begin, end, count):
                wrong.append((number, k, found))

    callers = [threading.Thread(target=call, args=(number,)) for number in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert wrong == []
    assert pool.memory.workers == 4


def test_a_process_ends_whatever_its_workers_do() -> None:
    program = (
        PRINT_PIECES
        + """
    import threading
    def go_on():
        while True:
            Loop(loop.address)(Body(lambda c, b, e: None), None, 0, 100, 3)
    threading.Thread(target=go_on, daemon=True).start()
    """
    )
    for _ in range(3):
        assert output_of(program, OPGEN_THREADING="pthread") == f"pthread {expected(0, 100, 8)}"


PRINT_PIECES = """
    import ctypes
    from opgen.runtime import threads
    Body = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    Loop = ctypes.CFUNCTYPE(None, Body, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    seen = []
    loop = threads.parallel_for()
    Loop(loop.address)(Body(lambda c, b, e: seen.append((b, e))), None, 0, 100, 8)
    print(threads.means(), sorted(seen))
"""


@pytest.mark.skipif(not HAS_OPENMP, reason="no OpenMP runtime")
def test_fewer_threads_than_asked_for_still_do_everything() -> None:
    found = output_of(PRINT_PIECES, OMP_THREAD_LIMIT="3", OPGEN_THREADING="openmp")
    assert found == f"openmp {expected(0, 100, 8)}"


def test_pthread_can_be_forced() -> None:
    found = output_of(PRINT_PIECES, OPGEN_THREADING="pthread")
    assert found == f"pthread {expected(0, 100, 8)}"


def test_posix_threads_are_used_unless_openmp_is_asked_for() -> None:
    assert output_of(PRINT_PIECES, OPGEN_THREADING="") == f"pthread {expected(0, 100, 8)}"


BUSY = """
    import os, time
    import numpy as np
    import opgen
    from opgen.runtime import threads
    from tests.bindings.modules import SAMPLES

    ops = opgen.load(SAMPLES)
    a = np.ones((160, 160), np.float32)

    def seconds(count):
        threads.set_num_threads(count)
        start = time.perf_counter()
        for _ in range(150):
            ops.mat_mul(a, a)
        return time.perf_counter() - start

    count = max(2, threads.available_cpus())
    seconds(1), seconds(count)
    found = [(seconds(1), seconds(count)) for _ in range(7)]
    print(min(f[1] for f in found) / min(f[0] for f in found))
"""


def test_threads_that_wait_take_no_processor_from_others() -> None:
    """Beside processes that keep all processors busy, many threads take about as long as one, not ten times that."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(threads.available_cpus())]
    try:
        assert float(output_of(BUSY, OPGEN_THREADING="")) < 4
    finally:
        for process in busy:
            process.kill()
            process.wait()


def test_without_an_openmp_runtime_posix_threads_are_used() -> None:
    hide = "from opgen.runtime.threads import openmp\nopenmp._candidates = lambda: iter(())\n"
    program = hide + re.sub(r"^    ", "", PRINT_PIECES, flags=re.MULTILINE)
    assert output_of(program, OPGEN_THREADING="") == f"pthread {expected(0, 100, 8)}"
    refused = run_program(program, OPGEN_THREADING="openmp")
    assert refused.stderr.strip().splitlines()[-1] == (
        "opgen.runtime.threads.ThreadingError: "
        "OPGEN_THREADING=openmp, but no OpenMP runtime (libgomp, libomp, libiomp5) can be loaded"
    )


def test_serial_needs_no_parallel_loop() -> None:
    program = "from opgen.runtime import threads; print(threads.parallel_for().address, threads.means())"
    assert output_of(program, OPGEN_THREADING="serial") == "0 serial"


def test_a_misspelt_means_is_refused() -> None:
    refused = run_program("from opgen.runtime import threads; threads.parallel_for()", OPGEN_THREADING="ptread")
    assert refused.stderr.strip().splitlines()[-1] == (
        "opgen.runtime.threads.ThreadingError: "
        "OPGEN_THREADING: expected openmp, pthread or serial, given 'ptread'; did you mean 'pthread'?"
    )


# The number ------------------------------------------------------------------------------------------------------


def number(**environment: str) -> str:
    program = """
        from opgen.runtime import threads
        try:
            print(threads.get_num_threads())
        except threads.ThreadingError as error:
            print(error)
    """
    return output_of(program, **{"OPGEN_NUM_THREADS": "", "OMP_NUM_THREADS": "", **environment})


def test_the_number_of_threads_by_the_environment() -> None:
    assert number() == str(len(os.sched_getaffinity(0)))
    assert number(OMP_NUM_THREADS="5") == "5"
    assert number(OMP_NUM_THREADS="3,2") == "3"
    assert number(OMP_NUM_THREADS="many") == str(len(os.sched_getaffinity(0)))
    assert number(OMP_NUM_THREADS="5", OPGEN_NUM_THREADS="4") == "4"
    expected = "OPGEN_NUM_THREADS: expected a number of threads from 1 to 1024, given "
    assert number(OPGEN_NUM_THREADS="some") == expected + "'some'"
    assert number(OPGEN_NUM_THREADS="0") == expected + "0"
    assert number(OPGEN_NUM_THREADS="9" * 5000) == expected + repr("9" * 81)[:77] + "..."
    assert number(OMP_NUM_THREADS="9" * 5000) == number()


def test_the_number_of_threads_can_be_set() -> None:
    usual, before = threads.get_num_threads(), threads.generation()
    try:
        threads.set_num_threads(3)
        assert threads.get_num_threads() == 3
        assert threads.generation() != before
    finally:
        threads.set_num_threads(usual)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0, "set_num_threads: expected a number of threads from 1 to 1024, given 0"),
        (-1, "set_num_threads: expected a number of threads from 1 to 1024, given -1"),
        (1025, "set_num_threads: expected a number of threads from 1 to 1024, given 1025"),
        (2.0, "set_num_threads: expected an integer, given 2.0"),
        (True, "set_num_threads: expected an integer, given True"),
        ("2", "set_num_threads: expected an integer, given '2'"),
    ],
)
def test_a_wrong_number_is_refused(value: int, message: str) -> None:
    usual = threads.get_num_threads()
    with pytest.raises(ThreadingError) as caught:
        threads.set_num_threads(value)
    assert str(caught.value) == message
    assert isinstance(caught.value, ValueError)
    assert threads.get_num_threads() == usual
