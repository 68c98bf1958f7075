"""The pace of `tools/test`: which tests run, in which order, and how long that still takes.

    pytest -p tests.pace -n 2                    quick tests first; one case of each test whose cases are costly
    pytest -p tests.pace -n 2 --all              every case
    pytest -p tests.pace -n 2 --all --measure    and keep what the tests of each file took

What a test takes is told by `seconds.json`, for a file or for those of a folder that nobody has measured.  Where files
or tests are named on the command line, all of their cases run.
"""

from __future__ import annotations

import functools
import json
import math
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

COSTLY = 0.1
"""Seconds from which on a test's case is costly: without --all only the first case of each such test runs."""

SECONDS = Path(__file__).with_name("seconds.json")
"""The seconds that a test takes on average on an idle machine, by its file or a folder."""

SAID = 20.0
"""Seconds between two lines about the time that is left."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="run every test, those that take long included")
    parser.addoption("--measure", action="store_true", help="keep the seconds that the tests of each file take")


def pytest_configure(config: pytest.Config) -> None:
    given = getattr(config, "workerinput", None)
    if given is not None:
        config.pluginmanager.register(Chosen(given["pace_all"], given["workercount"]), "pace-chosen")
        return
    named = config.args_source is not pytest.Config.ArgsSource.TESTPATHS or bool(config.getoption("keyword"))
    every = named or bool(config.getoption("--all"))
    workers = 0 if config.getoption("dist", "no") == "no" else len(config.getoption("tx"))
    config.pluginmanager.register(Progress(config, every, max(1, workers)), "pace-progress")
    if not workers:
        config.pluginmanager.register(Chosen(every, 1), "pace-chosen")


# Which tests, and in which order ------------------------------------------------------------------


class Chosen:
    """Leaves out the costly cases, and puts quick tests before slow ones."""

    def __init__(self, every: bool, workers: int) -> None:
        self.every = every
        self.workers = workers

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        kept = set(chosen([i.nodeid for i in items], self.every))
        left = [i for i in items if i.nodeid not in kept]
        if left:
            config.hook.pytest_deselected(items=left)
        by_id = {i.nodeid: i for i in items}
        items[:] = [by_id[name] for name in in_turn([i.nodeid for i in items if i.nodeid in kept], self.workers)]


def chosen(names: Sequence[str], every: bool) -> list[str]:
    """The tests that run: of those with costly cases the first case of each, unless `every` one shall."""
    seen: set[str] = set()
    found = []
    for name in names:
        test = name.partition("[")[0]
        if every or test not in seen or seconds(file_of(name)) < COSTLY:
            found.append(name)
        seen.add(test)
    return found


def in_turn(names: Sequence[str], workers: int) -> list[str]:
    """Tests by file, quick ones first for each worker; each begins with a stretch of the list of equal length."""
    by_file: dict[str, list[str]] = {}
    for name in names:
        by_file.setdefault(file_of(name), []).append(name)
    quick_first = sorted(by_file, key=lambda file: (seconds(file), file))
    stretches: list[list[str]] = [[] for _ in range(workers)]
    for file in quick_first:
        min(stretches, key=len).extend(by_file[file])
    return [name for stretch in stretches for name in stretch]


def file_of(name: str) -> str:
    return name.partition("::")[0]


@functools.cache
def seconds(file: str) -> float:
    """The seconds that a test of a file takes: as measured, else those of its folder, or of the one around that."""
    if file in _KNOWN or file == ".":
        return _KNOWN.get(file, COSTLY)
    return seconds(Path(file).parent.as_posix())


_KNOWN: dict[str, float] = json.loads(SECONDS.read_text())


# How long it takes --------------------------------------------------------------------------------


class Progress:
    """Says how many tests there are, how long they take, and while they run how much is left."""

    def __init__(self, config: pytest.Config, every: bool, workers: int) -> None:
        self.config = config
        self.every = every
        self.workers = workers
        self.work = self.done = 0.0
        self.tests = self.ran = 0
        self.begin = self.said = 0.0
        self.spent: dict[str, float] = {}
        self.counts: dict[str, int] = {}

    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["pace_all"] = self.every

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        if not self.tests:
            self.start(ids)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:
            self.start([item.nodeid for item in session.items])

    def start(self, names: Iterable[str]) -> None:
        """Say what is ahead."""
        work = [seconds(file_of(name)) for name in names]
        self.tests, self.work, self.begin = len(work), sum(work), time.monotonic()
        self.said = self.begin
        each = "1 worker" if self.workers == 1 else f"{self.workers} workers"
        more = "" if self.every else "; --all runs all cases of those that take long, too"
        self._say(f"{self.tests} tests, {minutes(self.work / self.workers)} on an idle machine with {each}{more}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = file_of(report.nodeid)
        self.spent[file] = self.spent.get(file, 0.0) + report.duration
        if report.when != "teardown":
            return
        self.counts[file] = self.counts.get(file, 0) + 1
        self.ran += 1
        self.done += seconds(file)
        now = time.monotonic()
        if now - self.said >= SAID and self.ran < self.tests:
            self.said = now
            self._say(f"{self.ran} of {self.tests} tests, {minutes(self.left(now - self.begin))} left")

    def left(self, elapsed: float) -> float:
        """Seconds that are left, at the pace so far; at first at that of an idle machine."""
        trust = self.work / 20
        pace = (elapsed + trust / self.workers) / (self.done + trust) if self.work else 0.0
        return (self.work - self.done) * pace

    def pytest_sessionfinish(self) -> None:
        if self.config.getoption("--measure"):
            found = _KNOWN | {f: round(self.spent[f] / count, 3) for f, count in self.counts.items()}
            SECONDS.write_text(json.dumps(dict(sorted(found.items())), indent=0) + "\n")

    def _say(self, text: str) -> None:
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.ensure_newline()
            reporter.write_line(text)


def minutes(seconds: float) -> str:
    """Some seconds in words."""
    return "less than a minute" if seconds < 50 else f"about {math.ceil(seconds / 60)} min"
