"""Signs of life on stderr while something takes long; where stderr is no terminal, a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from opgen.cli.errors import say

Told: TypeAlias = "Callable[[int, int, str], None]"
"""Called with the number of finished parts, the number of all, and a description of the current one."""


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """Show a spinner with a description while the block runs; the block gets a function that changes the words."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status(what) as status:
        yield status.update


EVERY = 10.0
"""Seconds between two lines where stderr is not a terminal; shorter work needs none."""


class _Lines:
    """Lines on stderr with the current work and its progress, one every `EVERY` seconds at most."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, done: int, total: int, doing: str) -> None:
        if time.monotonic() - self._last >= EVERY:
            self._last = time.monotonic()
            say(f"{doing}: {done} of {total}" if total else doing)


@contextmanager
def bar(what: str) -> Iterator[Told]:
    """Show a progress bar; `what` is its text until the progress is known."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as shown:
        task = shown.add_task(what, total=None)

        def told(done: int, total: int, doing: str) -> None:
            shown.update(task, completed=done, total=total or None, description=doing)

        yield told
