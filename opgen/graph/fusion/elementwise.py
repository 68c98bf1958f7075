"""Values of pointwise definitions over constants, by numpy, as long as no number leaves the range of its type."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from opgen.graph.ir.nodes import Array
from opgen.spec.call.environment import AttrStored
from opgen.spec.model import model as m
from opgen.spec.model.walk import operands


class OutOfRangeError(Exception):
    """A number is infinite, NaN or subnormal, or an expression is not known here."""


_FUNCTIONS: Mapping[str, Callable[[Array], Array]] = {
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "abs": np.abs,
}
_OPERATIONS: Mapping[str, Callable[[Array, Array], Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "min": np.minimum,
    "max": np.maximum,
    "pow": np.power,
}


def value_of(d: m.Definition, tensors: Mapping[str, Array], attributes: Mapping[str, AttrStored]) -> Array:
    """Return the elements of a definition whose reads are all at its indices or at 0.

    Raises OutOfRangeError if an intermediate result is not finite, or if a product or quotient of normal numbers is 0
    or subnormal.  Raises it also for expressions that this module does not support.
    """
    with np.errstate(all="ignore"):
        return _Values(d, tensors, attributes).of(d.value)


class _Values:
    def __init__(self, d: m.Definition, tensors: Mapping[str, Array], attributes: Mapping[str, AttrStored]) -> None:
        self._tensors, self._attributes = tensors, attributes
        self._axes = {s.name: axis for axis, s in enumerate(d.subscripts) if isinstance(s, m.Index)}
        self._dtype = np.dtype(d.dtype)

    def of(self, e: m.Expr) -> Array:
        match e:
            case m.Number():
                return np.asarray(e.value, self._dtype)
            case m.AttrValue(element=()) if isinstance(value := self._attributes.get(e.attr), int | float):
                return np.asarray(value, self._dtype)
            case m.Read():
                return _finite(self._read(e))
            case m.Negate():
                return -self.of(e.operand)
            case m.Convert() if e.to == self._dtype.name:
                return self.of(e.operand)
            case m.Apply() if e.function in _FUNCTIONS:
                return _finite(_FUNCTIONS[e.function](self.of(e.argument)))
            case m.Operation() if e.op in _OPERATIONS:
                return self._operation(e)
        raise OutOfRangeError

    def _operation(self, e: m.Operation) -> Array:
        left, right = map(self.of, operands(e))
        result = _finite(_OPERATIONS[e.op](left, right))
        if e.op in ("*", "/"):
            nothing = left == 0 if e.op == "/" else (left == 0) | (right == 0)
            if not ((np.abs(result) >= np.finfo(self._dtype).tiny) | nothing).all():
                raise OutOfRangeError
        return result

    def _read(self, e: m.Read) -> Array:
        """Return a tensor with its dimensions where the definition has them."""
        array = self._tensors[e.tensor]
        if e.outside is not None or not all(i == m.Number(0) or isinstance(i, m.Index) for i in e.indices):
            raise OutOfRangeError
        placed = sorted((self._axes[i.name], axis) for axis, i in enumerate(e.indices) if isinstance(i, m.Index))
        shape = [1] * len(self._axes)
        for place, axis in placed:
            shape[place] = array.shape[axis]
        ones = [axis for axis, i in enumerate(e.indices) if not isinstance(i, m.Index)]
        in_place: Array = array.transpose([*(axis for _, axis in placed), *ones]).reshape(shape)
        return in_place


def _finite(array: Array) -> Array:
    if not np.isfinite(array).all():
        raise OutOfRangeError
    return array
