"""Sums in which a condition leaves one term: gradients of groups.

y[c] = sum[g](w[g] if 0 <= c - 10*g < 10)   ->   y[c] = w[c // 10]
"""

from __future__ import annotations

from functools import partial

from opgen.loop.nodes import Compare, Expr, For, If
from opgen.loop.walk import holds_loop
from opgen.passes.tighten import conjuncts
from opgen.schedule.auto.nests import coefficient, nests
from opgen.schedule.auto.trial import Trial
from opgen.schedule.steps import Tighten


def single_terms(trial: Trial) -> None:
    """Replace each sum whose condition leaves one term by that term."""
    for nest in nests(trial.kernel):
        for s in nest.inner_loops:
            if _is_picked(s):
                trial.attempt(partial(_taken, s.var, trial))


def _taken(loop: str, trial: Trial) -> bool:
    return trial.take(Tighten(loop)) and not holds_loop(trial.kernel.body, loop)


def _is_picked(s: For) -> bool:
    """Return True if a condition says between which multiples the loop's variable is."""
    parts = conjuncts(s.body.condition) if isinstance(s.body, If) and s.body.otherwise is None else []
    return len(parts) == 2 and all(_is_multiple(p, s.var) for p in parts)


def _is_multiple(e: Expr, loop: str) -> bool:
    if not isinstance(e, Compare) or e.type.lanes != 1 or not e.left.type.dtype.is_int:
        return False
    factors = [coefficient(side, loop) for side in (e.left, e.right)]
    return None not in factors and abs((factors[0] or 0) - (factors[1] or 0)) > 1
