"""The processes that take part: each library in an interpreter of its own, with requests over a pipe."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.bench.layers import Case, Tensors
from tools.bench.peers import Peer

ROOT = Path(__file__).resolve().parent.parent.parent


SPINNING = 0.02
"""Seconds for which threads of a library that has just computed may keep processors busy.

OpenMP's threads, and those of ONNX Runtime, wait for more to do before they sleep.
"""


class WorkerError(Exception):
    """A worker ended, or refused a request."""


def places(threads: int) -> list[int]:
    """Return the processors for that many threads, the same for every contestant: the last of those we may use."""
    if not hasattr(os, "sched_getaffinity"):
        return []
    return sorted(os.sched_getaffinity(0))[-threads:]


class Worker:
    """A running worker of the checkout at `root`.  `close` ends it.  One that takes longer than `limit` seconds over an
    answer is ended.
    """

    def __init__(
        self, python: str, script: str, threads: int, *arguments: str, limit: float | None = None, root: Path = ROOT
    ) -> None:
        self._limit = limit
        self._pause = SPINNING if threads > 1 else 0.0
        self._complaints = tempfile.TemporaryFile("w+")  # noqa: SIM115  (open as long as the worker runs)
        path = os.pathsep.join(p for p in (str(root), os.environ.get("PYTHONPATH", "")) if p)
        cpus = ",".join(map(str, places(threads)))
        command = [python, "-m", "tools.bench.workers.start", script, str(threads), cpus, *arguments]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
            cwd=root,  # `-m` looks there first
        )
        try:
            hello = self.ask({"do": "hello"})
        except WorkerError:
            self.close()
            raise
        self.library = str(hello["library"])
        self.version = str(hello["version"])
        variants = hello["variants"]
        self.variants = tuple(str(v) for v in variants) if isinstance(variants, list) else ()

    def time(self, samples: int, variant: str = "", clock: str = "wall") -> list[float]:
        """Return the seconds for one call, `samples` times.

        With several threads a pause comes first, so that no threads of another worker are at work.
        """
        time.sleep(self._pause)
        seconds = self.ask({"do": "time", "variant": variant, "samples": samples, "clock": clock})["seconds"]
        if not isinstance(seconds, list):
            raise WorkerError("the worker gave no times")
        return [float(s) for s in seconds]

    def ask(self, request: Mapping[str, object]) -> dict[str, object]:
        """One request and its answer."""
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise WorkerError("the worker has no pipes")
        try:
            stdin.write(json.dumps(request) + "\n")
            stdin.flush()
            if self._limit is not None and not select.select([stdout], [], [], self._limit)[0]:
                self._process.kill()
                raise WorkerError(f"no answer within {self._limit:g} s")
            line = stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            code = self._process.wait()
            self._complaints.seek(0)
            last = self._complaints.read().strip().split("\n")[-1]
            raise WorkerError(last or f"the worker ended with exit code {code}")
        answer: dict[str, object] = json.loads(line)
        if "error" in answer:
            raise WorkerError(str(answer["error"]))
        return answer

    def close(self) -> None:
        """Asks the worker to leave; ends it if it does not."""
        try:
            self._process.communicate(json.dumps({"do": "quit"}) + "\n", timeout=10)
        except (subprocess.TimeoutExpired, BrokenPipeError, ValueError):
            self._process.kill()
            self._process.wait()
        finally:
            self._complaints.close()


@dataclass(frozen=True)
class Contestant:
    """One variant of one library."""

    worker: Worker
    variant: str

    @property
    def title(self) -> str:
        several = len(self.worker.variants) > 1
        return f"{self.worker.library} {self.variant}" if several else self.worker.library

    def prepare(self, case: Case, tensors: Tensors, result: Path | None) -> float:
        """Makes the call ready (built, warm); its result goes to the path if one is given.  Seconds of one call."""
        answer = self.worker.ask(
            {
                "do": "prepare",
                "variant": self.variant,
                "case": case.as_json(),
                "seed": tensors.seed,
                "offset": tensors.offset,
                "result": str(result) if result else "",
            }
        )
        seconds = answer["seconds"]
        return seconds if isinstance(seconds, float) else 0.0

    def time(self, samples: int) -> list[float]:
        """Return the seconds for one call, `samples` times."""
        return self.worker.time(samples, self.variant)

    def forget(self) -> None:
        """Drops the call that was made ready, and its tensors."""
        self.worker.ask({"do": "forget"})


def own_worker(module: Path, threads: int = 1, root: Path = ROOT) -> Worker:
    """Return the generated module of a checkout, in this interpreter."""
    return Worker(sys.executable, "opgen_worker", threads, str(module.resolve()), root=root)


def limits_worker(threads: int = 1) -> Worker:
    """Return the machine's limits, as a contestant that is measured in the others' turns."""
    return Worker(sys.executable, "limits_worker", threads)


def peer_worker(peer: Peer, threads: int) -> Worker:
    """Return a library in the interpreter that has it."""
    return Worker(peer.python, peer.script, threads)
