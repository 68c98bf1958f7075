"""Sizes of a call: the dimensions of its tensors, and the checks that they agree.

The messages are those of `opgen.spec.call.shapes`, which computes the shapes of examples and of graphs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

from opgen.diagnostics.calls import ArgumentMemoryError, ArgumentValueError
from opgen.dtypes import DTYPES
from opgen.runtime.call.base import OpChecks
from opgen.runtime.call.call import Result
from opgen.runtime.call.tensors import Given
from opgen.spec.call.whole import EvaluationError, rounded

V = TypeVar("V")
LARGEST = 2**63 - 1
"""Size limit of a tensor in bytes."""


class DimensionChecks(OpChecks):
    """The checks of sizes.

    `sizes` are a tensor's shape, or the values of a vector of sizes (then `vector`); `axis` is a position among them,
    in the caller's order.  `names` are the factors of a number, in the spec's words.
    """

    def rank(self, argument: str, value: Given, rank: int) -> tuple[int, ...]:
        """Return the shape of a tensor, which must have `rank` dimensions."""
        if value.ndim != rank:
            raise self.wrong_shape(argument, f"a tensor of rank {rank}", value.shape)
        return value.shape

    def same(
        self,
        argument: str,
        sizes: tuple[int, ...],
        axis: int,
        expected: int,
        names: str,
        *,
        vector: bool = False,
        or_one: bool = False,
    ) -> None:
        """Check a size that is already known; with `or_one`, a 1 that stretches to it is accepted too."""
        if sizes[axis] != expected and not (or_one and sizes[axis] == 1):
            why = f" ({names})" if names else ""
            raise self._mismatch(argument, sizes, axis, f"to be {expected}{' or 1' if or_one else ''}{why}", vector)

    def whole(
        self,
        argument: str,
        shape: tuple[int, ...],
        sizes: tuple[int, ...],
        names: tuple[str, ...],
        layout: tuple[str, str] | None,
    ) -> None:
        """Check a tensor whose shape follows from the others.

        `sizes` and `names` are in logical order, as for `result`.
        """
        expected = sizes if layout is None else logical(sizes, *layout)
        if shape != expected:
            told = ", ".join(names if layout is None else logical(names, *layout))
            raise self.wrong_shape(argument, f"shape {list(expected)} ({told})", shape)

    def factor(
        self, argument: str, sizes: tuple[int, ...], axis: int, known: int, names: str, *, vector: bool = False
    ) -> int:
        """Return the unknown factor of a size; `known` is the other one.

        The factor is 1 if nothing decides it: zero times anything.
        """
        size = sizes[axis]
        if known == 0:
            if size != 0:
                raise self._mismatch(argument, sizes, axis, f"to be 0 ({names} is 0)", vector)
            return 1
        if size % known:
            raise self._mismatch(argument, sizes, axis, f"to be a multiple of {known} ({names})", vector)
        return size // known

    def result(
        self,
        name: str,
        sizes: tuple[int, ...],
        layout: tuple[str, str] | None,
        dtype: str,
        blame: str,
        blamed: tuple[int, ...] | None,
        *,
        vector: bool = False,
    ) -> Result:
        """Return a result that memory can hold in principle; `sizes` are in logical order.

        `layout` has that order and the caller's.  If the sizes do not make a shape, the argument to `blame` is the
        first input, with the sizes `blamed`; the op itself (and None) if it has no input.
        """
        if any(s < 0 for s in sizes) or math.prod(max(s, 1) for s in sizes) > LARGEST:
            expected = f"sizes that give '{name}' a shape (computed {list(sizes)})"
            if blamed is None:
                raise ArgumentValueError(self.op, blame, expected, "none")
            raise self.wrong(blame, expected, blamed) if vector else self.wrong_shape(blame, expected, blamed)
        shape = sizes if layout is None else logical(sizes, *layout)
        if math.prod(max(s, 1) for s in sizes) * DTYPES[dtype].bytes > LARGEST:
            expected = f"a result of at most {LARGEST} bytes"
            raise ArgumentMemoryError(self.op, name, expected, f"{dtype}{list(shape)}")
        return Result(name, shape, dtype)

    def _mismatch(
        self, argument: str, sizes: tuple[int, ...], axis: int, expected: str, vector: bool
    ) -> ArgumentValueError:
        if vector:
            return self.wrong(argument, f"element {axis} {expected}", sizes)
        return self.wrong_shape(argument, f"dimension {axis} {expected}", sizes)


def stretched(*sizes: int) -> int:
    """Return the size that sizes of 1 stretch to: the first that is not 1, else the last."""
    return next((s for s in sizes if s != 1), sizes[-1])


def logical(values: Sequence[V], layout: str, order: str) -> tuple[V, ...]:
    """Return values given in a layout's order, one a letter, in another order of its letters."""
    return tuple(values[layout.index(letter)] for letter in order)


def whole_of(function: str, value: float) -> int:
    """Return a float rounded by "floor", "ceil", "round" or "trunc"; ArithmeticError if it has no such integer."""
    try:
        return rounded(function, value)
    except EvaluationError as error:
        raise OverflowError(str(error)) from None


def padded(values: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Return a list that may be absent: `count` zeros if it is."""
    return values or (0,) * count


def rows(values: tuple[int, ...], width: int) -> tuple[tuple[int, ...], ...]:
    """Return a flat list in rows."""
    return tuple(values[i : i + width] for i in range(0, len(values), width))
