"""Tables of subexpressions that lanes would recompute for each row.

    y[b, i, j, c] = (x[b, i, j, c] - mean[b, c // 10]) / sqrt(wide[b, c // 10] + epsilon)

With lanes along `c`, this reads at places divided by ten, and takes a root for each `i` and `j`.  With tables over `b`
and `c`, its reads are contiguous.
"""

from __future__ import annotations

from collections.abc import Set
from math import prod

from opgen.loop.nodes import Binary, Call, Expr, Load, Store
from opgen.loop.walk import free_vars, loads, walk_expr
from opgen.machine import Machine
from opgen.schedule.auto.nests import Nest, conditional_loops, contiguous_loop, depends, is_contiguous, nests
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import TABLE_SHARE, TABLE_USES
from opgen.schedule.errors import ScheduleError
from opgen.schedule.steps import Tabulate
from opgen.schedule.tabulate import parts_of

QUICK = ("fma", "abs", "floor", "ceil", "round")
"""Functions that are one instruction."""


def tabulated(trial: Trial, machine: Machine) -> None:
    """Tabulate each such subexpression of the loop nests without sums."""
    seldom, parameters = conditional_loops(trial.kernel), frozenset(p.name for p in trial.kernel.parameters)
    for nest in nests(trial.kernel):
        lanes = contiguous_loop(nest)
        if not isinstance(nest.core, Store) or nest.guards or lanes is None or nest.names[0] in seldom:
            continue
        for buffer in dict.fromkeys(e.buffer for e in loads(nest.core)):
            loops = _loops(nest, buffer, lanes)
            if loops and _is_worth(nest, buffer, loops, parameters, machine):
                trial.take(Tabulate(buffer, loops, trial.fresh(f"{buffer}_table")))


def _loops(nest: Nest, buffer: str, lanes: str) -> tuple[str, ...]:
    """Return the loops on which all reads of a buffer depend, including that of the lanes.

    The result is empty if the buffer is also read in other ways.
    """
    used = {frozenset(n for n in nest.names if depends(e.indices, n)) for e in loads(nest.core) if e.buffer == buffer}
    if len(used) != 1:
        return ()
    (found,) = used
    return tuple(n for n in nest.names if n in found) if lanes in found else ()


def _is_worth(nest: Nest, buffer: str, loops: tuple[str, ...], known: Set[str], machine: Machine) -> bool:
    """Return True if a table is small, read often, and saves more than a contiguous read."""
    extents = {n: nest.extent(n) or 0 for n in nest.names}
    size, uses = prod(extents[n] for n in loops), prod(extents[n] for n in nest.names if n not in loops)
    if uses < TABLE_USES:
        return False
    try:
        parts = parts_of(nest.loops[0], buffer, frozenset(loops), known)
    except ScheduleError:
        return False
    last = loops[-1]
    spared = any(_is_slow(p) or any(not is_contiguous(e, last, nest.shapes) for e in _reads(p)) for p in parts)
    room = size * sum(p.type.dtype.bytes for p in parts)
    return spared and all(p.type.dtype.is_float for p in parts) and room <= TABLE_SHARE * machine.l2.size


def _reads(part: Expr) -> list[Load]:
    """Return the loads that depend on loops."""
    return [e for e in walk_expr(part) if isinstance(e, Load) and any(map(free_vars, e.indices))]


def _is_slow(part: Expr) -> bool:
    """Return True if an expression divides or calls a function that takes long."""
    divides = any(isinstance(e, Binary) and e.op == "div" for e in walk_expr(part))
    return divides or any(isinstance(e, Call) and e.function not in QUICK for e in walk_expr(part))
