"""Conversions between types, each rounded once, with no call into a run-time library.

LLVM turns a bare `fptrunc` or `fpext` of half and bfloat into calls of functions that a process need not have.  So the
16-bit types are kept as i16 and converted by integer arithmetic, in small functions that LLVM inlines; where the CPU
has instructions for float16 <-> float32 those are used, with the same results bit for bit (a NaN becomes quiet and
keeps its upper bits).  AVX-512's instruction for bfloat16 flushes denormals: `bfloat16.py` sees to these.

float64 goes to the 16-bit types through a float32 rounded to odd.  An inexact float32 has its last bit set, so that the
second rounding sees on which side the value was.  (24 bits are at least 2 more than the 11 or 8 of the result, and
float32's denormals have as many bits to spare.)
"""

from __future__ import annotations

import re

from opgen.codegen.llvm import bfloat16, small
from opgen.codegen.llvm.function import Function
from opgen.codegen.llvm.types import Value, literal, scalar_type, splat, suffix, value_type, vector
from opgen.diagnostics import InternalError
from opgen.dtypes import DTYPES, FLOAT32, FLOAT64, INT32, DType
from opgen.loop.nodes import Type

_HELPERS: dict[str, tuple[str, str, str]] = {
    "float32.from.float16": (
        "float",
        "i16",
        """
  %bits = zext {i16} %x to {i32}
  %signed = shl {i32} %bits, $i32:16
  %sign = and {i32} %signed, $i32:-2147483648
  %magnitude = and {i32} %bits, $i32:32767
  %shifted = shl {i32} %magnitude, $i32:13
  %normal = add {i32} %shifted, $i32:939524096
  %units = sitofp {i32} %magnitude to {float}
  %small.value = fmul {float} %units, $float:0x3E70000000000000
  %small = bitcast {float} %small.value to {i32}
  %is.small = icmp ult {i32} %magnitude, $i32:1024
  %finite = select {i1} %is.small, {i32} %small, {i32} %normal
  %is.nan = icmp ugt {i32} %magnitude, $i32:31744
  %quiet = select {i1} %is.nan, {i32} $i32:2143289344, {i32} $i32:2139095040
  %special = or {i32} %shifted, %quiet
  %is.special = icmp uge {i32} %magnitude, $i32:31744
  %unsigned = select {i1} %is.special, {i32} %special, {i32} %finite
  %all = or {i32} %unsigned, %sign
  %result = bitcast {i32} %all to {float}
  ret {float} %result
""",
    ),
    # Denormals: adding 0.5 puts the units of 2**-24 into the last bits of the sum, rounded by the addition itself.
    "float16.from.float32": (
        "i16",
        "float",
        """
  %bits = bitcast {float} %x to {i32}
  %high = lshr {i32} %bits, $i32:16
  %sign = and {i32} %high, $i32:32768
  %magnitude = and {i32} %bits, $i32:2147483647
  %shifted = lshr {i32} %magnitude, $i32:13
  %odd = and {i32} %shifted, $i32:1
  %rebiased = add {i32} %magnitude, $i32:-939520001
  %rounded = add {i32} %rebiased, %odd
  %normal = lshr {i32} %rounded, $i32:13
  %absolute = bitcast {i32} %magnitude to {float}
  %aligned = fadd {float} %absolute, $float:0.5
  %aligned.bits = bitcast {float} %aligned to {i32}
  %small = sub {i32} %aligned.bits, $i32:1056964608
  %is.small = icmp ult {i32} %magnitude, $i32:947912704
  %finite = select {i1} %is.small, {i32} %small, {i32} %normal
  %payload = and {i32} %shifted, $i32:511
  %nan = or {i32} %payload, $i32:32256
  %is.nan = icmp ugt {i32} %magnitude, $i32:2139095040
  %special = select {i1} %is.nan, {i32} %nan, {i32} $i32:31744
  %is.special = icmp uge {i32} %magnitude, $i32:1199566848
  %unsigned = select {i1} %is.special, {i32} %special, {i32} %finite
  %all = or {i32} %unsigned, %sign
  %result = trunc {i32} %all to {i16}
  ret {i16} %result
""",
    ),
    "float32.from.bfloat16": (
        "float",
        "i16",
        """
  %bits = zext {i16} %x to {i32}
  %magnitude = and {i32} %bits, $i32:32767
  %is.nan = icmp ugt {i32} %magnitude, $i32:32640
  %quieted = or {i32} %bits, $i32:64
  %kept = select {i1} %is.nan, {i32} %quieted, {i32} %bits
  %all = shl {i32} %kept, $i32:16
  %result = bitcast {i32} %all to {float}
  ret {float} %result
""",
    ),
    "bfloat16.from.float32": (
        "i16",
        "float",
        """
  %bits = bitcast {float} %x to {i32}
  %high = lshr {i32} %bits, $i32:16
  %odd = and {i32} %high, $i32:1
  %raised = add {i32} %bits, $i32:32767
  %rounded = add {i32} %raised, %odd
  %number = lshr {i32} %rounded, $i32:16
  %nan = or {i32} %high, $i32:64
  %is.nan = fcmp uno {float} %x, %x
  %all = select {i1} %is.nan, {i32} %nan, {i32} %number
  %result = trunc {i32} %all to {i16}
  ret {i16} %result
""",
    ),
    "float32.odd.from.float64": (
        "float",
        "double",
        """
  %near = fptrunc {double} %x to {float}
  %back = fpext {float} %near to {double}
  %inexact = fcmp one {double} %back, %x
  %bits = bitcast {float} %near to {i32}
  %last = and {i32} %bits, $i32:1
  %even = icmp eq {i32} %last, $i32:0
  %adjust = and {i1} %inexact, %even
  %back.bits = bitcast {double} %back to {i64}
  %back.magnitude = and {i64} %back.bits, $i64:9223372036854775807
  %own.bits = bitcast {double} %x to {i64}
  %own.magnitude = and {i64} %own.bits, $i64:9223372036854775807
  %above = icmp ugt {i64} %back.magnitude, %own.magnitude
  %towards = select {i1} %above, {i32} $i32:-1, {i32} $i32:1
  %moved = add {i32} %bits, %towards
  %odd = select {i1} %adjust, {i32} %moved, {i32} %bits
  %result = bitcast {i32} %odd to {float}
  ret {float} %result
""",
    ),
    # uint64 to the same result as the code below, which is for int64.
    "uint64.odd": (
        "i64",
        "i64",
        """
  %low = and {i64} %x, $i64:2047
  %inexact = icmp ne {i64} %low, $i64:0
  %sticky = select {i1} %inexact, {i64} $i64:2048, {i64} $i64:0
  %cut = and {i64} %x, $i64:-2048
  %odd = or {i64} %cut, %sticky
  %is.large = icmp ugt {i64} %x, $i64:9007199254740992
  %result = select {i1} %is.large, {i64} %odd, {i64} %x
  ret {i64} %result
""",
    ),
    # int64 to a multiple of 2048, odd if inexact, where float64 has not all its bits.
    "int64.odd": (
        "i64",
        "i64",
        """
  %low = and {i64} %x, $i64:2047
  %inexact = icmp ne {i64} %low, $i64:0
  %sticky = select {i1} %inexact, {i64} $i64:2048, {i64} $i64:0
  %cut = and {i64} %x, $i64:-2048
  %odd = or {i64} %cut, %sticky
  %shifted = add {i64} %x, $i64:9007199254740992
  %is.large = icmp ugt {i64} %shifted, $i64:18014398509481984
  %result = select {i1} %is.large, {i64} %odd, {i64} %x
  ret {i64} %result
""",
    ),
} | small.HELPERS
"""Result, argument and body of each helper: `{i32}` is that type with all lanes, `$i32:7` a constant in every lane."""

_SCALARS = ("i1", "i8", "i16", "i32", "i64", "float", "double")
_CONSTANT = re.compile(r"\$(\w+):(\S+?)(?=[,\s])")


def convert(fn: Function, value: Value, to: DType) -> Value:
    """Return the value in another type, as the loop IR's `Cast` says."""
    source = value.type.dtype
    if source.name == to.name:
        return value
    if source.small is not None:
        return convert(fn, _helper(fn, f"float32.from.{source.name}", value, FLOAT32), to)
    if source.is_int and source.is_stored:
        return convert(fn, small.unpacked(fn, value), to)
    if to.kind == "bool":
        return _truth(fn, value)
    if to.is_int and to.is_stored:
        byte = convert(fn, value, to.compute_type)
        return small.packed(fn, small.held(fn, byte, to) if source.is_float else byte, to)
    if source.kind == "float":
        return _from_float(fn, value, to)
    return _from_integer(fn, value, to)


def _op(fn: Function, operation: str, value: Value, to: DType) -> Value:
    """Return a conversion instruction of LLVM."""
    result = Type(to, value.type.lanes)
    text = value_type(result)
    return Value(fn.writer.pure(to.name, f"{operation} {value.typed} to {text}"), result, text)


def _truth(fn: Function, value: Value) -> Value:
    """Return a bool: a value is not 0 (a NaN is not)."""
    name, lanes = value.type.dtype.name, value.type.lanes
    scalar = scalar_type(name)
    ref = value.ref
    if name in ("float16", "bfloat16"):
        ref = fn.writer.pure("magnitude", f"and {value.typed}, {splat(scalar, '32767', lanes)}")
    compare, zero = ("fcmp une", "0.0") if scalar in ("float", "double") else ("icmp ne", "0")
    result = Type(DTYPES["bool"], lanes)
    ref = fn.writer.pure("truth", f"{compare} {value.text} {ref}, {splat(scalar, zero, lanes)}")
    return Value(ref, result, value_type(result))


def _from_float(fn: Function, value: Value, to: DType) -> Value:
    source = value.type.dtype.name
    if source in ("float16", "bfloat16"):
        return convert(fn, _widened(fn, value), to)
    if to.kind == "int":
        return _saturated(fn, value, to)
    if to.name == "float64":
        return _op(fn, "fpext", value, to)
    if to.name == "float32":
        return _op(fn, "fptrunc", value, to)
    if source == "float64":
        value = _helper(fn, "float32.odd.from.float64", value, FLOAT32)
    return _narrowed(fn, value, to)


def _from_integer(fn: Function, value: Value, to: DType) -> Value:
    """Convert from bool or an integer."""
    source, lanes = value.type.dtype, value.type.lanes
    signed = source.is_int and source.signed
    if to.kind == "int":
        if source.is_int and to.bits == source.bits:
            return Value(value.ref, Type(to, lanes), value.text)
        narrows = source.is_int and to.bits < source.bits
        return _op(fn, "trunc" if narrows else "sext" if signed else "zext", value, to)
    if to.name in ("float32", "float64"):
        return _op(fn, "sitofp" if signed else "uitofp", value, to)
    if source.kind == "bool":
        result = Type(to, lanes)
        text = value_type(result)
        one, zero = literal(1.0, result), literal(0.0, result)
        return Value(fn.writer.pure(to.name, f"select {value.typed}, {text} {one}, {text} {zero}"), result, text)
    if source.bits == 64:
        value = _helper(fn, f"{source.name}.odd", value, source)
    return convert(fn, _op(fn, "sitofp" if signed else "uitofp", value, FLOAT64), to)


def _saturated(fn: Function, value: Value, to: DType) -> Value:
    """Convert float32 or float64 to an integer: truncated, saturated, a NaN to 0."""
    result = Type(to, value.type.lanes)
    if result.lanes > 1 and to.bits < INT32.bits:
        return _clamped(fn, value, to)
    text = value_type(result)
    wanted, given = scalar_type(to.name), scalar_type(value.type.dtype.name)
    mangled = f"llvm.fpto{'s' if to.signed else 'u'}i.sat.{suffix(wanted, result.lanes)}.{suffix(given, result.lanes)}"
    symbol = fn.module.declare(mangled, f"{text} @{mangled}({value.text})")
    return Value(fn.writer.pure(to.name, f"call {text} {symbol}({value.typed})"), result, text)


def _clamped(fn: Function, value: Value, to: DType) -> Value:
    """Apply `_saturated` to vectors of narrow types: LLVM converts those lane by lane, int32 at once."""
    lanes = value.type.lanes
    zero, least, greatest = (literal(float(n), value.type) for n in (0, to.least, to.greatest))
    number = value.ref
    for test, bound in (("ord", zero), ("oge", least), ("ole", greatest)):
        holds = fn.writer.pure("holds", f"fcmp {test} {value.text} {number}, {bound}")
        choice = f"select {vector('i1', lanes)} {holds}, {value.text} {number}, {value.text} {bound}"
        number = fn.writer.pure("clamped", choice)
    wide = fn.writer.pure("whole", f"fptosi {value.text} {number} to {vector('i32', lanes)}")
    result = Type(to, lanes)
    text = value_type(result)
    return Value(fn.writer.pure(to.name, f"trunc {vector('i32', lanes)} {wide} to {text}"), result, text)


def _widened(fn: Function, value: Value) -> Value:
    """Convert float16 or bfloat16 to float32, exactly."""
    name = value.type.dtype.name
    if name == "float16" and fn.module.target.converts_float16:
        half = vector("half", value.type.lanes)
        ref = fn.writer.pure("half", f"bitcast {value.typed} to {half}")
        return _op(fn, "fpext", Value(ref, value.type, half), FLOAT32)
    return _helper(fn, f"float32.from.{name}", value, FLOAT32)


def _narrowed(fn: Function, value: Value, to: DType) -> Value:
    """Convert float32 to float16 or bfloat16."""
    if to.name == "float16" and fn.module.target.converts_float16:
        half = vector("half", value.type.lanes)
        rounded = fn.writer.pure("half", f"fptrunc {value.typed} to {half}")
        return _op(fn, "bitcast", Value(rounded, value.type, half), to)
    if not to.is_stored:
        raise InternalError(f"no conversion from {value.type} to {to}")
    by_instruction = bfloat16.narrowed(fn, value) if to.name == "bfloat16" else None
    return by_instruction or _helper(fn, f"{to.name}.from.float32", value, to)


def _helper(fn: Function, name: str, value: Value, to: DType) -> Value:
    """Return a call of one of the helpers, which is added to the module."""
    lanes = value.type.lanes
    result, argument, body = _HELPERS[name]
    symbol = f"{name}.x{lanes}" if lanes > 1 else name
    if symbol not in fn.module.helpers:
        types = {scalar: vector(scalar, lanes) for scalar in _SCALARS}
        spelt = _CONSTANT.sub(lambda m: splat(m[1], m[2], lanes), body).format_map(types)
        head = f"define internal {types[result]} @{symbol}({types[argument]} %x) alwaysinline #0"
        fn.module.helpers[symbol] = f"{head} {{{spelt}}}"
    of = Type(to, lanes)
    text = vector(result, lanes)
    return Value(fn.writer.pure(to.name, f"call {text} @{symbol}({value.typed})"), of, text)
