"""Scalar types and literals in CUDA C."""

from __future__ import annotations

import math
import struct

from opgen.diagnostics import InternalError
from opgen.dtypes import BFLOAT16, BOOL, DTYPES, FLOAT16, FLOAT32, FLOAT64, INT64, DType, small_bits
from opgen.loop.syntax import SUFFIX_OF

VALUE_TYPES = {
    BOOL: "bool",
    **{d: f"{'i' if d.signed else 'u'}{d.digits}" for d in DTYPES.values() if d.is_int},
    **{d: SUFFIX_OF[d.name] for d in DTYPES.values() if d.small},
    FLOAT16: "f16",
    BFLOAT16: "bf16",
    FLOAT32: "f32",
    FLOAT64: "f64",
}
"""The C type of a value.  Types of memory alone (16-bit floating ones, all of at most 8 bits) are kept as bits."""

MEMORY_TYPES = VALUE_TYPES | {BOOL: "u8"}
"""The C type of an element in memory."""

WIDE_TYPES = frozenset(t for d, t in VALUE_TYPES.items() if d != BOOL and not d.is_bits)
"""Types that every program declares; it declares those of memory alone where it has them."""

TYPEDEFS = {
    "i8": "signed char",
    "u8": "unsigned char",
    "i16": "short",
    "u16": "unsigned short",
    "i32": "int",
    "u32": "unsigned int",
    "i64": "long long",
    "u64": "unsigned long long",
    "f16": "unsigned short",
    "bf16": "unsigned short",
    "f32": "float",
    "f64": "double",
    **{VALUE_TYPES[d]: "unsigned char" for d in DTYPES.values() if d.is_bits},
}

_EXPONENT_BITS = {FLOAT16: 5, BFLOAT16: 8}


def literal(value: int | float | bool, dtype: DType) -> str:
    """Return a literal of a type, without a suffix for an int64 that fits an int and for types that C makes an int."""
    match dtype.kind:
        case "bool":
            return "true" if value else "false"
        case "int":
            return _integer(int(value), dtype)
        case "float":
            return _floating(float(value), dtype)


def _integer(value: int, dtype: DType) -> str:
    if not dtype.least <= value <= dtype.greatest:
        raise InternalError(f"{value} is no {dtype}")
    if dtype.is_stored:
        return f"({VALUE_TYPES[dtype]}){value & (1 << dtype.digits) - 1}"
    if not dtype.signed:
        return f"{value}{'' if dtype.bits < 32 else 'u' if dtype.bits == 32 else 'ull'}"
    suffix = "" if -(2**31) < value < 2**31 or dtype != INT64 else "LL"
    least = value == dtype.least and dtype.bits >= 32
    return f"(-{dtype.greatest}{suffix} - 1)" if least else f"{value}{suffix}"


def _floating(value: float, dtype: DType) -> str:
    if dtype.small is not None:
        return f"({VALUE_TYPES[dtype]})0x{small_bits(value, dtype):02x}"
    if dtype in _EXPONENT_BITS:
        return f"({VALUE_TYPES[dtype]})0x{narrow_bits(value, dtype):04x}"
    if dtype == FLOAT64:
        if math.isfinite(value):
            return repr(value)
        bits = struct.unpack("<q", struct.pack("<d", value))[0] & (2**64 - 1)
        return f"__longlong_as_double(0x{bits:016x}LL)"
    rounded = to_float32(value)
    if math.isfinite(rounded):
        return f"{_shortest(rounded)}f"
    return f"__int_as_float(0x{struct.unpack('<I', struct.pack('<f', rounded))[0]:08x})"


def to_float32(value: float) -> float:
    """Return the value rounded to float32."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _shortest(value: float) -> str:
    """Return the shortest decimal that is a float32 when read as one; it has a point or an exponent."""
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if to_float32(float(text)) == value:
            break
    return repr(float(text))


def narrow_bits(value: float, dtype: DType) -> int:
    """Return the bits of a value rounded once to float16 or bfloat16 (nearest even; a NaN becomes the quiet one)."""
    exponent_bits, fraction_bits = _EXPONENT_BITS[dtype], dtype.precision - 1
    sign = 1 << 15 if math.copysign(1.0, value) < 0 else 0
    infinity = ((1 << exponent_bits) - 1) << fraction_bits
    if math.isnan(value):
        return sign | infinity | 1 << (fraction_bits - 1)
    if math.isinf(value):
        return sign | infinity
    lowest = 2 - (1 << (exponent_bits - 1))
    exponent = max(math.frexp(value)[1] - 1, lowest) if value else lowest
    steps = round(math.ldexp(abs(value), fraction_bits - exponent))
    return sign | min(((exponent - lowest) << fraction_bits) + steps, infinity)
