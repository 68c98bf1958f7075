"""Requirements common to all lanes: they run in step, through the same loops and with buffers of the same sizes."""

from __future__ import annotations

from opgen.loop.nodes import Alloc, Expr, For, Kernel, Let, Load, Stmt
from opgen.loop.walk import free_vars, parts, walk, walk_expr
from opgen.schedule.errors import ScheduleError


def require_even_lanes(loop: For, step: str) -> None:
    """Refuse lanes that would repeat an inner loop a different number of times, or need buffers of different sizes."""
    _require_even(loop.body, frozenset({loop.var}), f"would differ between the lanes of '{loop.var}'", step)


def require_all_even(kernel: Kernel, step: str) -> None:
    """Require even lanes of every vector loop in a kernel that a step has made."""
    for s in walk(kernel.body):
        if isinstance(s, For) and s.kind == "vector":
            require_even_lanes(s, step)


def _require_even(s: Stmt, varying: frozenset[str], differ: str, step: str) -> None:
    """Refuse bounds and sizes that depend on `varying`, the variables and buffers whose values differ between lanes."""
    match s:
        case For() if _varies(s.start, varying) or _varies(s.stop, varying):
            raise ScheduleError(f"{step}: the bounds of the loop '{s.var}' {differ}")
        case Alloc():
            for buffer in s.buffers:
                if any(_varies(e, varying) for e in buffer.shape):
                    raise ScheduleError(f"{step}: the size of '{buffer.name}' {differ}")
                varying |= {buffer.name}
        case Let() if _varies(s.value, varying):
            varying |= {s.var.name}
    for p in parts(s):
        _require_even(p, varying, differ, step)


def _varies(e: Expr, varying: frozenset[str]) -> bool:
    loaded = {n.buffer for n in walk_expr(e) if isinstance(n, Load)}
    return bool((free_vars(e) | loaded) & varying)
