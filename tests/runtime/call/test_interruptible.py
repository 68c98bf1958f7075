"""Ctrl-C ends the wait for machine code that takes long."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from opgen.locks import BUILD
from opgen.runtime.call.interruptible import run_interruptibly
from tests.support.kernels import output_of

SPEC = '''op Waves {
  """Sums of exponentials."""
  input x : float64[n]
  input k : float64[m]
  output y : float64[n]
  y[i] = sum[j](exp(x[i] * k[j]))
}
'''

PROGRAM = """
    import os, signal, sys, threading, time
    import numpy as np
    import opgen

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts jobs in the background without it
    waves = opgen.load({path!r})
    short, long = (np.linspace(0, 1, n) for n in (4, 200_000))
    waves.waves(short, short)
    {before}
    begin = time.perf_counter()
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        {call}
        print("it ended")
    except KeyboardInterrupt:
        print(time.perf_counter() - begin < 4)
"""
"""A call of 4e10 exponentials, which takes a minute and more by one thread."""

CALLS = {
    "a function": ("pass", "waves.waves(long, long)"),
    "a prepared call": ("call = waves.prepare.waves(long, long)", "call(long, long)"),
    "a model": ("model = opgen.compile(lambda x: waves.waves(x, x))", "model(long)"),
}


@pytest.mark.parametrize("how", CALLS)
def test_an_interrupt_ends_the_wait(how: str, tmp_path: Path) -> None:
    (tmp_path / "waves.op").write_text(SPEC)
    before, call = CALLS[how]
    program = PROGRAM.format(path=str(tmp_path / "waves.op"), before=before, call=call)
    assert output_of(program, OPGEN_NUM_THREADS="1") == "True"


def test_the_error_of_a_run_reaches_the_caller() -> None:
    def fails() -> None:
        raise MemoryError("no room")

    with pytest.raises(MemoryError, match="no room"):
        run_interruptibly(fails)


def test_a_thread_that_builds_runs_by_itself() -> None:
    """The run may need the lock that it holds."""
    ran: list[int] = []

    def locks() -> None:
        with BUILD:
            ran.append(threading.get_ident())

    with BUILD:
        run_interruptibly(locks)
    run_interruptibly(locks)
    assert ran[0] == threading.get_ident() != ran[1]
