"""Judging in processes that may crash or hang: what ends one is the verdict on what it was at."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import Generic, TypeVar

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds on the clock after which what takes so long counts as hanging."""


class _Worker(Generic[T]):
    """A process that judges some tasks in order, and says before each that it begins."""

    def __init__(self, tasks: Sequence[tuple[int, T]], judge: Callable[[T], str]) -> None:
        self.left = list(tasks)
        self.begun = time.monotonic()
        context = multiprocessing.get_context("fork")
        self.answers, write = context.Pipe(duplex=False)
        self._process = context.Process(target=_work, args=(self.left, judge, write), daemon=True)
        self._process.start()
        write.close()

    def answer(self) -> str | None:
        """The verdict on the next task, or None where the process ended without one."""
        try:
            verdict = str(self.answers.recv())
        except EOFError:
            return None
        self.begun = time.monotonic()
        return verdict

    def end(self) -> str:
        """Why the process ended, or that it hung, and was ended."""
        if time.monotonic() - self.begun > PATIENCE and self._process.is_alive():
            self._process.kill()
            self._process.join()
            return f"wrong: nothing for {PATIENCE:g} s"
        self._process.join()
        code = self._process.exitcode or 0
        return f"wrong: ended by {signal.Signals(-code).name}" if code < 0 else f"wrong: ended with {code}"

    def close(self) -> None:
        """Wait for a process that has nothing left to do."""
        self.answers.close()
        self._process.join()


def _work(tasks: Sequence[tuple[int, T]], judge: Callable[[T], str], answers: Connection) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 2)  # what a crash prints is no verdict
    faulthandler.disable()  # who enabled it may have named another file
    for _, task in tasks:
        answers.send(judge(task))


def verdicts(
    tasks: Sequence[T], judge: Callable[[T], str], jobs: int, stretch: int, told: Callable[[int], None]
) -> list[str]:
    """The verdict on each task, in order.

    Each of `jobs` processes judges `stretch` neighbouring tasks at a time; `told` hears how many tasks are done.
    """
    found: dict[int, str] = {}
    numbered = list(enumerate(tasks))
    waiting = [numbered[at : at + stretch] for at in range(0, len(numbered), stretch)][::-1]
    workers: list[_Worker[T]] = []
    while waiting or workers:
        while waiting and len(workers) < jobs:
            workers.append(_Worker(waiting.pop(), judge))
        ready = wait([w.answers for w in workers], timeout=1.0)
        for worker in list(workers):
            hangs = time.monotonic() - worker.begun > PATIENCE
            if worker.answers not in ready and not hangs:
                continue
            verdict = worker.answer() if worker.answers in ready else None
            ended = verdict is None
            number, _ = worker.left.pop(0)
            found[number] = worker.end() if verdict is None else verdict
            if not worker.left or ended:
                worker.close()
                workers.remove(worker)
            if worker.left and ended:
                waiting.append(worker.left)
        told(len(found))
    return [found[number] for number in range(len(tasks))]
