"""Signals that end a command whose main thread runs machine code: Python's own handlers wait until that returns."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from queue import Empty, SimpleQueue
from typing import NoReturn

from opgen import ending
from opgen.cli import streams

PATIENCE = 2.0
"""Seconds that machine code has to return after a signal."""

_ENDING = (*streams.SIGNALS, signal.SIGINT)


@contextlib.contextmanager
def ended_in_machine_code() -> Iterator[None]:
    """Let a signal that ends the process take effect within the block, even if the main thread runs machine code.

    A thread learns of each signal by the wake-up descriptor, into which Python's handler in C writes at once.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reader,), daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writer)  # the thread ends


def _watch(reader: int) -> None:
    """End the process by the first signal to end after which the main thread runs no Python."""
    with open(reader, "rb", buffering=0) as signals:
        while came := signals.read(1):
            if came[0] in _ENDING and not _main_thread_runs():
                _end(came[0])


def _main_thread_runs() -> bool:
    """Return True if the main thread reaches a bytecode, and so signal handlers, before patience ends."""
    import ctypes  # for commands that end at once it is too slow

    came: SimpleQueue[None] = SimpleQueue()

    def pending(_: int | None) -> int:
        came.put(None)
        return 0

    function = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(pending)
    _PENDING.append(function)
    ctypes.pythonapi.Py_AddPendingCall(function, None)
    try:
        came.get(timeout=PATIENCE)
    except Empty:
        return False
    return True


_PENDING: list[object] = []
"""Functions that Python's main loop may still call: they must not go."""


def _end(number: int) -> NoReturn:
    """Clean up, say it and leave, without the main thread."""
    ending.run()
    with contextlib.suppress(BaseException):
        streams.flush()
        if number == signal.SIGINT:
            os.write(2, b"\ninterrupted\n")
    os._exit(128 + number)
