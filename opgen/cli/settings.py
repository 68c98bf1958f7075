"""Environment variables, looked at before a command begins: a wrong one is an error of one line."""

from __future__ import annotations

COMPUTING = ("build", "run", "inspect", "tune", "bench", "demo")
"""Commands that compute; `doctor` says itself what cannot be determined, and the others go by few of them."""


def require_settings() -> None:
    """Raise the UserError of the first variable that has no sensible value: its name, what is expected, what is given.

    Each is read by the module that goes by it; the table of all is in `opgen/runtime/README.md`.
    """
    from opgen.cache import entries as cache
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
    word = placement.chosen()
    if word is not None:
        placement.ordinal_of(word, placement.VARIABLE)
