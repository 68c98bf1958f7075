"""Attempts in processes that may crash, hang or eat memory: each is watched, and its seed known."""

from __future__ import annotations

import faulthandler
import json
import mmap
import os
import resource
import signal
import struct
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.verification.attack.finding import Finding, FoundError, Target, described

_TICK = 0.02
_CLOCK = os.sysconf("SC_CLK_TCK")
_SLOT = struct.Struct("<q")


@dataclass
class Tally:
    """What a campaign came to."""

    attempts: int
    findings: list[Finding]


class Campaign:
    """Attempts of one target with seeds from `seed` on."""

    def __init__(self, target: Target, seed: int) -> None:
        self.target = target
        self._seed = seed
        self._under_way = mmap.mmap(-1, mmap.PAGESIZE)  # shared with what is forked: the seed of its attempt

    def run(self, seconds: float, attempts: int | None = None) -> Tally:
        """Go on for so many seconds, or so many attempts."""
        until = time.monotonic() + seconds
        seed, last = self._seed, None if attempts is None else self._seed + attempts
        findings: list[Finding] = []
        while time.monotonic() < until if last is None else seed < last:
            end = seed + self.target.batch if last is None else min(seed + self.target.batch, last)
            findings += self._batch(seed, end, None if last else until)
            seed = self._current + 1
        return Tally(seed - self._seed, findings)

    @property
    def _current(self) -> int:
        return int(_SLOT.unpack_from(self._under_way)[0])

    def _batch(self, first: int, end: int, until: float | None) -> Iterator[Finding]:
        """The findings of some attempts, or of as many as there are until one ends its process."""
        _SLOT.pack_into(self._under_way, 0, first)
        read, write = os.pipe()
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os.close(read)
            try:
                self._attempts(first, end, until, write)
            finally:
                os._exit(0)
        os.close(write)
        reason = self._watch(child)
        with open(read, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                seed, kind, detail = json.loads(line)
                yield Finding(self.target.name, seed, kind, detail)
        if reason:
            yield Finding(self.target.name, self._current, reason, "")

    def _watch(self, child: int) -> str:
        """Wait for a process; why it ended other than by itself, or empty."""
        seed, begun, used = self._current, time.monotonic(), 0.0
        while True:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return f"ended by {signal.Signals(os.WTERMSIG(status)).name}" if os.WIFSIGNALED(status) else ""
            if self._current != seed:
                seed, begun, used = self._current, time.monotonic(), _processor_seconds(child)
            reason = ""
            if _processor_seconds(child) - used > self.target.seconds:
                reason = f"more than {self.target.seconds:g} s of processor time"
            elif time.monotonic() - begun > self.target.patience and not _runnable(child):  # else it is at work
                reason = f"nothing for {self.target.patience:g} s"
            if reason:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return reason
            time.sleep(_TICK if self.target.batch > 1 else _TICK / 10)

    def _attempts(self, first: int, end: int, until: float | None, out: int) -> None:
        if self.target.memory:
            _limit_memory(self.target.memory)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        silence()
        faulthandler.disable()  # a crash is told by its process
        for seed in range(first, end):
            if until is not None and seed > first and time.monotonic() > until:
                return
            _SLOT.pack_into(self._under_way, 0, seed)
            try:
                self.target.attempt(Random(seed))
                continue
            except FoundError as found:
                kind, detail = found.kind, found.detail
            except BaseException as error:  # whatever comes out of an attempt is what is looked for
                kind, detail = described(error), traceback.format_exc()
            os.write(out, (json.dumps([seed, kind, detail[:4000]]) + "\n").encode())


def silence() -> None:
    """Point standard output and error at nothing: attempts print."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)


def _limit_memory(more: int) -> None:
    """Let this process have so many bytes beside what it has."""
    lines = Path("/proc/self/status").read_text().splitlines()
    data = next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmData:"))
    resource.setrlimit(resource.RLIMIT_DATA, (data + more, data + more))


def _runnable(process: int) -> bool:
    """Whether a process runs, or would if it had a processor."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "R"
    except OSError:
        return False


def _processor_seconds(process: int) -> float:
    """The processor time that a process has used; 0 if it is gone."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _CLOCK
