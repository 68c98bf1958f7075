"""`random(seed, i)`: a float64 determined by a number, the seed, and an integer."""

from __future__ import annotations

from collections.abc import Callable

from opgen.spec.model import model as m
from opgen.spec.resolve.kinds import BOOL, INT, NUMBER, Kind, Typed
from opgen.spec.resolve.resolve import Resolver
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.strings import plural

RANDOM = "random"


def resolve_random(resolver: Resolver, tree: s.Call, is_integer: Callable[[Kind], bool]) -> Typed | None:
    """Resolve `random(seed, i)`: a float64 determined by a number and an integer."""
    if len(tree.arguments) != 2:
        message = f"{RANDOM} takes a seed and an integer, {plural(len(tree.arguments), 'argument')} given"
        resolver.report.add("S021", message, tree.span)
        return None
    seed, place = map(resolver.resolve, tree.arguments)
    if seed is None or place is None:
        return None
    if seed.kind == BOOL or (place.kind not in (INT, NUMBER) and not is_integer(place.kind)):
        wrong, what = (seed, "a number") if seed.kind == BOOL else (place, "an integer")
        span = tree.arguments[0 if wrong is seed else 1].span
        help = None if wrong is seed else "cast it, as in int64(...)"
        resolver.report.add("S020", f"{RANDOM} takes {what} here, found {resolver.describe(wrong.kind)}", span, help)
        return None
    start = seed.expr if seed.kind == "float64" else m.Convert("float64", seed.expr, seed.expr.span)
    known = place.kind in (INT, NUMBER, "int64")
    number = place.expr if known else m.Convert("int64", place.expr, place.expr.span)
    return Typed(m.Operation("random", start, number, tree.span), "float64")
