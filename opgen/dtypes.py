"""The one table of scalar types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["bool", "int", "float"]


@dataclass(frozen=True)
class DType:
    """A scalar type.

    `bits` is its size in memory (a bool takes 8).  `compute` names the type in which arithmetic on it is done and sums
    are accumulated: float32 for the two 16-bit types, itself otherwise.  `precision` is the number of significand bits
    (the unit roundoff is 2**-precision); 0 for types that are not floating.
    """

    name: str
    kind: Kind
    bits: int
    compute: str
    precision: int = 0

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
    def compute_type(self) -> DType:
        return DTYPES[self.compute]


DTYPES: dict[str, DType] = {
    d.name: d
    for d in (
        DType("bool", "bool", 8, "bool"),
        DType("int32", "int", 32, "int32"),
        DType("int64", "int", 64, "int64"),
        DType("float16", "float", 16, "float32", 11),
        DType("bfloat16", "float", 16, "float32", 8),
        DType("float32", "float", 32, "float32", 24),
        DType("float64", "float", 64, "float64", 53),
    )
}

ALIASES = {"half": "float16", "float": "float32", "double": "float64"}
"""Other words for some types, as TensorFlow and C use them; accepted wherever a type is named."""

BOOL = DTYPES["bool"]
INT32 = DTYPES["int32"]
INT64 = DTYPES["int64"]
FLOAT16 = DTYPES["float16"]
BFLOAT16 = DTYPES["bfloat16"]
FLOAT32 = DTYPES["float32"]
FLOAT64 = DTYPES["float64"]


def lookup(name: str) -> DType | None:
    """The type of that name or alias, or None."""
    return DTYPES.get(ALIASES.get(name, name))
