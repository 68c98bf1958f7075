"""Private directories: one that belongs to this user alone, opened once for each piece of work, and its files.

Files kept between processes (built kernels, measured numbers, tuned schedules) are trusted if nobody else can have
written them.  Directory and file belong to the user, others may not write to them, and no link leads elsewhere.  Every
access is relative to the open directory.  So the file that was checked is the file that is used, even if the path
changes meanwhile.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from opgen import files

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_OPEN = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
LIMIT = 64 * files.MIB
"""The largest file that is read, in bytes: object code of one kernel is far smaller."""
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)

SUPPORTED = hasattr(os, "geteuid") and os.open in os.supports_dir_fd
"""True if the platform supports private directories."""


class UntrustedError(Exception):
    """The directory or file is not this user's alone, or is not a plain file of a sensible size; the text says why."""


def distrust(status: os.stat_result) -> str | None:
    """Return the reason why a directory or file is not this user's alone, or None."""
    if status.st_uid != os.geteuid():
        return f"it belongs to user {status.st_uid}, not to user {os.geteuid()}"
    if status.st_mode & _WRITABLE_BY_OTHERS:
        return f"others may write to it (mode {stat.S_IMODE(status.st_mode):04o})"
    return None


def _make(path: Path) -> None:
    """Create the directory and its parents; new ones are private to the user."""
    if path.is_dir():
        return
    if path.parent != path:
        _make(path.parent)
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)


@contextlib.contextmanager
def opened(path: Path, create: bool) -> Iterator[int]:
    """Yield a descriptor of the directory.

    Raises OSError if it does not exist (or cannot be created), UntrustedError if it is not this user's alone.
    """
    if create:
        _make(path)
    descriptor = os.open(path, _OPEN)
    try:
        if reason := distrust(os.fstat(descriptor)):
            raise UntrustedError(reason)
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def file(directory: int, name: str, limit: int) -> Iterator[int]:
    """Yield a descriptor of a plain file that is this user's alone and has at most `limit` bytes.

    Raises OSError if it does not exist, UntrustedError if it is something else.
    """
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | _NO_LINKS, dir_fd=directory)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UntrustedError("it is a link") from error
        raise
    try:
        status = os.fstat(descriptor)
        reason = files.why_not_plain(status) or distrust(status)
        if reason is None and status.st_size > limit:
            reason = f"it is larger than {limit / files.MIB:g} MiB"
        if reason:
            raise UntrustedError(reason)
        yield descriptor
    finally:
        os.close(descriptor)


def read(directory: int, name: str, limit: int = LIMIT) -> bytes | None:
    """Return a file's content; None if the file does not exist or cannot be trusted.

    The file's time of last use is updated (where the directory can be written).
    """
    try:
        with file(directory, name, limit) as descriptor:
            content = files.read(descriptor, limit)
            used(descriptor)
            return content
    except (OSError, UntrustedError):
        return None


def used(descriptor: int) -> None:
    """Update a file's time of last use (where the directory can be written)."""
    with contextlib.suppress(OSError):
        os.utime(descriptor)


def write(directory: int, name: str, *content: bytes | memoryview) -> None:
    """Write a file that appears whole or not at all: under another name, then renamed.  Raises OSError.

    The other name is new: an existing file or link of that name is never written to.
    """
    temporary = f".{name}.{os.getpid()}.{os.urandom(6).hex()}.part"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINKS, 0o600, dir_fd=directory)
        with open(descriptor, "wb") as file:
            file.writelines(content)
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError:
        remove(directory, temporary)
        raise


def remove(directory: int, name: str) -> bool:
    """Remove a file; return True if it existed."""
    try:
        os.unlink(name, dir_fd=directory)
    except OSError:
        return False
    return True
