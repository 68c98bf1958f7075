"""The one table of scalar types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["bool", "int", "float"]


@dataclass(frozen=True)
class DType:
    """A scalar type.

    `bits` is its size in memory (a bool takes 8).  `compute` names the type in which arithmetic on it is done and sums
    are accumulated: float32 for the two 16-bit floating types, itself otherwise (so integers wrap in their own type).
    `precision` is the number of significand bits (the unit roundoff is 2**-precision); 0 for types that are not
    floating.  `signed` tells the two kinds of integers apart.
    """

    name: str
    kind: Kind
    bits: int
    compute: str
    precision: int = 0
    signed: bool = True

    def __str__(self) -> str:
        return self.name

    @property
    def bytes(self) -> int:
        return self.bits // 8

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_int(self) -> bool:
        return self.kind == "int"

    @property
    def least(self) -> int:
        """The least integer of an integer type; of a bool 0."""
        return -(1 << self.bits - 1) if self.is_int and self.signed else 0

    @property
    def greatest(self) -> int:
        """The greatest integer of an integer type; of a bool 1."""
        return (1 << self.bits - self.signed) - 1 if self.is_int else 1

    @property
    def compute_type(self) -> DType:
        return DTYPES[self.compute]


DTYPES: dict[str, DType] = {
    d.name: d
    for d in (
        DType("bool", "bool", 8, "bool"),
        DType("int8", "int", 8, "int8"),
        DType("int16", "int", 16, "int16"),
        DType("int32", "int", 32, "int32"),
        DType("int64", "int", 64, "int64"),
        DType("uint8", "int", 8, "uint8", signed=False),
        DType("uint16", "int", 16, "uint16", signed=False),
        DType("uint32", "int", 32, "uint32", signed=False),
        DType("uint64", "int", 64, "uint64", signed=False),
        DType("float16", "float", 16, "float32", 11),
        DType("bfloat16", "float", 16, "float32", 8),
        DType("float32", "float", 32, "float32", 24),
        DType("float64", "float", 64, "float64", 53),
    )
}

ALIASES = {"half": "float16", "float": "float32", "double": "float64"}
"""Other words for some types, as TensorFlow and C use them; accepted wherever a type is named."""

BOOL = DTYPES["bool"]
INT8 = DTYPES["int8"]
INT16 = DTYPES["int16"]
INT32 = DTYPES["int32"]
INT64 = DTYPES["int64"]
UINT8 = DTYPES["uint8"]
UINT16 = DTYPES["uint16"]
UINT32 = DTYPES["uint32"]
UINT64 = DTYPES["uint64"]
FLOAT16 = DTYPES["float16"]
BFLOAT16 = DTYPES["bfloat16"]
FLOAT32 = DTYPES["float32"]
FLOAT64 = DTYPES["float64"]


def wrap(value: int, dtype: DType) -> int:
    """The integer of an integer type that equals `value` modulo 2**bits."""
    return ((value - dtype.least) & ((1 << dtype.bits) - 1)) + dtype.least


def lookup(name: str) -> DType | None:
    """The type of that name or alias, or None."""
    return DTYPES.get(ALIASES.get(name, name))
