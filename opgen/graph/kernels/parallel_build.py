"""Parallel build of kernels on all processors, each kernel once.

For several kernels, build workers help (`opgen.graph.kernels.worker`).  A thread hands each worker one task after the
other, while this process builds, too.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import TypeAlias

from opgen.graph.kernels.kernels import Built, KernelCode, Wanted, kept, load_built, make
from opgen.graph.kernels.worker import Answer, Worker, WorkerLostError
from opgen.runtime.threads import available_cpus

Progress: TypeAlias = "Callable[[int, int, str], None]"
"""Takes the number of finished kernels, the number of all, and the name of the work."""

DOING = "compiling kernels"
ENOUGH = 4
"""Number of kernels that is worth another process, which takes about as long to start as to build two of them."""


def made(wants: Sequence[Wanted], progress: Progress | None = None) -> Mapping[str, KernelCode]:
    """Return the kernel for each key that is wanted: from the cache, or built."""
    told = progress or (lambda *_: None)
    unique = {want.key: want for want in wants}
    found = {key: code for key, want in unique.items() if (code := kept(want)) is not None}
    told(len(found), len(unique), DOING)
    for key, built in _Team(deque(w for w in unique.values() if w.key not in found)):
        found[key] = built[0]
        load_built(unique[key], built)
        told(len(found), len(unique), DOING)
    return found


class _Team:
    """Processes that build kernels, this one among them."""

    def __init__(self, tasks: deque[Wanted]) -> None:
        self._tasks = tasks
        self._left = len(tasks)
        self._done: SimpleQueue[tuple[str, Answer] | None] = SimpleQueue()
        self._workers: list[tuple[Worker, threading.Thread]] = []

    def __iter__(self) -> Iterator[tuple[str, Built]]:
        """Yield each kernel when it is done.  The first error ends the whole build."""
        try:
            self._start()
            while self._left:
                done = self._next()
                if done is None:
                    continue
                self._left -= 1
                if isinstance(done[1], Exception):
                    raise done[1]
                yield done[0], done[1]
        finally:
            self._end()

    def _start(self) -> None:
        for _ in range(min(available_cpus() - 1, self._left // ENOUGH) if sys.executable else 0):
            try:
                worker = Worker()
            except OSError:  # no more processes can be started
                return
            thread = threading.Thread(target=self._hand_out, args=(worker,), daemon=True)
            self._workers.append((worker, thread))
            thread.start()

    def _end(self) -> None:
        self._tasks.clear()
        for worker, thread in self._workers:
            worker.end()
            thread.join()
            worker.close()

    def _hand_out(self, worker: Worker) -> None:
        while (want := self._task()) is not None:
            try:
                self._done.put((want.key, worker.build(want)))
            except WorkerLostError:  # the worker was killed: this process does its work
                self._tasks.append(want)
                self._done.put(None)
                return

    def _task(self) -> Wanted | None:
        try:
            return self._tasks.popleft()
        except IndexError:
            return None

    def _next(self) -> tuple[str, Answer] | None:
        """Return the next finished kernel of any process; None to look again."""
        try:
            return self._done.get_nowait()
        except Empty:
            want = self._task()
        return self._done.get() if want is None else (want.key, make(want))
