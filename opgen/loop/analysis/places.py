"""An expression of integers at many places at once, by numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from opgen.loop.arithmetic import NUMPY
from opgen.loop.nodes import Binary, Cast, Compare, Const, Expr, Unary, Var

_FUNCTIONS: Mapping[str, Callable[..., np.ndarray]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "floordiv": np.floor_divide, "mod": np.remainder,
    "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "neg": np.negative, "not": np.logical_not,
}  # fmt: skip


def at_places(e: Expr, loops: Mapping[str, range]) -> np.ndarray | None:
    """Return the values of an expression of integers and conditions, at all places of some loops.

    There is an axis for each loop, in order.  None if it reads anything besides these loops, or is not made of
    arithmetic and comparisons.
    """
    shape = tuple(map(len, loops.values()))
    grid = np.ogrid[tuple(slice(n) for n in shape)]
    variables = {
        name: loop.start + loop.step * np.asarray(axis) for (name, loop), axis in zip(loops.items(), grid, strict=True)
    }
    try:
        with np.errstate(divide="ignore"):  # by 0, where nothing else is evaluated either
            return np.broadcast_to(_value(e, variables), shape)
    except LookupError:
        return None


def _value(e: Expr, variables: Mapping[str, np.ndarray]) -> np.ndarray:
    match e:
        case Const():
            return np.asarray(e.value, NUMPY[e.type.dtype.name])
        case Var():
            return variables[e.name]
        case Binary() | Compare():
            return _FUNCTIONS[e.op](_value(e.left, variables), _value(e.right, variables))
        case Unary():
            return _FUNCTIONS[e.op](_value(e.operand, variables))
        case Cast() if e.type.dtype.is_int and not e.operand.type.dtype.is_float:
            return _value(e.operand, variables).astype(NUMPY[e.type.dtype.name])
    raise LookupError(type(e).__name__)
