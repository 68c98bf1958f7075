"""Results that are views: the bytes of an input under another shape.

A result is a view if its op only reads, element by element, and each element comes from the same place of the input.
Places are counted in the order of memory, with the node's sizes substituted.  For most ops that make no views, the
first few elements show it.  For the others, the two places are the same sum of the indices, or each element is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from opgen.graph.ir.bound import Bound
from opgen.graph.ir.scratch import kept_while_making
from opgen.graph.plan.sums import Sum, Sums, plus, times
from opgen.spec.call.environment import evaluate, evaluate_int
from opgen.spec.model import model as m
from opgen.spec.model.walk import reads_values, subexpressions

COUNTED = 1 << 22
"""Number of elements up to which each is checked; a larger result is computed, which is also correct."""

_FEW = 256
_MANY = 1 << 18
"""Numbers of elements that are checked together: first, and then."""

_Places: TypeAlias = "npt.NDArray[np.int64]"


@kept_while_making
def view_of(call: Bound) -> int | None:
    """Return the position, among the op's tensors, of the one that a call's only result is a view of; else None."""
    spec = call.op.spec
    if len(spec.outputs) != 1 or len(spec.definitions) != 1:
        return None
    definition = spec.definitions[0]
    read = definition.value
    position = next((i for i, t in enumerate(spec.tensors) if isinstance(read, m.Read) and t.name == read.tensor), None)
    if position is None or not isinstance(read, m.Read) or any(reads_values(i) for i in read.indices):
        return None  # the kernel checks subscripts that are values, even if there is no element to read
    tensor, (dtype, shape) = spec.tensors[position], call.results[0]
    count = prod(shape)
    if call.variant.dtype(tensor.dtype) != dtype or prod(call.environment.shapes[tensor.name]) != count:
        return None
    source = _Place(call, tensor, read.indices)
    target = _Place(call, spec.outputs[0], definition.subscripts)
    rounds = _values(call, definition)
    if count and not _agree(source, target, next(rounds)):
        return None
    if _proved(source, target, call, definition):
        return position
    return position if count <= COUNTED and all(_agree(source, target, v) for v in rounds) else None


def _proved(source: _Place, target: _Place, call: Bound, definition: m.Definition) -> bool:
    """Return whether two places are the same sum of the indices, and inside their tensors."""
    extents = {r.name: evaluate_int(r.extent, call.environment) for r in definition.indices}

    def number(e: m.Expr) -> int | None:
        if any(isinstance(p, m.Read | m.Index) for p in subexpressions(e)):
            return None
        value = evaluate(e, call.environment)
        return value if isinstance(value, int) else None

    sums = Sums(extents, number)
    one = source.sum(sums)
    return one is not None and one == target.sum(sums)


def _agree(source: _Place, target: _Place, values: Mapping[str, _Places]) -> bool:
    one, other = source.of(values), target.of(values)
    return one is not None and other is not None and bool(np.all(one == other))


def _values(call: Bound, definition: m.Definition) -> Iterator[Mapping[str, _Places]]:
    """Yield all values of a definition's indices, few first, then many at once."""
    extents = [evaluate_int(r.extent, call.environment) for r in definition.indices]
    start, count, step = 0, prod(extents), _FEW
    while start < count:
        number = np.arange(start, min(start + step, count), dtype=np.int64)
        found = np.unravel_index(number, extents) if extents else ()
        yield {r.name: np.asarray(v, np.int64) for r, v in zip(definition.indices, found, strict=True)}
        start, step = start + step, _MANY


class _Place:
    """Place of an element of a tensor in memory, counted in elements, for the indices of an access."""

    def __init__(self, call: Bound, tensor: m.Tensor, indices: Sequence[m.Expr]) -> None:
        self._call = call
        shape = call.environment.shapes[tensor.name]
        order = call.variant.permutation(call.op.spec, tensor.layout, tensor.rank)
        self._axes = [(indices[axis], shape[axis]) for axis in order]

    def sum(self, sums: Sums) -> Sum | None:
        """Return the place as a sum of the indices; None if it is not a sum, or may be outside the tensor."""
        place: Sum = ()
        for index, size in self._axes:
            found = sums.of(index)
            if found is None or not _inside(sums, index, found, size):
                return None
            place = plus(times(place, size), found)
        return place

    def of(self, values: Mapping[str, _Places]) -> _Places | None:
        """Return the places for values of the indices.

        Return None if some element is outside the tensor, or if an index has an unsupported form.
        """
        place: _Places = np.zeros((), np.int64)
        for index, size in self._axes:
            found = self._evaluated(index, values)
            if found is None or np.any(found < 0) or np.any(found >= size):
                return None
            place = place * size + found
        return place

    def _evaluated(self, e: m.Expr, values: Mapping[str, _Places]) -> _Places | None:
        if isinstance(e, m.Index):
            return values[e.name]
        parts = list(subexpressions(e))
        if any(isinstance(p, m.Read) for p in parts):
            return None
        if not any(isinstance(p, m.Index) for p in parts):
            return np.asarray(evaluate(e, self._call.environment)).astype(np.int64)
        match e:
            case m.Operation() if e.op in _OPERATIONS:
                left, right = self._evaluated(e.left, values), self._evaluated(e.right, values)
                if left is None or right is None or (e.op in ("//", "%") and np.any(right == 0)):
                    return None
                return _OPERATIONS[e.op](left, right)
            case m.Negate():
                operand = self._evaluated(e.operand, values)
                return None if operand is None else -operand
            case m.Conditional():
                holds, yes, no = (self._evaluated(x, values) for x in (e.condition, e.if_true, e.if_false))
                return None if holds is None or yes is None or no is None else np.where(holds != 0, yes, no)
        return None


def _inside(sums: Sums, index: m.Expr, found: Sum, size: int) -> bool:
    """Return whether an index is from 0 to below a size; the divisor of a remainder bounds it, too."""
    low, high = sums.range(found)
    if isinstance(index, m.Operation) and index.op == "%" and (divisor := sums.of(index.right)) is not None:
        low, high = max(low, 0), min(high, sums.range(divisor)[1] - 1)
    return low >= 0 and high < size


_OPERATIONS: Mapping[str, Callable[[_Places, _Places], _Places]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "//": np.floor_divide,
    "%": np.mod,
    "min": np.minimum,
    "max": np.maximum,
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "and": np.logical_and,
    "or": np.logical_or,
}
