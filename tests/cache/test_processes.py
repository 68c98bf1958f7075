"""The kernel cache under many processes, some of which die."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import random
import signal
import time
from pathlib import Path

import pytest

from opgen.cache.entries import KernelCache

KEYS = [hashlib.sha256(str(n).encode()).hexdigest() for n in range(6)]


def payload(key: str) -> bytes:
    """What belongs to a key: big enough that a write takes a while."""
    return hashlib.sha256(key.encode()).digest() * 20_000


def write_and_read(path: Path, seed: int, rounds: int) -> None:
    """Store and load keys at random; a load gives nothing or exactly what belongs to the key."""
    order = random.Random(seed)
    store = KernelCache(path)
    for _ in range(rounds):
        key = order.choice(KEYS)
        if order.random() < 0.5:
            store.store(key, payload(key))
        elif order.random() < 0.05:
            store.clear()
        else:
            found = store.load(key)
            assert found is None or found == payload(key)


def write_for_ever(path: Path) -> None:
    store = KernelCache(path)
    while True:
        for key in KEYS:
            store.store(key, payload(key))


def test_concurrent_writers_and_readers(cache_directory: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=write_and_read, args=(cache_directory, seed, 150)) for seed in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=100)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert list(cache_directory.glob(".*.part")) == []


@pytest.mark.parametrize("seed", range(3))
def test_kill_while_writing_leaves_whole_entries_only(cache_directory: Path, seed: int) -> None:
    order = random.Random(seed)
    for _ in range(8):
        child = os.fork()
        if child == 0:
            try:
                write_for_ever(cache_directory)
            finally:
                os._exit(1)
        time.sleep(0.005 + 0.02 * order.random())
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        files = cache_directory.glob("*.kernel")
        store = KernelCache(cache_directory)
        for file in list(files):
            assert store.load(file.stem) == payload(file.stem), f"seed {seed}"
    assert store.store(KEYS[0], payload(KEYS[0]))
    for left in cache_directory.glob(".*.part"):
        os.utime(left, (1, 1))
    store.sweep()
    assert list(cache_directory.glob(".*.part")) == []
