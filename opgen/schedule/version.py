"""version: a loop nest of its own for calls whose sizes fulfil a condition."""

from __future__ import annotations

from typing import Annotated

from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Binary, Compare, Expr, For, If, Kernel, Load, Stmt, Var
from opgen.loop.walk import free_vars, walk_expr
from opgen.passes.simplify import simplify_stmt
from opgen.schedule.declaration import Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import require_fresh, require_loops, rewrite_loops
from opgen.schedule.renaming import renamed, suffixed_names
from opgen.schedule.values import Condition, LoopName, NewName


@primitive("loops", "version n left == 1 and out_width >= 8 -> wide")
class Version(Step):
    """Copies a nest for calls whose sizes fulfil a condition."""

    loop: LoopName
    condition: Annotated[Expr, Condition()]
    suffix: NewName

    def run(self, kernel: Kernel) -> Kernel:
        return version(kernel, self.loop, self.condition, self.suffix)


def version(kernel: Kernel, loop: str, condition: Expr, suffix: str) -> Kernel:
    """Run a copy of a loop where a condition on the kernel's parameters holds, and the loop itself elsewhere.

        for x in 0..n: s(x)      ->      if n == 2*m and m >= 8:
                                           for x_wide in 0..2*m: s(x_wide)
                                         else:
                                           for x in 0..n: s(x)

    The copy is simplified by the condition: a parameter that it makes equal to an expression is replaced by that.
    Loops, names and buffers in the copy have the suffix (`wide` here), so that further steps can name either.
    """
    require_loops(kernel, "version", [loop])
    unknown = sorted(free_vars(condition) - {p.name for p in kernel.parameters})
    if unknown or any(isinstance(e, Load) for e in walk_expr(condition)):
        what = f"'{unknown[0]}' is no parameter of the kernel" if unknown else "its condition reads a buffer"
        raise ScheduleError(f"version {loop}: {what}", "a condition speaks of sizes, before any work")

    def rewrite(s: For, context: Context) -> Stmt:
        new = suffixed_names(s, suffix)
        require_fresh(kernel, "version", new.values())
        inside = context.with_condition(condition)
        copy = simplify_stmt(renamed(s, new, _equal(condition)), inside)
        return If(condition, copy, s)

    return rewrite_loops(kernel, loop, rewrite)


def _equal(condition: Expr) -> dict[str, Expr]:
    """Return the parameters that a condition makes equal to an expression without them."""
    if isinstance(condition, Binary) and condition.op == "and":
        first = _equal(condition.left)
        return first | {n: e for n, e in _equal(condition.right).items() if n not in first}
    if isinstance(condition, Compare) and condition.op == "eq" and isinstance(condition.left, Var):
        name = condition.left.name
        return {} if name in free_vars(condition.right) else {name: condition.right}
    return {}
