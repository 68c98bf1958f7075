"""Values, constants and inputs of a model, known even where the rest of it is not."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from opgen.dtypes import DType
from opgen.locks import cached_property

Array = npt.NDArray[Any]

Kind: TypeAlias = "tuple[DType, tuple[int, ...]]"
"""The scalar type and the shape of a tensor."""

Size: TypeAlias = "int | str | None"
"""A size of an input: known, a symbol (the same everywhere in a model), or anything."""


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor that a graph takes, holds or makes."""

    name: str
    dtype: DType
    shape: tuple[int, ...]

    def __reduce__(self) -> tuple[type[Value], tuple[object, ...]]:
        """Return positional arguments, as for nodes."""
        return Value, (self.name, self.dtype, self.shape)

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


class Data:
    """The elements of a constant, read-only; two are equal if their types, shapes and bytes are."""

    def __init__(self, array: Array) -> None:
        """Take the array itself if it is dense, else a copy, and make it read-only."""
        self.array = np.ascontiguousarray(array).reshape(array.shape)
        self.array.flags.writeable = False

    @cached_property
    def digest(self) -> str:
        """Return the sha256 of type, shape and bytes."""
        found = hashlib.sha256(f"{self.array.dtype.name}{list(self.array.shape)}".encode())
        found.update(self.array.reshape(-1).view(np.uint8).data)
        return found.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Data) and (self.array is other.array or self.digest == other.digest)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Data({self.digest[:12]})"


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that is known."""

    value: Value
    data: Data


@dataclass(frozen=True, slots=True)
class Input:
    """An input of a model; `shape` is None where even the rank is open."""

    name: str
    dtype: DType
    shape: tuple[Size, ...] | None


@dataclass(frozen=True, slots=True)
class Outline:
    """Interface of a model: its inputs, the names of its outputs, and the number of its calls.

    `defaults` are optional inputs; constants hold their values.
    """

    name: str
    inputs: tuple[Input, ...]
    outputs: tuple[str, ...]
    calls: int
    defaults: tuple[Input, ...] = ()


def result_names(values: Sequence[str]) -> tuple[str, ...]:
    """Return the caller's names of results with these values: each once, with numbers for repeated values."""
    found: dict[str, None] = {}
    for name in values:
        unlike, number = name, 1
        while unlike in found:
            number, unlike = number + 1, f"{name}.{number + 1}"
        found[unlike] = None
    return tuple(found)
