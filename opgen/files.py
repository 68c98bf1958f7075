"""Files that a user or the environment names: read only if they are plain and small, written whole or not at all.

A path may lead to a pipe that never ends, to `/dev/zero`, to a folder, or to more bytes than memory holds.  Each of
these is reported as a mistake of the user.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

from opgen.diagnostics import UserError

MIB = 1 << 20
TEXT_LIMIT = 8 * MIB
"""Size limit in bytes of a file that a person writes: a spec, a schedule, a list of calls."""
DEPTH = 64
"""The most levels of a JSON text: far below Python's recursion limit."""
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_KINDS = (
    (stat.S_ISDIR, "it is a folder"),
    (stat.S_ISFIFO, "it is a pipe"),
    (stat.S_ISCHR, "it is a device"),
    (stat.S_ISBLK, "it is a device"),
    (stat.S_ISSOCK, "it is a socket"),
    (stat.S_ISLNK, "it is a link"),
)


class FileRefusedError(UserError):
    """A file that cannot be read as expected; `reason` says why, without the path."""

    def __init__(self, path: Path, reason: str, said: str = "cannot read {}: {}") -> None:
        self.path = path
        self.reason = reason
        super().__init__(said.format(path, reason))


def why_not_plain(status: os.stat_result) -> str | None:
    """Return the kind of a file that is not plain, or None."""
    return None if stat.S_ISREG(status.st_mode) else next(said for is_it, said in _KINDS if is_it(status.st_mode))


def opened(path: Path) -> int:
    """Return a descriptor of a plain file; links are followed.  Raises FileRefusedError."""
    try:
        descriptor = os.open(path, _READ)
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        raise FileRefusedError(path, getattr(error, "strerror", None) or str(error)) from error
    if reason := why_not_plain(os.fstat(descriptor)):
        os.close(descriptor)
        raise FileRefusedError(path, reason)
    return descriptor


def content(path: Path, limit: int = TEXT_LIMIT) -> bytes:
    """Return the bytes of a plain file; links are followed.  Raises FileRefusedError, also beyond `limit`."""
    descriptor = opened(path)
    try:
        found = read(descriptor, limit + 1)
    except OSError as error:
        raise FileRefusedError(path, error.strerror or str(error)) from error
    finally:
        os.close(descriptor)
    if len(found) > limit:
        raise FileRefusedError(path, f"it is larger than {limit / MIB:g} MiB")
    return found


def read(descriptor: int, most: int) -> bytes:
    """Return up to `most` bytes from the descriptor's position; the descriptor stays open."""
    with open(descriptor, "rb", closefd=False) as file:
        return file.read(most)


def text(path: Path, limit: int = TEXT_LIMIT) -> str:
    """Return the text of a plain UTF-8 file, with its line endings as they are.  Raises FileRefusedError."""
    try:
        return content(path, limit).decode()
    except UnicodeDecodeError as error:
        raise FileRefusedError(path, f"not UTF-8 text (byte {error.start})", "{}: {}") from error


def document(path: Path, limit: int = TEXT_LIMIT) -> object:
    """Return the value of a JSON file.  Raises FileRefusedError."""
    try:
        return parsed(text(path, limit))
    except ValueError as error:
        raise FileRefusedError(path, str(error), "{} is no JSON: {}") from error


def parsed(written: str | bytes) -> object:
    """Return the value of a JSON text.  Raises ValueError, also for too deep nesting or too many digits."""
    try:
        found: object = json.loads(written)
    except RecursionError:
        raise ValueError("it nests too deeply") from None
    level = [found]
    for _ in range(DEPTH):
        level = [part for value in level if isinstance(value, dict | list) for part in _parts(value)]
        if not level:
            return found
    raise ValueError("it nests too deeply")


def _parts(value: dict[str, object] | list[object]) -> Iterable[object]:
    return value.values() if isinstance(value, dict) else value


def write(path: Path, data: bytes) -> None:
    """Replace a file's content in one step; for a link, the file that it names is replaced.  Raises OSError.

    An existing path that is not a plain file (`/dev/stdout`) is written to directly.
    """
    real = Path(os.path.realpath(path))
    mode = None
    with contextlib.suppress(FileNotFoundError):
        status = real.stat()
        if not stat.S_ISREG(status.st_mode):
            real.write_bytes(data)
            return
        mode = stat.S_IMODE(status.st_mode)
    staged = stage(real, data, mode)
    try:
        os.replace(staged, real)
    except BaseException:
        staged.unlink(missing_ok=True)
        raise


def create(path: Path, data: bytes) -> None:
    """Write a new file, whole or not at all.  Raises FileExistsError, also for a link to nowhere, or OSError."""
    staged = stage(path, data)
    try:
        os.link(staged, path)
    except OSError:
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        os.rename(staged, path)  # a file system without hard links
    finally:
        staged.unlink(missing_ok=True)


def stage(target: Path, data: bytes, mode: int | None = None) -> Path:
    """Write content to a new file beside its place, to be renamed to it; of mode 644 by default.  Raises OSError."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(name, 0o644 if mode is None else mode)
    except BaseException:
        os.unlink(name)
        raise
    return Path(name)
