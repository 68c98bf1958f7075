"""LLVM spelling of the loop IR's values: types, literals, names.

A bool is `i1` as a value and `i8` (0 or 1) in memory.  Signed and unsigned integers are alike: instructions distinguish
them.  Types of memory alone (float16, bfloat16, those of at most 8 bits) are integers everywhere.  The loop IR only
loads, stores, selects and casts them, and LLVM's own conversions of `half` and `bfloat` call functions that need not
exist.
"""

from __future__ import annotations

import math
import re
import struct
from functools import cache
from typing import NamedTuple

from opgen.diagnostics import InternalError
from opgen.dtypes import DTYPES, small_bits
from opgen.loop.nodes import Type

_VALUE = {
    "bool": "i1",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "i8",
    "uint16": "i16",
    "uint32": "i32",
    "uint64": "i64",
    "float32": "float",
    "float64": "double",
} | {d.name: f"i{d.bits}" for d in DTYPES.values() if d.is_stored}
_SUFFIX = {"i1": "i1", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64", "float": "f32", "double": "f64"}


class Value(NamedTuple):
    """A value in the emitted text: a name or a literal, its loop IR type and the spelling of its LLVM type."""

    ref: str
    type: Type
    text: str

    @property
    def typed(self) -> str:
        return f"{self.text} {self.ref}"


@cache
def vector(scalar: str, lanes: int) -> str:
    """Return the LLVM type of `lanes` of a scalar LLVM type; one lane is the scalar itself."""
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def value_type(t: Type) -> str:
    """Return the LLVM type of a value."""
    return vector(_VALUE[t.dtype.name], t.lanes)


def scalar_type(name: str) -> str:
    """Return the LLVM type of a scalar value of the named type."""
    return _VALUE[name]


def memory_type(name: str) -> str:
    """Return the LLVM type of an element in memory."""
    return "i8" if name == "bool" else _VALUE[name]


def suffix(scalar: str, lanes: int) -> str:
    """Return the mangling of an LLVM type in an intrinsic's name: `v16f32`."""
    return _SUFFIX[scalar] if lanes == 1 else f"v{lanes}{_SUFFIX[scalar]}"


def splat(scalar: str, literal: str, lanes: int) -> str:
    """Return the literal in every lane."""
    if lanes == 1:
        return literal
    return "zeroinitializer" if literal in ("0", "0.0", "false") else f"splat ({scalar} {literal})"


def listed(scalar: str, literals: list[int]) -> str:
    """Return a vector literal with these integers as its lanes."""
    return "<" + ", ".join(f"{scalar} {n}" for n in literals) + ">"


def literal(value: int | float | bool, t: Type) -> str:
    """Return a constant of a type, the same in every lane, rounded once to that type."""
    name = t.dtype.name
    return splat(_VALUE[name], _scalar_literal(value, name), t.lanes)


def _scalar_literal(value: int | float | bool, name: str) -> str:
    if name == "bool":
        return "true" if value else "false"
    if DTYPES[name].small is not None:
        return str(small_bits(float(value), DTYPES[name]))
    if DTYPES[name].is_int and DTYPES[name].is_stored:
        return str(int(value) & (1 << DTYPES[name].digits) - 1)
    if DTYPES[name].is_int:
        return str(wrapped(int(value), DTYPES[name].bits))
    if name == "float16":
        return str(float16_bits(float(value)))
    if name == "bfloat16":
        return str(bfloat16_bits(float(value)))
    if name == "float32":
        return _float_literal(_rounded_to_float32(float(value)))
    if name == "float64":
        return _float_literal(float(value))
    raise InternalError(f"no LLVM literal for type {name}")


def wrapped(value: int, bits: int) -> int:
    """Return the two's complement number of that many bits that equals `value` modulo 2**bits."""
    half = 1 << (bits - 1)
    return (value + half) % (1 << bits) - half


def _float_literal(value: float) -> str:
    """Return the decimal form if it is short and exact, else the hexadecimal form of the double that equals it."""
    if math.isfinite(value) and abs(value) < 1e6 and value * 16 == int(value * 16):
        return repr(value)
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def _rounded_to_float32(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def float16_bits(value: float) -> int:
    """Return the bit pattern of the float16 nearest to a double, ties to even."""
    try:
        return int(struct.unpack("<H", struct.pack("<e", value))[0])
    except OverflowError:
        return 0x7C00 if value > 0 else 0xFC00


def bfloat16_bits(value: float) -> int:
    """Return the bit pattern of the bfloat16 nearest to a double, ties to even."""
    sign = 0x8000 if math.copysign(1.0, value) < 0 else 0
    if math.isnan(value):
        return sign | 0x7FC0
    if math.isinf(value):
        return sign | 0x7F80
    exponent = max(math.frexp(value)[1] - 8, -133) if value else -133
    significand = round(math.ldexp(abs(value), -exponent))  # an integer of at most 8 bits, or 256 if it rounds up
    if significand < 128:
        return sign | significand
    return sign | min((exponent + 133 << 7) + significand, 0x7F80)


def sanitised(name: str) -> str:
    """Replace everything but letters, digits and underscores, so that the name can be part of any symbol."""
    clean = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return clean if clean and not clean[0].isdigit() else f"_{clean}"
