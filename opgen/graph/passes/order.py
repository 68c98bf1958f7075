"""Order of passes, as they declare it."""

from __future__ import annotations

from collections.abc import Iterable

from opgen.diagnostics import InternalError
from opgen.graph.passes.base import Pass


def ordered(passes: Iterable[Pass]) -> tuple[Pass, ...]:
    """Return the passes in their order, each followed by the passes that it wants to be run once more right after it.

    A pass that is declared to come after an absent one is not constrained by it.
    """
    left = {p.name: p for p in passes}
    known, order = dict(left), list[Pass]()
    while left:
        first = next((p for p in left.values() if left.keys().isdisjoint(p.after)), None)
        if first is None:
            raise InternalError(f"each of the passes {', '.join(left)} comes after another of them")
        order += [left.pop(first.name), *(known[name] for name in first.then)]
    return tuple(order)
