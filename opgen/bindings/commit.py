"""Files that take their places in a folder together: all of them, or none."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from opgen import files as plain
from opgen.bindings.workplace import make_folders, remove_empty

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def commit(folder: Path, staged: Sequence[tuple[str, Path]], removed: Sequence[str], work: Path) -> None:
    """Rename staged files to their places in a folder, in their order, and remove others.

    A reader sees each file old or new, whole.  If one cannot be replaced, all are again as they were; a signal to end
    waits until either is done.  Replaced files are kept in `work` meanwhile.
    """
    undo: list[Callable[[], object]] = []
    kept = [_beside(folder / name, work) for name in (*(name for name, _ in staged), *removed)]
    with _signals_held():
        try:
            for old, (name, source) in zip(kept, staged, strict=False):
                target = folder / name
                undo.append(partial(remove_empty, make_folders(target.parent)))
                near = _near(source, target)
                undo.append(partial(near.unlink, missing_ok=True))
                undo.append(_replace(near, target, old))
            for old, name in zip(kept[len(staged) :], removed, strict=True):
                undo.append(_put_away(folder / name, old))
        except BaseException:
            for step in reversed(undo):
                with contextlib.suppress(OSError):
                    step()
            raise
        for old in kept:
            old.unlink(missing_ok=True)


def _replace(source: Path, target: Path, kept: Path) -> Callable[[], object]:
    """Rename a file over the one in its place, which is kept; return a function that undoes this."""
    if not os.path.lexists(target):
        os.replace(source, target)
        return target.unlink
    try:
        os.link(target, kept, follow_symlinks=False)
    except OSError:  # a file system without hard links
        os.rename(target, kept)
    try:
        os.replace(source, target)
    except BaseException:
        os.rename(kept, target)
        kept.unlink(missing_ok=True)  # a link to the same file is not renamed
        raise
    return partial(os.rename, kept, target)


def _put_away(target: Path, kept: Path) -> Callable[[], object]:
    """Remove a file that may be gone already; return how that is undone."""
    try:
        os.rename(target, kept)
    except FileNotFoundError:
        return lambda: None
    return partial(os.rename, kept, target)


def _near(source: Path, target: Path) -> Path:
    """Return a staged file on the file system of its place, to which it can be renamed."""
    if source.is_symlink() or _same_system(source, target.parent):
        return source
    return plain.stage(target, source.read_bytes())


def _beside(target: Path, work: Path) -> Path:
    """Return an unused path on the file system of a file that will be replaced."""
    place = target.parent if target.parent.is_dir() and not _same_system(target.parent, work) else work
    return place / f".{os.urandom(8).hex()}.old"


def _same_system(one: Path, other: Path) -> bool:
    return one.stat().st_dev == other.stat().st_dev


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    """Hold signals to end back until the block is done; the first that came is then raised."""
    if threading.current_thread() is not threading.main_thread():  # others are not interrupted
        yield
        return
    came: list[int] = []
    before = {s: signal.getsignal(s) for s in _SIGNALS}
    held = [s for s, handler in before.items() if handler not in (signal.SIG_IGN, None)]
    for number in held:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number in held:
            signal.signal(number, before[number])
        if came:
            signal.raise_signal(came[0])
