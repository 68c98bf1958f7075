"""A process that builds kernels for another: tasks come in, kernels go out, until there are no more.

It is a plain process and no fork, so that it knows nothing of the threads and locks of the one that started it; and it
does not run that one's main module again.  Messages are pickles, each after its length.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import struct
import subprocess
import sys
from typing import IO, TypeAlias

from opgen import ending
from opgen.diagnostics import InternalError
from opgen.graph.kernels.kernels import Built, Wanted, make

Answer: TypeAlias = "Built | Exception"
_LENGTH = struct.Struct("<Q")
_START = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from opgen.graph.kernels.worker import main; main()"


class WorkerLostError(Exception):
    """The process is gone, or says what cannot be understood."""


class Worker:
    """Another process, as the one that started it sees it."""

    def __init__(self) -> None:
        """Raises OSError if there can be no such process."""
        command = [sys.executable, "-c", _START, json.dumps(sys.path)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        ending.at_ending(self, self._process.kill)

    def build(self, want: Wanted) -> Answer:
        """The kernel, or the error with which building it ended.  Raises WorkerLostError."""
        given, taken = self._process.stdin, self._process.stdout
        if given is None or taken is None:
            raise InternalError("a worker without pipes")
        try:
            _write(given, want)
            found = _read(taken)
        except (OSError, ValueError, EOFError, pickle.UnpicklingError) as error:
            raise WorkerLostError from error
        if not isinstance(found, Exception | tuple):
            raise WorkerLostError
        return found

    def end(self) -> None:
        """End the process; what it is building is lost."""
        self._process.kill()
        self._process.wait()
        ending.done(self)

    def close(self) -> None:
        """Give back what belongs to a process that has ended, when nobody waits for a kernel any more."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # the end of a task may wait in it that nobody will read
                    pipe.close()


def main() -> None:
    """What the process does.  What libraries print goes where errors go."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started it is told, and ends it
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as out:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        while isinstance(want := _read(sys.stdin.buffer), Wanted):
            _write(out, _built(want))


def _built(want: Wanted) -> Answer:
    try:
        return make(want)
    except Exception as error:  # whatever it is, it is the other process that tells the user
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # an error that cannot be sent
            return InternalError(f"a kernel cannot be built: {type(error).__name__}: {error}")
        return error


def _write(pipe: IO[bytes], message: object) -> None:
    content = pickle.dumps(message)
    pipe.write(_LENGTH.pack(len(content)))
    pipe.write(content)
    pipe.flush()


def _read(pipe: IO[bytes]) -> object:
    """The next message; None if there is none."""
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    return pickle.loads(pipe.read(_LENGTH.unpack(head)[0]))
