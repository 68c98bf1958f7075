"""Schedules that were found by measuring (`opgen tune`), in a file that a person can read: one JSON object a line.

An entry is for one kernel, told by its loops (whatever op they came from), sizes and types, and one CPU.  The file is
$OPGEN_TUNED (`off`: none is used), else `tuned.jsonl` in the kernel cache's directory.  A schedule that no longer
applies to its kernel is marked, and the default one is used: entries are never the reason for an error.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from opgen.runtime import cache

if TYPE_CHECKING:
    from opgen.codegen.llvm.target import Target
    from opgen.loop.nodes import Kernel
    from opgen.schedule.schedule import Schedule

VARIABLE = "OPGEN_TUNED"


@dataclass(frozen=True)
class Entry:
    """A schedule for a kernel on a CPU; `call` says for readers what was tuned, times are in microseconds.

    `refused` is why the schedule no longer applies, or empty.
    """

    key: str
    call: str
    cpu: str
    threads: int
    default_us: float
    tuned_us: float
    schedule: tuple[str, ...]
    refused: str = ""


def place() -> Path | None:
    """The file, or None if there is to be none."""
    named = os.environ.get(VARIABLE, "")
    if named:
        return None if named.strip().lower() in ("off", "0", "no") else Path(named).absolute()
    folder = cache.location()
    return None if folder is None else folder / "tuned.jsonl"


def entries() -> tuple[Entry, ...]:
    """What the file holds; lines that are no entries are passed over."""
    path = place()
    try:
        status = None if path is None else path.stat()
    except OSError:
        return ()
    return () if path is None or status is None else _read(path, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=4)
def _read(path: Path, _time: int, _size: int) -> tuple[Entry, ...]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return ()
    found = (_entry(line) for line in lines)
    return tuple({e.key: e for e in found if e is not None}.values())


def _entry(line: str) -> Entry | None:
    try:
        fields = json.loads(line)
        found = Entry(**{**fields, "schedule": tuple(fields["schedule"])})
    except (ValueError, TypeError, KeyError):
        return None
    texts = (found.key, found.call, found.cpu, found.refused, *found.schedule)
    numbers = (found.threads, found.default_us, found.tuned_us)
    right = all(isinstance(t, str) for t in texts) and all(isinstance(n, int | float) for n in numbers)
    return found if right and found.call.split() else None


def digest() -> str:
    """What changes whenever the schedules in use do."""
    found = entries()
    text = "\n".join(f"{e.key} {e.schedule}" for e in found if not e.refused)
    return hashlib.sha256(text.encode()).hexdigest() if text else ""


def write(kept: Iterable[Entry]) -> None:
    """Replace the file's contents.  Raises OSError."""
    path = place()
    if path is None:
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text("".join(json.dumps(asdict(e)) + "\n" for e in kept), encoding="utf-8")
    temporary.replace(path)


def store(entry: Entry) -> None:
    """Keep an entry in place of any other for its kernel."""
    write((*(e for e in entries() if e.key != entry.key), entry))


def forget(word: str) -> int:
    """Drop the entries whose key begins with a word or whose call has it as its op (`all`: every one); how many."""
    found = entries()
    kept = [e for e in found if word != "all" and not e.key.startswith(word) and e.call.split()[0] != word]
    if len(kept) < len(found):
        write(kept)
    return len(found) - len(kept)


# Kernels ---------------------------------------------------------------------------------------------------------


def key_of(kernel: Kernel, target: Target) -> str:
    """The key of a (simplified) kernel on a CPU: its loops, buffers and sizes, whatever it is called."""
    from opgen.loop.print import print_kernel

    text = print_kernel(replace(kernel, name="kernel"))
    return hashlib.sha256(f"{target.cpu} {target.vector_bits}\n{text}".encode()).hexdigest()[:16]


def scheduled(kernel: Kernel, target: Target) -> tuple[Schedule, Kernel]:
    """The schedule for a (simplified) kernel, and the kernel after it: the tuned one if there is one that applies."""
    from opgen.schedule.default import scheduled as by_default

    return _tuned(kernel, target) or by_default(kernel, "cpu", target.machine)


def _tuned(kernel: Kernel, target: Target) -> tuple[Schedule, Kernel] | None:
    from opgen.schedule.errors import ScheduleError
    from opgen.schedule.schedule import apply, parse_schedule
    from opgen.schedule.targets import require_target

    usable = {e.key: e for e in entries() if not e.refused}
    entry = usable.get(key_of(kernel, target)) if usable else None
    if entry is None:
        return None
    try:
        schedule = parse_schedule("".join(f"{step}\n" for step in entry.schedule))
        require_target(schedule, "cpu")
        return schedule, apply(kernel, schedule, check=False)
    except ScheduleError as error:
        _mark(entry, str(error))
        return None


def _mark(entry: Entry, reason: str) -> None:
    try:
        store(replace(entry, refused=reason.splitlines()[0] if reason else "refused"))
    except OSError:
        return


def finding() -> str:
    """The file and what it holds, for `opgen doctor`."""
    path, found = place(), entries()
    if path is None:
        return "off"
    refused = sum(bool(e.refused) for e in found)
    note = f"; {refused} no longer applied and ignored (opgen tune --list)" if refused else ""
    return f"{len(found)} schedule{'' if len(found) == 1 else 's'} ({path}){note}"
