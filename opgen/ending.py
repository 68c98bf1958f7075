"""Cleanup that cannot wait for the main thread: for a process that is ended while that thread runs machine code."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

_steps: dict[object, Callable[[], object]] = {}


def at_ending(owner: object, step: Callable[[], object]) -> None:
    """Run `step` if the process is ended that way before `done(owner)`."""
    _steps[owner] = step


def done(owner: object) -> None:
    """Forget the step of an owner that has cleaned up itself."""
    _steps.pop(owner, None)


def run() -> None:
    """Run all steps, the last first; one that fails leaves the others."""
    while _steps:
        with contextlib.suppress(Exception, KeyError):
            _steps.popitem()[1]()


@contextlib.contextmanager
def cleaned(owner: object, step: Callable[[], object]) -> Iterator[None]:
    """Run `step` at the block's end, however the block ends."""
    at_ending(owner, step)
    try:
        yield
    finally:
        step()
        done(owner)
