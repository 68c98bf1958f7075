"""Every lock of opgen's is whole in a forked child."""

from __future__ import annotations

import importlib
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import opgen
from opgen.locks import Lock, cached_property

ROOT = Path(opgen.__file__).parent


def status_of_child(work: Callable[[], bool]) -> int:
    """The status with which a forked child ends that does some work: 0 if it holds, 14 if it waits for ever."""
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_there_is_no_other_lock() -> None:
    made = re.compile(r"\b(threading\.)?(R?Lock|Condition|(Bounded)?Semaphore|Event|Barrier)\(")
    other = {
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in ROOT.rglob("*.py")
        if path != ROOT / "locks.py" and "import threading" in (text := path.read_text())
        for line in text.splitlines()
        if (found := made.search(line)) and found[0] != "Lock("
    }
    imported = [str(path) for path in ROOT.rglob("*.py") if "from threading import" in path.read_text()]
    assert not other
    assert not imported


def test_no_property_has_a_lock_of_pythons() -> None:
    """Before Python 3.12 `functools.cached_property` has one, which a child finds as it was."""
    having = re.compile(r"functools import .*\bcached_property|functools\.cached_property\b(?!`)")
    found = [path for path in ROOT.rglob("*.py") if path != ROOT / "locks.py" and having.search(path.read_text())]
    assert not found


def test_a_child_works_a_property_out_that_another_thread_was_at() -> None:
    begun, done = threading.Event(), threading.Event()

    class Example:
        number = 0

        @cached_property
        def value(self) -> int:
            if self.number:
                begun.set()
                done.wait()
            return self.number

    slow, quick = Example(), Example()
    slow.number = 1
    thread = threading.Thread(target=lambda: slow.value)
    thread.start()
    begun.wait()
    try:
        assert status_of_child(lambda: quick.value == 0) == 0
    finally:
        done.set()
        thread.join()
    assert slow.value == 1


def test_a_lock_is_free_after_a_block_that_a_signal_ended() -> None:
    class Ended(Exception):
        pass

    def end(*_: object) -> None:
        raise Ended

    lock, ended, free = Lock(), 0, []
    earlier = signal.signal(signal.SIGALRM, end)
    try:
        while ended < 500:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0002)
                while True:
                    with lock:
                        pass
            except Ended:
                ended += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, earlier)

    def take() -> None:
        free.append(lock.acquire(timeout=1))

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    assert free == [True]


def test_a_child_has_a_new_lock_for_one_that_another_thread_holds() -> None:
    lock, held, done = Lock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            done.wait()

    def take() -> bool:
        with lock, lock:
            return True

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        assert status_of_child(take) == 0
    finally:
        done.set()
        thread.join()
    assert take()


def test_a_child_keeps_what_the_thread_that_forks_holds() -> None:
    lock = Lock()

    def leave() -> bool:
        lock.__exit__(None, None, None)
        with lock:
            return True

    with lock:
        assert status_of_child(leave) == 0
        assert status_of_child(lambda: status_of_child(leave) == 0) == 0


@pytest.mark.parametrize("depth", [1, 3])
def test_a_lock_keeps_others_out_until_it_is_left(depth: int) -> None:
    lock, seen = Lock(), []

    def look() -> None:
        with lock:
            seen.append("other")

    for _ in range(depth):
        lock.__enter__()
    thread = threading.Thread(target=look)
    thread.start()
    for _ in range(depth):
        thread.join(0.02)
        seen.append("own")
        lock.__exit__(None, None, None)
    thread.join()
    assert seen == ["own"] * depth + ["other"]


def test_a_fork_waits_for_the_imports_of_other_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slowly_imported.py").write_text("import time\ntime.sleep(0.5)\nvalue = 1\n")
    monkeypatch.syspath_prepend(tmp_path)

    def value() -> bool:
        return bool(importlib.import_module("slowly_imported").value == 1)

    thread = threading.Thread(target=value)
    thread.start()
    while "slowly_imported" not in sys.modules:
        time.sleep(0.001)
    try:
        assert status_of_child(value) == 0
    finally:
        thread.join()
        del sys.modules["slowly_imported"]


def test_a_module_may_fork_while_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (
        "import os, time",
        "begin = time.monotonic()",
        "if not (child := os.fork()):",
        "    os._exit(0)",
        "os.waitpid(child, 0)",
        "seconds = time.monotonic() - begin",
    )
    (tmp_path / "forking.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    assert importlib.import_module("forking").seconds < 4
    del sys.modules["forking"]
