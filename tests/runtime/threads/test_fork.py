"""A forked child computes in parallel, whatever its parent did before."""

from __future__ import annotations

import pytest

from opgen.runtime.threads import openmp
from tests.support.kernels import output_of

PROGRAM = """
    import os, signal, sys, threading, time
    import numpy as np
    from opgen.runtime import threads
    from opgen.runtime.kernels.kernel import compile_kernel
    from opgen.runtime.kernels.run import run_kernel
    from tests.support.kernels import row_sums

    threads.set_num_threads(4)
    values = np.arange(40 * 5, dtype=np.float32).reshape(40, 5)
    sizes = {"rows": 40, "columns": 5}
    expected = values.sum(axis=1) + np.float32(0.5)

    def work():
        return np.array_equal(run_kernel(row_sums(), {"values": values}, sizes)["sums"], expected)

    def in_child(work):
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            ok = False
            try:
                ok = work()
            finally:
                os._exit(0 if ok else 1)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""

CASES = {
    "parent used threads": "assert work(); print(in_child(work), work(), threads.means())",
    "parent did nothing": "print(in_child(work), work(), threads.means())",
    "parent only compiled": "compile_kernel(row_sums()); print(in_child(work), work(), threads.means())",
    "child of a child": "print(work() and in_child(lambda: work() and in_child(work) == 0), work(), threads.means())",
}

BOUND = """
    from opgen.runtime.memory.address import address
    sums = np.zeros(40, np.float32)
    bound = compile_kernel(row_sums()).bind((40, 5))

    def again():
        sums[:] = 0
        bound([address(values), address(sums)])
        return np.array_equal(sums, expected)

    assert again()
    print(in_child(again), again(), threads.means())
"""

BUSY = """
    stop = False

    def build_for_ever():
        n = 0
        while not stop:
            n += 1
            compile_kernel(row_sums(f"row_sums_{n}"))

    builder = threading.Thread(target=build_for_ever)
    builder.start()
    codes = [in_child(work) for _ in range(10)]
    stop = True
    builder.join()
    print(codes, work(), threads.means())
"""

LOWERING = """
    import opgen
    from opgen.runtime.call import specialize
    from tests.bindings.modules import SAMPLES

    started, build = threading.Event(), specialize.build

    def slow(kernel):
        started.set()
        time.sleep(1)
        return build(kernel)

    specialize.build = slow
    ops = opgen.load(SAMPLES)
    ones = np.ones((3, 3), np.float32)
    thread = threading.Thread(target=lambda: ops.mat_mul(ones, ones))
    thread.start()
    started.wait()
    print(in_child(lambda: (ops.mat_mul(ones[:2], ones) == 3).all()), work(), threads.means())
    thread.join()
"""

MODEL = """
    import opgen
    from tests.bindings.modules import SAMPLES

    ops = opgen.load(SAMPLES)
    model = opgen.compile(lambda a, b: ops.mat_mul(ops.mat_mul(a, b), b))
    ones, stop = np.ones((3, 3), np.float32), False

    def run(rows):
        return bool((model(np.ones((rows, 3), np.float32), ones) == 9).all())

    def make_for_ever():
        rows = 3
        while not stop:
            rows += 1
            assert run(rows)

    assert run(3)
    maker = threading.Thread(target=make_for_ever)
    maker.start()
    codes = []
    for _ in range(8):
        time.sleep(0.1)
        codes.append(in_child(lambda: run(3) and run(2)))
    stop = True
    maker.join()
    print(codes, run(3))
"""


@pytest.fixture(params=["openmp", "pthread"])
def means(request: pytest.FixtureRequest) -> str:
    if request.param == "openmp" and openmp.find() is None:
        pytest.skip("no OpenMP runtime")
    return str(request.param)


@pytest.mark.parametrize("case", CASES)
def test_a_forked_child_computes(case: str, means: str) -> None:
    assert output_of(PROGRAM + "    " + CASES[case], OPGEN_THREADING=means) == f"0 True {means}"


def test_a_kernel_bound_before_the_fork_runs_in_the_child(means: str) -> None:
    assert output_of(PROGRAM + BOUND, OPGEN_THREADING=means) == f"0 True {means}"


def test_a_fork_while_another_thread_builds(means: str) -> None:
    assert output_of(PROGRAM + BUSY, OPGEN_THREADING=means) == f"{[0] * 10} True {means}"


def test_a_fork_while_another_thread_makes_a_kernel_of_the_same_op() -> None:
    assert output_of(PROGRAM + LOWERING, OPGEN_THREADING="pthread", OPGEN_CACHE="off") == "0 True pthread"


def test_a_fork_while_another_thread_makes_a_program_of_the_same_model() -> None:
    assert output_of(PROGRAM + MODEL, OPGEN_CACHE="off") == f"{[0] * 8} True"


def test_in_a_child_openmp_is_left_alone() -> None:
    case = "assert work(); print(in_child(lambda: work() and threads.means() == 'pthread'), threads.means())"
    if openmp.find() is None:
        pytest.skip("no OpenMP runtime")
    assert output_of(PROGRAM + "    " + case, OPGEN_THREADING="openmp") == "0 openmp"
