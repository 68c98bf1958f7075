"""The cache is never the reason for an error: cleared, full or damaged at any time, models give what they give."""

from __future__ import annotations

import contextlib
import errno
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import opgen
from opgen.cache import directory
from opgen.cache import entries as cache
from opgen.runtime.kernels.loaded import Loaded
from tests.support.known_weights import drawn, layers

EXPECTED_BY = (drawn(64, 128, seed=1), drawn(128, 64, seed=2))
SEEDS = range(6)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model of two layers, and an empty cache."""
    monkeypatch.setenv("OPGEN_CACHE_DIR", str(tmp_path / "cache"))
    return layers(tmp_path / "m.onnx")


def check(path: Path, sizes: Iterator[int] | range) -> None:
    """Compile the model and run it for batches of some sizes."""
    model = opgen.compile(path)
    for rows in sizes:
        x = drawn(rows, 64, seed=rows)
        expected = np.maximum(x @ EXPECTED_BY[0], 0) @ EXPECTED_BY[1]
        np.testing.assert_allclose(model(x), expected, rtol=1e-4, atol=1e-3)


@contextlib.contextmanager
def cleared_by_a_thread() -> Iterator[None]:
    path, done = cache.default().path, False

    def clear() -> None:
        while not done:
            cache.KernelCache(path).clear()

    thread = threading.Thread(target=clear)
    thread.start()
    try:
        yield
    finally:
        done = True
        thread.join()


@contextlib.contextmanager
def cleared_by_processes() -> Iterator[None]:
    command = "from opgen.cache import entries as cache\nwhile True: cache.clear()"
    processes = [subprocess.Popen([sys.executable, "-c", command]) for _ in range(2)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.parametrize("cleared", [cleared_by_a_thread, cleared_by_processes])
def test_a_cache_that_is_cleared_meanwhile(path: Path, cleared: type[contextlib.AbstractContextManager[None]]) -> None:
    with cleared():
        check(path, range(1, 5))
        check(path, range(1, 3))


class Faults:
    """A disk on which things go wrong at random: it is full, and entries vanish or are damaged."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._full, self._lost, self._torn = self._rng.uniform(0, 1, 3)
        self._write, self._read = directory.write, directory.read

    def write(self, d: int, name: str, *content: bytes | memoryview) -> None:
        """Write a file, or raise the error of a full disk, or write half of it."""
        if self._rng.uniform() < self._full:
            raise OSError(errno.ENOSPC, "No space left on device")
        whole = b"".join(content)
        self._write(d, name, whole[: len(whole) // 2] if self._rng.uniform() < self._torn else whole)

    def read(self, d: int, name: str, limit: int = directory.LIMIT) -> bytes | None:
        """Read a file, which may be gone since it was found, or have other bytes."""
        found = self._read(d, name, limit)
        if found is None or self._rng.uniform() < self._lost:
            return None
        if self._rng.uniform() < self._torn:
            at = int(self._rng.integers(len(found)))
            return found[:at] + bytes([found[at] ^ 1]) + found[at + 1 :]
        return found


@pytest.mark.parametrize("seed", SEEDS)
def test_a_disk_on_which_things_go_wrong(path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    faults = Faults(seed)
    monkeypatch.setattr(directory, "write", faults.write)
    monkeypatch.setattr(directory, "read", faults.read)
    for _ in range(2):
        monkeypatch.setattr("opgen.runtime.kernels.loaded._loaded", Loaded())
        check(path, range(1, 4))


def test_a_disk_that_is_always_full(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(directory, "write", full)
    check(path, range(1, 3))


def test_without_a_cache_a_program_has_more_kernels_than_stay_loaded(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPGEN_CACHE", "off")
    monkeypatch.setattr("opgen.runtime.kernels.loaded.SPARE", 0)
    monkeypatch.setattr("opgen.runtime.kernels.loaded._loaded", Loaded())
    check(path, range(1, 3))
