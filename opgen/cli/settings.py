"""Environment variables, looked at before a command begins: a wrong one is an error of one line."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import click

COMPUTING = ("build", "run", "inspect", "tune", "bench", "demo")
"""Commands that compute; `doctor` reports unusable settings itself, and the others use few of them."""


def with_settings(command: click.Command) -> click.Command:
    """Return the command, which looks at the settings before it runs, and not for its help."""
    run: Callable[..., Any] | None = command.callback
    if run is None or command.name not in COMPUTING:
        return command

    @functools.wraps(run)
    def checked(*args: Any, **kwargs: Any) -> Any:  # click's own signature
        require_settings()
        return run(*args, **kwargs)

    found = copy.copy(command)
    found.callback = checked
    return found


def require_settings() -> None:
    """Raise the UserError of the first variable without a sensible value: its name, expected and given value.

    Each is read by the module that uses it; `opgen.cache.settings` has the table of all.
    """
    from opgen.cache import entries as cache
    from opgen.cache.settings import word
    from opgen.compiler import algorithms
    from opgen.graph.program import limits
    from opgen.runtime import threads
    from opgen.runtime.call import placement, specialize
    from opgen.runtime.native import perf_map

    cache.default()
    threads.get_num_threads()
    threads.requested()
    algorithms.mode()
    specialize.policy()
    limits.settings()
    perf_map.enabled()
    for name in ("OPGEN_COUNTERS", "OPGEN_DEBUG", "OPGEN_FALLBACK"):
        word(name)
    device = placement.chosen()
    if device is not None:
        placement.ordinal_of(device, placement.VARIABLE)
