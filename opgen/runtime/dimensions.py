"""Sizes of a call: what the dimensions of its tensors say, and whether they agree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

from opgen.dtypes import DTYPES
from opgen.runtime.base import OpChecks
from opgen.runtime.describe import describe, tensor
from opgen.runtime.errors import ArgumentMemoryError, ArgumentValueError
from opgen.runtime.operator import Result
from opgen.runtime.tensors import Array

V = TypeVar("V")
LARGEST = 2**63 - 1
"""The most bytes that a tensor can have."""


class DimensionChecks(OpChecks):
    """The checks of sizes.  `expected` tells the dimension as the spec writes it."""

    def rank(self, argument: str, value: Array, rank: int, dims: str) -> None:
        """A tensor of some number of dimensions; `dims` names them."""
        if value.ndim != rank:
            raise ArgumentValueError(self.op, argument, f"{rank} dimensions {dims}", tensor(value))

    def same(self, argument: str, value: Array | tuple[int, ...], dim: str, size: int, expected: int) -> None:
        """A dimension whose size is known already."""
        if size != expected:
            raise ArgumentValueError(self.op, argument, f"{dim} = {expected}", _given(value))

    def quotient(self, argument: str, value: Array | tuple[int, ...], dim: str, size: int, known: int) -> int:
        """The unknown factor of a dimension that is a product (1 if nothing decides it: zero times anything)."""
        if size == known == 0:
            return 1
        if known == 0 or size % known:
            raise ArgumentValueError(self.op, argument, f"{dim} to be a multiple of {known}", _given(value))
        return size // known

    def result(self, name: str, shape: tuple[int, ...], dtype: str) -> Result:
        """A result that memory can hold in principle."""
        if math.prod(shape) * DTYPES[dtype].bytes > LARGEST:
            expected = f"a result of at most {LARGEST} bytes"
            raise ArgumentMemoryError(self.op, name, expected, f"{dtype}{list(shape)}")
        return Result(name, shape, dtype)


def _given(value: Array | tuple[int, ...]) -> str:
    return describe(value) if isinstance(value, tuple) else tensor(value)


def broadcast(*sizes: int) -> int:
    """The size that sizes of 1 stretch to: the first that is not 1."""
    return next((s for s in sizes if s != 1), 1)


def logical(values: Sequence[V], layout: str, order: str) -> tuple[V, ...]:
    """Values given in a layout's order, one a letter, in another order of its letters."""
    return tuple(values[layout.index(letter)] for letter in order)


def padded(values: tuple[int, ...], count: int) -> tuple[int, ...]:
    """A list that may be absent: as many zeros if it is."""
    return values or (0,) * count


def rows(values: tuple[int, ...], width: int) -> tuple[tuple[int, ...], ...]:
    """A flat list in rows."""
    return tuple(values[i : i + width] for i in range(0, len(values), width))
