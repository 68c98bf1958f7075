"""Runs of machine code whose wait Ctrl-C ends.

Python handles signals between its own instructions, and the main thread runs none of them during machine code.  So the
main thread hands a run that may take long to a thread of its own, and waits for that.  An exception that a signal
handler raises (KeyboardInterrupt) ends the wait.  The run itself goes on to its end, and holds its arrays until then.
"""

from __future__ import annotations

import threading
import time
from _thread import start_new_thread
from collections.abc import Callable
from contextvars import copy_context
from queue import SimpleQueue

from opgen.locks import BUILD

LONG = 0.3
"""Seconds from which on a run is handed to a thread; starting one takes some 30 us."""


def run_interruptibly(run: Callable[[], None]) -> float:
    """Run, and return the seconds that it took.  Raises the exception of `run`, or the one that ends the wait.

    A thread other than the main one runs by itself, since no signal reaches it.  So does one that builds, as the run
    may need the lock that it holds.
    """
    begin = time.perf_counter()
    if threading.current_thread() is not threading.main_thread() or BUILD._is_owned():  # type: ignore[attr-defined]
        run()
    else:
        _wait_for(run)
    return time.perf_counter() - begin


def _wait_for(run: Callable[[], None]) -> None:
    done: SimpleQueue[BaseException | None] = SimpleQueue()
    context = copy_context()

    def work() -> None:
        try:
            context.run(run)
        except BaseException as error:  # the run's error, for the waiting thread
            done.put(error)
        else:
            done.put(None)

    try:
        start_new_thread(work, ())
    except RuntimeError:  # no thread can be started, or Python is exiting
        run()
        return
    error = done.get()
    if error is not None:
        raise error
