"""A hidden folder beside a library in which it is linked: gone afterwards, also if its process was killed, by the next.

A lock is held on a file in it as long as its process lives; a folder whose lock is free was left behind.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path

_NAME = re.compile(r"\.build-[0-9a-f]{16}")
_LOCK = "opgen.lock"
_NEW_SECONDS = 60.0
"""A folder without a lock may be so new that its process has not made one yet."""


@contextlib.contextmanager
def workplace(place: Path) -> Iterator[Path]:
    """An empty folder in `place` (absolute), and what killed processes left there removed."""
    sweep(place)
    folder = place.resolve() / f".build-{os.urandom(8).hex()}"
    folder.mkdir(mode=0o700)
    unlocked = folder / f"{_LOCK}.new"
    with open(unlocked, "x") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        unlocked.rename(folder / _LOCK)  # a lock that can be seen is held
        try:
            yield folder
        finally:
            _remove(folder)


def sweep(place: Path) -> None:
    """Remove what killed processes left in a folder."""
    for folder in place.iterdir():
        if _NAME.fullmatch(folder.name) and stat.S_ISDIR(folder.lstat().st_mode):
            with contextlib.suppress(OSError):  # another process may be at the same; what cannot be removed stays
                _remove_if_left(folder)


def _remove_if_left(folder: Path) -> None:
    if not os.path.lexists(folder / _LOCK):
        if time.time() - folder.stat().st_mtime > _NEW_SECONDS:
            _remove(folder)
        return
    with open(folder / _LOCK) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(folder)


def _remove(folder: Path) -> None:
    """Remove a folder of plain files, the lock last; a folder in it is nobody's business, and stays."""
    for path in sorted(folder.iterdir(), key=lambda p: p.name == _LOCK):
        if not stat.S_ISDIR(path.lstat().st_mode):
            path.unlink()
    folder.rmdir()
