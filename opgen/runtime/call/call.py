"""A checked call, as a generated check returns it, and its kernel."""

from __future__ import annotations

import marshal
import math
from collections.abc import Callable, Mapping
from ctypes import c_int64
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from opgen.diagnostics import CheckFailed
from opgen.diagnostics.calls import ArgumentValueError
from opgen.runtime.call.tensors import Given

Value: TypeAlias = "int | float | bool | tuple[int, ...] | tuple[float, ...]"


@dataclass(frozen=True, slots=True)
class Typed:
    """A tensor or a result: its name, shape and numpy's type."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.dtype.name}{list(self.shape)}"


@dataclass(frozen=True, slots=True)
class Result:
    """A result of a call: its name, its shape in the caller's order of dimensions, and its scalar type."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Call:
    """A call whose arguments are consistent, as a generated check returns it.

    `tensors` are the inputs that are tensors, by name and in order.  `types` has the scalar type of each type variable,
    `words` the values of enumerations and layouts.  `attributes` are all other attributes, lists flat and in the
    caller's order.  `integers` are the dimensions and named integers of the op.
    """

    tensors: Mapping[str, Given]
    types: Mapping[str, str]
    words: Mapping[str, str]
    attributes: Mapping[str, Value]
    integers: Mapping[str, int]
    results: tuple[Result, ...]


def without_memory(call: Call) -> Call:
    """Return the call with tensors of the same shapes but without memory, to be kept."""
    nothing = np.zeros(())
    return replace(call, tensors={name: np.broadcast_to(nothing, t.shape) for name, t in call.tensors.items()})


Check: TypeAlias = Callable[..., Call]
"""A generated check: takes the op's tensors, then all its other arguments in the order of its signature."""

Run: TypeAlias = "Callable[[list[c_int64 | int]], None]"
"""A function of the addresses of a kernel's input tensors, then of its results."""


Refused: TypeAlias = "Callable[[CheckFailed], ArgumentValueError]"


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel ready to run, and the names of the tensors that it reads, in order."""

    run: Run
    reads: tuple[str, ...]
    refused: Refused | None = None
    """Function that returns the error of a call for which a check of the kernel fails."""


Resolve: TypeAlias = Callable[[Call], Launch]


def call_key(call: Call) -> bytes:
    """Return the key of a checked call's plan: everything that decides which kernel it gets."""
    groups = (call.types, call.words, call.attributes, call.integers)
    shapes = tuple(a.shape for a in call.tensors.values())
    return marshal.dumps((shapes, *(tuple(g.items()) for g in groups)), 2)


FAR = 2**20
"""Largest attribute for which a product of three is known to fit."""


def is_far(call: Call) -> bool:
    """Return True if a product of a call's numbers might not fit."""
    numbers = [n for v in call.attributes.values() for n in (v if isinstance(v, tuple) else (v,))]
    numbers += call.integers.values()
    return any(isinstance(n, int) and not -FAR < n < FAR for n in numbers)
