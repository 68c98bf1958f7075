"""C condition that a call is too small to be shared out among threads."""

from __future__ import annotations

from opgen.bindings.c.room import integer_text
from opgen.compiler.sharing import WORTH_SHARING, is_for_one, work_of
from opgen.loop.nodes import Kernel
from opgen.machine import Machine


def small_lines(kernel: Kernel, helper: str, machine: Machine) -> list[str]:
    """Return statements that return True if a call with the parameters `p` is for one thread; none if it never is.

    The rule is that of `opgen.compiler.sharing`.
    """
    if kernel.is_bound:
        return ["return true;"] if is_for_one(kernel, machine) else []
    work = work_of(kernel, machine)
    parameters = {p.name: f"p[{i}]" for i, p in enumerate(kernel.parameters)}
    operations, touched = (integer_text(e, parameters, helper) for e in (work.operations, work.bytes))
    if operations is None or touched is None or work.always >= WORTH_SHARING:
        return []
    return [
        f"const double operations = (double){operations};",
        f"const double bytes = (double){touched};",
        f"const double seconds = {work.always:g} + {work.per_operation:g} * operations + {work.per_byte:g} * bytes;",
        f"return !m->failed && seconds < {WORTH_SHARING:g};",
    ]
