"""The process's streams and signals while a command runs: closed or broken streams are no reason for an error."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn, TextIO

SIGNALS = tuple(s for s in (getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP")) if s is not None)
"""Signals that end a command; files that it was about to write are cleaned up first."""


def complete() -> None:
    """Open those of stdin, stdout and stderr that are closed, so that no file gets their numbers and text."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number
    sys.stdout = sys.stdout or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")  # Python has None for a closed one
    sys.stderr = sys.stderr or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def flush() -> bool:
    """Write out buffers; return True if stdout took its own.  A stream that failed is redirected to the null device."""
    streams: tuple[tuple[TextIO, int], ...] = ((sys.stdout, 1), (sys.stderr, 2))
    taken = []
    for stream, number in streams:
        try:
            stream.flush()
            taken.append(True)
        except (OSError, ValueError):
            hush(number)
            taken.append(False)
    return taken[0]


def hush(number: int) -> None:
    """Redirect a stream to the null device, so that Python does not complain at exit about a reader who left."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, number)
    os.close(devnull)


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Raise SystemExit in the block on a signal to end, by the shell's custom with 128 and its number."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {s: signal.getsignal(s) for s in SIGNALS}
    for number, handler in before.items():
        if handler == signal.SIG_DFL:
            signal.signal(number, _end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
