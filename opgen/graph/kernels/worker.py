"""A build worker: a process that builds kernels for another until no more tasks come.

It is a plain process and not a fork, so that it shares no threads or locks with its parent; and it does not run the
parent's main module again.  Messages are pickles, each after its length.
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
    """A worker that is gone, or whose answer cannot be read."""


class Worker:
    """A build worker, as seen by its parent."""

    def __init__(self) -> None:
        """Start the process.  Raises OSError if that is impossible."""
        command = [sys.executable, "-c", _START, json.dumps(sys.path)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        ending.at_ending(self, self._process.kill)

    def build(self, want: Wanted) -> Answer:
        """Return the kernel, or the error of building it.  Raises WorkerLostError."""
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
        """End the process; an unfinished kernel is lost."""
        self._process.kill()
        self._process.wait()
        ending.done(self)

    def close(self) -> None:
        """Close the pipes of a process that has ended, once no thread waits for a kernel."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # unsent bytes of a task that nobody will read may be left in it
                    pipe.close()


def main() -> None:
    """Run the worker.  Output that libraries print goes to standard error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets the signal, and ends the worker
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as out:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        while isinstance(want := _read(sys.stdin.buffer), Wanted):
            _write(out, _built(want))


def _built(want: Wanted) -> Answer:
    try:
        return make(want)
    except Exception as error:  # the parent reports any error to the user
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
    """Return the next message; None at the end."""
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    return pickle.loads(pipe.read(_LENGTH.unpack(head)[0]))
