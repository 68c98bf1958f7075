"""Numbers of at most 8 bits, a byte each in memory: narrower ones use the lowest bits, and stores clear the others.

They are converted by integer arithmetic.  A floating number's magnitude is shifted to the place of float32's exponent
and fraction.  The result is a float32 that a power of two brings to its value: denormals, too, as the product makes
them normal.  The way back rounds as the conversion to float16 does.
"""

from __future__ import annotations

import struct

from opgen.codegen.llvm.function import Function
from opgen.codegen.llvm.types import Value, splat, suffix, value_type
from opgen.dtypes import DTYPES, DType, Small
from opgen.loop.nodes import Type

Helper = tuple[str, str, str]
"""Result, argument and body, as in `conversions`."""


def unpacked(fn: Function, value: Value) -> Value:
    """Return an integer of fewer than 8 bits as one of 8."""
    of = Type(value.type.dtype.compute_type, value.type.lanes)
    spare = splat("i8", str(of.dtype.bits - value.type.dtype.digits), of.lanes)
    high = fn.writer.pure("high", f"shl {value.typed}, {spare}")
    shift = "ashr" if of.dtype.signed else "lshr"
    return Value(fn.writer.pure(of.dtype.name, f"{shift} {value.text} {high}, {spare}"), of, value_type(of))


def held(fn: Function, value: Value, to: DType) -> Value:
    """Return an integer of 8 bits, or the nearest that a type of fewer has."""
    ref, lanes = value.ref, value.type.lanes
    for name, end in (("max", to.least), ("min", to.greatest)):
        mangled = f"llvm.{'s' if to.signed else 'u'}{name}.{suffix('i8', lanes)}"
        symbol = fn.module.declare(mangled, f"{value.text} @{mangled}({value.text}, {value.text})")
        ref = fn.writer.pure(
            "held", f"call {value.text} {symbol}({value.text} {ref}, {value.text} {splat('i8', str(end), lanes)})"
        )
    return Value(ref, value.type, value.text)


def packed(fn: Function, value: Value, to: DType) -> Value:
    """Return an integer of 8 bits as one of fewer: the others are dropped."""
    mask = splat("i8", str((1 << to.digits) - 1), value.type.lanes)
    return Value(fn.writer.pure(to.name, f"and {value.typed}, {mask}"), Type(to, value.type.lanes), value.text)


def _float(exponent: int) -> str:
    """Return 2**exponent as LLVM writes a float."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', 2.0**exponent))[0]:016X}"


def _bits(exponent: int) -> int:
    """Return the bits of the float32 2**exponent."""
    return int(struct.unpack("<i", struct.pack("<f", 2.0**exponent))[0])


def _widening(small: Small) -> str:
    if not small.signed:
        return """
  %bits = zext {i8} %x to {i32}
  %shifted = shl {i32} %bits, $i32:23
  %is.least = icmp eq {i32} %bits, $i32:0
  %number = select {i1} %is.least, {i32} $i32:4194304, {i32} %shifted
  %is.nan = icmp eq {i32} %bits, $i32:255
  %all = select {i1} %is.nan, {i32} $i32:2143289344, {i32} %number
  %result = bitcast {i32} %all to {float}
  ret {float} %result
"""
    top = small.exponent + small.fraction
    special = "\n  %unsigned = add {i32} %number, $i32:0\n"
    if small.one_zero:
        special = f"""
  %is.nan = icmp eq {{i32}} %bits, $i32:{1 << top}
  %unsigned = select {{i1}} %is.nan, {{i32}} $i32:2143289344, {{i32}} %number
"""
    elif small.nan is not None:
        special = f"""
  %is.special = icmp uge {{i32}} %magnitude, $i32:{small.overflow}
  %is.nan = icmp uge {{i32}} %magnitude, $i32:{small.nan - (small.nan != small.overflow)}
  %beyond = select {{i1}} %is.nan, {{i32}} $i32:2143289344, {{i32}} $i32:2139095040
  %unsigned = select {{i1}} %is.special, {{i32}} %beyond, {{i32}} %number
"""
    return f"""
  %bits = zext {{i8}} %x to {{i32}}
  %magnitude = and {{i32}} %bits, $i32:{(1 << top) - 1}
  %shifted = shl {{i32}} %magnitude, $i32:{23 - small.fraction}
  %biased = bitcast {{i32}} %shifted to {{float}}
  %value = fmul {{float}} %biased, $float:{_float(127 - small.bias)}
  %number = bitcast {{float}} %value to {{i32}}{special}  %top = shl {{i32}} %bits, $i32:{31 - top}
  %sign = and {{i32}} %top, $i32:-2147483648
  %all = or {{i32}} %unsigned, %sign
  %result = bitcast {{i32}} %all to {{float}}
  ret {{float}} %result
"""


def _narrowing(small: Small) -> str:
    if not small.signed:
        return """
  %bits = bitcast {float} %x to {i32}
  %half = add {i32} %bits, $i32:4194304
  %normal = lshr {i32} %half, $i32:23
  %is.above = icmp uge {i32} %bits, $i32:6291456
  %denormal = zext {i1} %is.above to {i32}
  %is.small = icmp ult {i32} %bits, $i32:8388608
  %number = select {i1} %is.small, {i32} %denormal, {i32} %normal
  %is.nan = icmp ugt {i32} %bits, $i32:2139095040
  %is.beyond = icmp ugt {i32} %normal, $i32:254
  %is.none = or {i1} %is.nan, %is.beyond
  %positive = select {i1} %is.none, {i32} $i32:255, {i32} %number
  %is.zero = icmp eq {i32} %bits, $i32:-2147483648
  %all = select {i1} %is.zero, {i32} $i32:0, {i32} %positive
  %result = trunc {i32} %all to {i8}
  ret {i8} %result
"""
    top, shift = small.exponent + small.fraction, 23 - small.fraction
    greatest = small.overflow - (small.nan is not None)
    least, aligning = 1 - small.bias, 24 - small.bias - small.fraction
    sign = f"%sign = and {{i32}} %high, $i32:{1 << top}"
    if small.one_zero:
        sign = f"""%own.sign = and {{i32}} %high, $i32:{1 << top}
  %is.zero = icmp eq {{i32}} %unsigned, $i32:0
  %sign = select {{i1}} %is.zero, {{i32}} $i32:0, {{i32}} %own.sign"""
    elif small.nan is None:
        sign = f"""%own.sign = and {{i32}} %high, $i32:{1 << top}
  %sign = select {{i1}} %is.nan, {{i32}} $i32:0, {{i32}} %own.sign"""
    return f"""
  %bits = bitcast {{float}} %x to {{i32}}
  %high = lshr {{i32}} %bits, $i32:{31 - top}
  %magnitude = and {{i32}} %bits, $i32:2147483647
  %shifted = lshr {{i32}} %magnitude, $i32:{shift}
  %odd = and {{i32}} %shifted, $i32:1
  %rebiased = add {{i32}} %magnitude, $i32:{(1 << shift - 1) - 1 - (127 - small.bias << 23)}
  %rounded = add {{i32}} %rebiased, %odd
  %normal = lshr {{i32}} %rounded, $i32:{shift}
  %absolute = bitcast {{i32}} %magnitude to {{float}}
  %aligned = fadd {{float}} %absolute, $float:{_float(aligning)}
  %aligned.bits = bitcast {{float}} %aligned to {{i32}}
  %small = sub {{i32}} %aligned.bits, $i32:{_bits(aligning)}
  %is.small = icmp ult {{i32}} %magnitude, $i32:{_bits(least)}
  %finite = select {{i1}} %is.small, {{i32}} %small, {{i32}} %normal
  %is.beyond = icmp ugt {{i32}} %finite, $i32:{greatest}
  %held = select {{i1}} %is.beyond, {{i32}} $i32:{small.overflow}, {{i32}} %finite
  %is.nan = icmp ugt {{i32}} %magnitude, $i32:2139095040
  %unsigned = select {{i1}} %is.nan, {{i32}} $i32:{small.nan or 0}, {{i32}} %held
  {sign}
  %all = or {{i32}} %unsigned, %sign
  %result = trunc {{i32}} %all to {{i8}}
  ret {{i8}} %result
"""


HELPERS: dict[str, Helper] = {
    name: helper
    for d in DTYPES.values()
    if d.small is not None
    for name, helper in (
        (f"float32.from.{d.name}", ("float", "i8", _widening(d.small))),
        (f"{d.name}.from.float32", ("i8", "float", _narrowing(d.small))),
    )
}
"""The conversions of the floating types of at most 8 bits."""
