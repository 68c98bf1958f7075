"""Tuned schedules, found by measuring (`opgen tune`), in a readable file: one JSON object a line.

An entry is for one kernel on one CPU.  Loops, sizes and types identify the kernel, whichever op it came from.  The file
is $OPGEN_TUNED (`off`: none is used), else `tuned.jsonl` in the kernel cache's directory.  A schedule that no longer
applies to its kernel is marked, and the default one is used: entries never cause an error.

The file is trusted like the kernels beside it: if it and its folder are this user's alone.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from opgen import files
from opgen.cache import directory
from opgen.cache import entries as cache
from opgen.cache.location import absolute
from opgen.diagnostics import OpgenError, UserError

if TYPE_CHECKING:
    from opgen.codegen.llvm.target import Target
    from opgen.loop.nodes import Kernel
    from opgen.schedule.schedule import Schedule

T = TypeVar("T")

VARIABLE = "OPGEN_TUNED"
LIMIT = 4 * files.MIB
"""The largest file, in bytes: some thousand schedules."""
LINE = 1 << 16
"""The longest line, in bytes."""
LEAST = 80
"""The shortest line, in bytes: the names of an entry's fields take as much."""
LARGEST = 1e15
"""An upper bound of every number of an entry."""


@dataclass(frozen=True)
class Entry:
    """A schedule for a kernel on a CPU; `call` describes the tuned call for readers, times are in microseconds.

    `refused` is the reason why the schedule no longer applies, or empty.
    """

    key: str
    call: str
    cpu: str
    threads: int
    default_us: float
    tuned_us: float
    schedule: tuple[str, ...]
    refused: str = ""


class TunedWarning(UserWarning):
    """Tuned schedules are not used, because others could have written them."""


def place() -> Path | None:
    """Return the path of the file, or None if tuned schedules are off."""
    named = os.environ.get(VARIABLE, "")
    if named:
        return None if named.strip().lower() in ("off", "0", "no") else absolute(named)
    folder = cache.location()
    return None if folder is None else folder / "tuned.jsonl"


def entries() -> tuple[Entry, ...]:
    """Return the file's entries; invalid lines are skipped.

    A file that others could have written, or that is too large, is not read: TunedWarning.
    """
    path = place()
    if path is None:
        return ()
    try:
        with _opened(path) as descriptor:
            status = os.fstat(descriptor)
            version = (str(path), status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size)
            found = _read.get(version)
            if found is None:
                found = _parsed(files.read(descriptor, LIMIT))
                _read.clear()
                _read[version] = found
            return found
    except directory.UntrustedError as reason:
        _warn(str(path), str(reason))
    except (OSError, ValueError):  # ValueError: a name that no file can have
        pass
    return ()


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Yield a descriptor of the file.  Raises OSError, and UntrustedError if it cannot be trusted."""
    with directory.opened(path.parent, create=False) as d, directory.file(d, path.name, LIMIT) as descriptor:
        yield descriptor


def _distrusted(path: Path) -> str | None:
    """Return the reason why an existing file cannot be trusted, or None."""
    try:
        with _opened(path):
            return None
    except directory.UntrustedError as reason:
        return str(reason)
    except (OSError, ValueError):
        return None


_read: dict[tuple[str | int, ...], tuple[Entry, ...]] = {}
"""The entries of the file as last read, by a version that changes with the file."""


@functools.lru_cache(maxsize=16)
def _warn(path: str, reason: str) -> None:
    """Warn once for each file and reason."""
    warnings.warn(f"the tuned schedules in {path} are not used: {reason}", TunedWarning, stacklevel=4)


def _parsed(content: bytes) -> tuple[Entry, ...]:
    lines = content.split(b"\n")
    found = (_entry(line) for line in lines if line[:1] == b"{" and LEAST <= len(line) <= LINE)
    return tuple({e.key: e for e in found if e is not None}.values())


def _entry(line: bytes) -> Entry | None:
    try:
        fields = files.parsed(line)
        if not isinstance(fields, dict) or not isinstance(fields.get("schedule"), list):
            return None
        found = Entry(**{**fields, "schedule": tuple(fields["schedule"])})
    except (ValueError, TypeError):
        return None
    texts = (found.key, found.call, found.cpu, found.refused, *found.schedule)
    numbers = (found.threads, found.default_us, found.tuned_us)
    right = all(isinstance(t, str) and t.isprintable() for t in texts)
    right = right and all(isinstance(n, int | float) and 0 <= n < LARGEST for n in numbers)
    return found if right and found.call.split() else None


def digest() -> str:
    """Return a text that changes whenever the schedules in use do."""
    found = entries()
    text = "\n".join(f"{e.key} {e.schedule}" for e in found if not e.refused)
    return hashlib.sha256(text.encode()).hexdigest() if text else ""


def write(kept: Iterable[Entry]) -> None:
    """Replace the file's contents; the oldest entries are dropped if it would become too large.

    Raises OSError, and UserError if the written file could not be trusted.
    """
    path = place()
    if path is None:
        return
    lines: list[str] = []
    room = LIMIT
    for entry in reversed([*kept]):
        line = json.dumps(asdict(entry)) + "\n"
        room -= len(line)
        if room < 0:
            break
        lines.append(line)
    with _own(path) as d:
        directory.write(d, path.name, "".join(reversed(lines)).encode())


def require_writable() -> None:
    """Raise UserError if tuned schedules could not be kept, OSError if the file cannot exist."""
    path = place()
    if path is not None:
        with _own(path):
            pass


@contextlib.contextmanager
def _own(path: Path) -> Iterator[int]:
    """Yield a descriptor of the folder of a file that is this user's alone, or does not exist yet."""
    try:
        with directory.opened(path.parent, create=True) as d:
            with contextlib.suppress(FileNotFoundError), directory.file(d, path.name, sys.maxsize) as descriptor:
                content = files.read(descriptor, LIMIT)
                if content.strip() and not any(line[:1] == b"{" for line in content.split(b"\n")):
                    raise directory.UntrustedError("it holds something else; name another file, or remove this one")
            yield d
    except directory.UntrustedError as reason:
        raise UserError(f"schedules cannot be kept in {path}: {reason}") from reason


def store(entry: Entry) -> None:
    """Keep an entry, replacing any other for its kernel."""
    write((*(e for e in entries() if e.key != entry.key), entry))


def forget(word: str) -> int:
    """Drop entries by the beginning of their key or by their op (`all`: every one); return their number."""
    found = entries()
    kept = [e for e in found if word != "all" and not e.key.startswith(word) and e.call.split()[0] != word]
    if len(kept) < len(found):
        write(kept)
    return len(found) - len(kept)


# Kernels ---------------------------------------------------------------------------------------------------------


def key_of(kernel: Kernel, target: Target) -> str:
    """Return the key of a (simplified) kernel on a CPU: its loops, buffers and sizes, whatever its name."""
    from opgen.loop.print import print_kernel

    text = print_kernel(replace(kernel, name="kernel"))
    return hashlib.sha256(f"{target.cpu} {target.vector_bits}\n{text}".encode()).hexdigest()[:16]


def scheduled(kernel: Kernel, target: Target) -> tuple[Schedule, Kernel]:
    """Return the schedule for a (simplified) kernel, and the kernel after it: the tuned one if one applies."""
    from opgen.schedule.default import scheduled as by_default

    return _tuned(kernel, target) or by_default(kernel, "cpu", target.machine)


def build(kernel: Kernel, target: Target, make: Callable[[Schedule, Kernel], T]) -> T:
    """Return the result of `make` for the schedule of a (simplified) kernel and the kernel after it.

    If that fails with a tuned schedule, the schedule is marked and the default one is used.  If that fails, too, plain
    loop nests are used.
    """
    found = _tuned(kernel, target)
    if found is not None:
        try:
            return make(*found)
        except (OpgenError, RecursionError) as error:  # any failure of a kept schedule: the default one remains
            _mark(key_of(kernel, target), str(error))
    return by_default(kernel, target, make)


def by_default(kernel: Kernel, target: Target, make: Callable[[Schedule, Kernel], T]) -> T:
    """Return the result of `make` for a (simplified) kernel's default schedule, else for plain loop nests."""
    from opgen.schedule.default import scheduled
    from opgen.schedule.fallback import built

    return built(kernel, lambda check: scheduled(kernel, "cpu", target.machine, check=check), make)


def entry_for(kernel: Kernel, target: Target) -> Entry | None:
    """Return the entry of a (simplified) kernel, if it has one that was not refused."""
    usable = {e.key: e for e in entries() if not e.refused}
    return usable.get(key_of(kernel, target)) if usable else None


def _tuned(kernel: Kernel, target: Target) -> tuple[Schedule, Kernel] | None:
    from opgen.schedule.schedule import apply, parse_schedule
    from opgen.schedule.targets import require_target

    entry = entry_for(kernel, target)
    if entry is None:
        return None
    try:
        schedule = parse_schedule("".join(f"{step}\n" for step in entry.schedule))
        require_target(schedule, "cpu")
        after = apply(kernel, schedule)
    except (OpgenError, RecursionError) as error:  # also from the verifier
        _mark(entry.key, str(error))
        return None
    return schedule, after


def _mark(key: str, reason: str) -> None:
    line = "".join(c for c in reason.split("\n")[0][:200] if c.isprintable())
    try:
        write(replace(e, refused=line or "refused") if e.key == key else e for e in entries())
    except (OSError, UserError):
        return


def finding() -> str:
    """Return a summary of the file and its contents, for `opgen doctor`."""
    path, found = place(), entries()
    if path is None:
        return "off"
    if (reason := _distrusted(path)) is not None:
        return f"not used: {reason} ({path})"
    refused = sum(bool(e.refused) for e in found)
    note = f"; {refused} no longer applied and ignored (opgen tune --list)" if refused else ""
    return f"{len(found)} schedule{'' if len(found) == 1 else 's'} ({path}){note}"
