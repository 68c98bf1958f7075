"""The memory that a kernel allocates, as C: for callers who bring their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opgen.compiler.parts import Heap
from opgen.loop.nodes import Binary, Cast, Compare, Const, Expr, Parameter, Select, Unary, Var

_CALLS = {"add": "add", "sub": "sub", "mul": "mul", "floordiv": "div", "mod": "mod"}
_SIGNS = {"and": "&&", "or": "||", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_ALIGNMENT = 63
"""Bytes that a kernel requests beyond a buffer's size, to align it."""


def room_lines(heap: Heap, given: Sequence[Parameter], helper: str) -> list[str]:
    """Return statements that add allocated bytes to `*shared` and `*each`; none if nothing is on the heap.

    `*shared` counts allocations made once, `*each` those of each thread of the parallel loop.  Both depend on the
    parameters `p`.
    """
    parameters = {p.name: f"p[{i}]" for i, p in enumerate(given)}
    lines: list[str] = []
    for buffer, parallel in heap:
        text = str(buffer.dtype.bytes)
        for extent in buffer.shape:
            printed = integer_text(extent, parameters, helper)
            if printed is None:
                return ["return false; /* a size that only the kernel knows */"]
            text = f"{helper}_mul(m, {text}, {printed})"
        lines.append(f"*{'each' if parallel else 'shared'} += {helper}_room((size_t){text} + {_ALIGNMENT});")
    return lines


def integer_text(e: Expr, parameters: Mapping[str, str], helper: str) -> str | None:
    """Return an integer expression over the kernel's parameters; None if it is over anything else."""
    match e:
        case Const():
            return str(int(e.value))
        case Var():
            return parameters.get(e.name)
        case Cast():
            return integer_text(e.operand, parameters, helper)
        case Unary(op="not"):
            operand = integer_text(e.operand, parameters, helper)
            return None if operand is None else f"!({operand})"
        case Binary() | Compare():
            left, right = integer_text(e.left, parameters, helper), integer_text(e.right, parameters, helper)
            return None if left is None or right is None else _binary(e.op, left, right, helper)
        case Select():
            texts = [integer_text(x, parameters, helper) for x in (e.condition, e.if_true, e.if_false)]
            return None if None in texts else f"({texts[0]} ? {texts[1]} : {texts[2]})"
    return None


def _binary(op: str, left: str, right: str, helper: str) -> str | None:
    if op in _CALLS:
        return f"{helper}_{_CALLS[op]}(m, {left}, {right})"
    if op in ("min", "max"):
        return f"{helper}_{op}({left}, {right})"
    return f"({left} {_SIGNS[op]} {right})" if op in _SIGNS else None
