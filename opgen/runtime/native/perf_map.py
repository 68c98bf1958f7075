"""Names of loaded functions for Linux `perf`, which finds those of code without a file in `/tmp/perf-PID.map`.

    OPGEN_PERF=map perf record -g python program.py

Each function has a line: its address, its size, its name.  The file is appended to, as other writers of code in the
process do; lines of an earlier process with the same number are dropped.  It stays, since `perf report` reads it after
the process has ended.  A forked child has a file of its own, with all functions that it shares with its parent.
"""

from __future__ import annotations

import os
import re
import stat
import time
import warnings

from opgen.cache.settings import shown
from opgen.diagnostics import InternalError, UserError
from opgen.runtime.native.elf import functions

VARIABLE = "OPGEN_PERF"

_LONGEST = 200
_NOT_NAMING = re.compile(r"[^\w.:+\-/]+")

_lines: list[bytes] = []
"""Everything that the process has loaded, for children that are forked."""
_file: str | None = None
"""The file that this process writes; None before the first line, and if none can be written."""
_refused = False


def enabled() -> bool:
    """Return True if OPGEN_PERF requests a map.  Raises UserError for an unknown word."""
    word = os.environ.get(VARIABLE, "")
    if word not in ("", "map"):
        raise UserError(f"{VARIABLE} is {shown(word)}, expected map (write /tmp/perf-PID.map) or nothing")
    return word == "map"


def note(code: bytes, symbol: str, address: int, owner: str) -> None:
    """Write the functions of an object file that was loaded: `symbol`, one of them, is at `address`."""
    if not enabled():
        return
    try:
        found = functions(code)
    except InternalError:  # not an ELF file: no system with perf
        return
    known = next(f for f in found if f.name == symbol)
    start = address - known.value
    prefix = f"opgen::{owner}::" if owner else "opgen::"
    lines = [_line(start + f.value, f.size, prefix + f.name) for f in found if f.section == known.section and f.size]
    _lines.extend(lines)
    _write(lines)


def _line(address: int, size: int, name: str) -> bytes:
    return f"{address:x} {size:x} {_NOT_NAMING.sub('_', name)[:_LONGEST]}\n".encode()


def _write(lines: list[bytes]) -> None:
    global _file, _refused
    if _refused:
        return
    path = f"/tmp/perf-{os.getpid()}.map"
    try:
        _append(path, b"".join(lines), begins=_file != path)
        _file = path
    except OSError as error:
        _refused = True
        warnings.warn(f"{VARIABLE}=map: {path} cannot be written: {error}", RuntimeWarning, stacklevel=2)


def _append(path: str, lines: bytes, begins: bool) -> None:
    """Append lines to a file of this user's own, created if it does not exist; no link is followed."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_nlink != 1:
            raise OSError("it is not a plain file of this user's own")
        if begins and found.st_mtime < _started():
            os.ftruncate(descriptor, 0)
        os.write(descriptor, lines)
    finally:
        os.close(descriptor)


def _started() -> float:
    """Return the time at which this process began; 0 where the system does not tell."""
    try:
        with open("/proc/self/stat", "rb") as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0
    return time.time() - age


def _after_fork() -> None:
    global _file
    _file = None
    if _lines:
        _write(_lines)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
