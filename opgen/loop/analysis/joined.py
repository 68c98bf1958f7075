"""Loops that were joined: two indices that are the quotient and the rest of one."""

from __future__ import annotations

from opgen.loop.nodes import Binary, Const, Expr


def whole_of(quotient: Expr, rest: Expr, divisor: Expr | None = None) -> Expr | None:
    """Return the i of `i // n` and `i % n`, scalars, where n is a constant (and `divisor`, if given); else None."""
    match quotient, rest:
        case Binary(op="floordiv", right=Const()), Binary(op="mod") if rest.type.lanes == 1:
            same = quotient.left == rest.left and quotient.right == rest.right
            return quotient.left if same and divisor in (None, quotient.right) else None
    return None
