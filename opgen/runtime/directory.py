"""A directory that belongs to this user alone, opened once for each piece of work on it.

Everything is done relative to the open directory, so that what was checked is what is used, whatever happens to the
path meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_OPEN = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)

SUPPORTED = hasattr(os, "geteuid") and os.open in os.supports_dir_fd
"""Whether the platform has what a private directory needs."""


class UntrustedDirectoryError(Exception):
    """The directory is not this user's alone; the text says how."""


def distrust(status: os.stat_result) -> str | None:
    """Why a directory or file is not this user's alone, or None."""
    if status.st_uid != os.geteuid():
        return f"it belongs to user {status.st_uid}, not to user {os.geteuid()}"
    if status.st_mode & _WRITABLE_BY_OTHERS:
        return f"others may write to it (mode {stat.S_IMODE(status.st_mode):04o})"
    return None


def _make(path: Path) -> None:
    """The directory and those above it, private to the user where they are new."""
    if path.is_dir():
        return
    if path.parent != path:
        _make(path.parent)
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)


@contextlib.contextmanager
def opened(path: Path, create: bool) -> Iterator[int]:
    """A descriptor of the directory.

    Raises OSError if there is none (or it cannot be made), UntrustedDirectoryError if it is not this user's alone.
    """
    if create:
        _make(path)
    descriptor = os.open(path, _OPEN)
    try:
        if reason := distrust(os.fstat(descriptor)):
            raise UntrustedDirectoryError(reason)
        yield descriptor
    finally:
        os.close(descriptor)


def read(directory: int, name: str) -> bytes | None:
    """A file's content; None if there is no such file, or it is not a plain file of this user's alone.

    The time of its last use is noted (where the directory can be written).
    """
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | _NO_LINKS, dir_fd=directory)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or distrust(status):
            return None
        try:
            content = file.read()
        except OSError:
            return None
        with contextlib.suppress(OSError):
            os.utime(descriptor)
        return content


def write(directory: int, temporary: str, name: str, content: bytes) -> None:
    """A file that appears whole or not at all: written under another name, then renamed.  Raises OSError."""
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINKS, 0o600, dir_fd=directory)
        with open(descriptor, "wb") as file:
            file.write(content)
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError:
        remove(directory, temporary)
        raise


def remove(directory: int, name: str) -> bool:
    """Remove a file; whether there was one to remove."""
    try:
        os.unlink(name, dir_fd=directory)
    except OSError:
        return False
    return True
