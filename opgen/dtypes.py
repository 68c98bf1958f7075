"""The one table of scalar types."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Kind = Literal["bool", "int", "float"]


@dataclass(frozen=True)
class Small:
    """Storage of a floating type of at most 8 bits: from the top a sign, biased `exponent` bits, `fraction` bits.

    `overflow` are the magnitude bits for infinities and numbers beyond the greatest (NaN's, or infinity's).  `nan` are
    the bits of NaN, None if the type has none (a NaN becomes 0).  `one_zero`: the type has no -0, and NaN is the sign
    bit alone, as in the types whose names end in FNUZ.  A type without a sign has powers of two only, and neither 0 nor
    negative numbers: 0 becomes the least, and a negative number NaN.
    """

    exponent: int
    fraction: int
    bias: int
    overflow: int
    nan: int | None
    one_zero: bool = False
    signed: bool = True


@dataclass(frozen=True)
class DType:
    """A scalar type.

    `bits` is its size in memory (a bool takes 8, and so does a number of fewer bits).  `compute` names the type in
    which arithmetic on it is done and sums are accumulated.  It is float32 for floating types of at most 16 bits, an
    integer of 8 bits for those of fewer, itself otherwise (so integers wrap in their own type).  `precision` is the
    number of significand bits (the unit roundoff is 2**-precision); 0 for types that are not floating.  `signed`
    distinguishes the two kinds of integers.  `width` is the number of significant bits, the lowest ones: 0 if all are.
    `small` describes the storage of a floating type of at most 8 bits.
    """

    name: str
    kind: Kind
    bits: int
    compute: str
    precision: int = 0
    signed: bool = True
    width: int = 0
    small: Small | None = None

    def __str__(self) -> str:
        return self.name

    def __hash__(self) -> int:
        """Return the hash of the name, which Python keeps: graphs hash types by the thousand."""
        return hash(self.name)

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
    def is_stored(self) -> bool:
        """True if the type is for storage only: arithmetic on it is done in another."""
        return self.compute != self.name

    @property
    def is_bits(self) -> bool:
        """True if the type is for storage only and has at most 8 bits; few languages have a word for it."""
        return self.is_stored and self.bits == 8

    @property
    def digits(self) -> int:
        """The number of significant bits."""
        return self.width or self.bits

    @property
    def kind_code(self) -> str:
        """The kind of numbers in DLPack, a key of `DLPACK_CODES`: together with `digits` it determines a type there."""
        if self.small is not None or self.name == "bfloat16":
            return "BFLOAT" if self.small is None else self.name.upper()
        return {"bool": "BOOL", "int": "INT" if self.signed else "UINT", "float": "FLOAT"}[self.kind]

    @property
    def least(self) -> int:
        """The least integer of an integer type; of a bool 0."""
        return -(1 << self.digits - 1) if self.is_int and self.signed else 0

    @property
    def greatest(self) -> int:
        """The greatest integer of an integer type; of a bool 1."""
        return (1 << self.digits - self.signed) - 1 if self.is_int else 1

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
        DType("int4", "int", 8, "int8", width=4),
        DType("uint4", "int", 8, "uint8", signed=False, width=4),
        DType("int2", "int", 8, "int8", width=2),
        DType("uint2", "int", 8, "uint8", signed=False, width=2),
        DType("float16", "float", 16, "float32", 11),
        DType("bfloat16", "float", 16, "float32", 8),
        DType("float32", "float", 32, "float32", 24),
        DType("float64", "float", 64, "float64", 53),
        DType("float8_e4m3fn", "float", 8, "float32", 4, small=Small(4, 3, 7, 0x7F, 0x7F)),
        DType("float8_e4m3fnuz", "float", 8, "float32", 4, small=Small(4, 3, 8, 0x80, 0x80, one_zero=True)),
        DType("float8_e5m2", "float", 8, "float32", 3, small=Small(5, 2, 15, 0x7C, 0x7E)),
        DType("float8_e5m2fnuz", "float", 8, "float32", 3, small=Small(5, 2, 16, 0x80, 0x80, one_zero=True)),
        DType("float8_e8m0fnu", "float", 8, "float32", 1, small=Small(8, 0, 127, 0xFF, 0xFF, signed=False)),
        DType("float4_e2m1fn", "float", 8, "float32", 2, width=4, small=Small(2, 1, 1, 0x7, None)),
    )
}

DLPACK_CODES = {
    "INT": 0,
    "UINT": 1,
    "FLOAT": 2,
    "BFLOAT": 4,
    "BOOL": 6,
    "FLOAT8_E4M3FN": 10,
    "FLOAT8_E4M3FNUZ": 11,
    "FLOAT8_E5M2": 12,
    "FLOAT8_E5M2FNUZ": 13,
    "FLOAT8_E8M0FNU": 14,
    "FLOAT4_E2M1FN": 17,
}
"""DLPack's numbers of kinds of scalar types (`DLDataTypeCode` of dlpack.h, version 1.1)."""

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
    """Return the integer of an integer type that equals `value` modulo 2 to the power of its digits."""
    return ((value - dtype.least) & ((1 << dtype.digits) - 1)) + dtype.least


def small_value(code: int, dtype: DType) -> float:
    """Return the number that the bits of a floating type of at most 8 bits represent."""
    form = dtype.small
    assert form is not None
    if not form.signed:
        return math.nan if code == form.nan else 2.0 ** (code - form.bias)
    top = form.exponent + form.fraction
    magnitude, negative = code & (1 << top) - 1, bool(code >> top & 1)
    if form.one_zero and magnitude == 0 and negative:
        return math.nan
    if form.nan is not None and not form.one_zero and magnitude >= form.overflow:
        return math.nan if magnitude > form.overflow or form.nan == form.overflow else (-1) ** negative * math.inf
    exponent, fraction = magnitude >> form.fraction, magnitude & (1 << form.fraction) - 1
    if exponent:
        fraction += 1 << form.fraction
    value = math.ldexp(fraction, max(exponent, 1) - form.bias - form.fraction)
    return -value if negative else value


def small_bits(value: float, dtype: DType) -> int:
    """Return the bits of the nearest number of a floating type of at most 8 bits, ties to even.

    NaN, and a value beyond the greatest, becomes the bits described in `Small`; a type without a sign rounds ties up.
    """
    form = dtype.small
    assert form is not None
    negative = math.copysign(1.0, value) < 0
    if not form.signed and negative and value != 0:
        return form.overflow
    sign = negative << form.exponent + form.fraction if form.signed else 0
    if math.isnan(value):
        return form.nan or 0 if form.one_zero or form.nan is None else form.nan | sign
    magnitude = abs(value)
    greatest = form.overflow - (form.nan is not None)
    codes = range(greatest + 1)
    best = min(codes, key=lambda c: (abs(small_value(c, dtype) - magnitude), c % 2 if form.signed else -c))
    step = small_value(greatest, dtype) - small_value(greatest - 1, dtype)
    ends = small_value(greatest, dtype) + step * (0.5 if form.signed else 1)
    if magnitude > ends or (magnitude == ends and (greatest % 2 or not form.signed)) or math.isinf(magnitude):
        best = form.overflow
    return 0 if form.one_zero and best == 0 else best | sign


def lookup(name: str) -> DType | None:
    """Return the type of that name or alias, or None."""
    return DTYPES.get(ALIASES.get(name, name))
