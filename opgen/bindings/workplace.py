"""A hidden folder in which files are made before they take their places: gone afterwards.

If its process was killed, the next one removes it: a lock is held on a file in it as long as its process lives, and a
folder whose lock is free was left behind.  So was an old one that was killed before it had a lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from opgen import ending

_NAME = re.compile(r"\.build-[0-9a-f]{16}")
_LOCK = "opgen.lock"
_NEW = f"{_LOCK}.new"
_BEGUN_SECONDS = 3600.0
"""A workplace without a lock that is older than this was left by a process that died; a younger one is just begun."""


@contextlib.contextmanager
def workplace(place: Path) -> Iterator[Path]:
    """Provide an empty folder in `place`, by its absolute path, after removing those of killed processes.

    `place` is made if it does not exist; if it is empty in the end, it is removed again.
    """
    made = make_folders(place)
    folder = place.resolve() / f".build-{os.urandom(8).hex()}"
    with ending.cleaned(folder, partial(_remove, folder, made)):
        sweep(place)
        folder.mkdir(mode=0o700)
        unlocked = folder / _NEW
        with open(unlocked, "x") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            unlocked.rename(folder / _LOCK)  # a lock that can be seen is held
            inner = folder / "files"
            inner.mkdir()
            yield inner


def _remove(folder: Path, made: list[Path]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    remove_empty(made)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes from moving files into a folder meanwhile."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def write(path: Path, text: str) -> Path:
    """Write a file of text, and make the folders above it; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="")
    return path


def make_folders(place: Path) -> list[Path]:
    """Make a folder and those above it; return those that were not there, the outermost first."""
    missing = [p for p in (place, *place.parents) if not os.path.lexists(p)][::-1]
    try:
        place.mkdir(parents=True, exist_ok=True)
    except BaseException:
        remove_empty(missing)
        raise
    return missing


def remove_empty(folders: list[Path]) -> None:
    """Remove those of some nested folders that exist and are empty."""
    for folder in reversed(folders):
        with contextlib.suppress(OSError):
            folder.rmdir()


def sweep(place: Path) -> None:
    """Remove the folders of killed processes from a folder."""
    for folder in place.iterdir():
        if _NAME.fullmatch(folder.name) and stat.S_ISDIR(folder.lstat().st_mode):
            with contextlib.suppress(OSError):  # another process may be at the same; what cannot be removed stays
                _remove_if_left(folder)


def _remove_if_left(folder: Path) -> None:
    """Remove a workplace whose process is gone; one that holds anything but a lock, and no lock, is somebody else's."""
    if not (folder / _LOCK).exists():
        if time.time() - folder.stat().st_mtime > _BEGUN_SECONDS and {p.name for p in folder.iterdir()} <= {_NEW}:
            shutil.rmtree(folder)
        return
    with open(folder / _LOCK) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder)
