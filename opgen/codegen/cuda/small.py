"""Device functions that convert numbers of at most 8 bits, with the results of `codegen.llvm.small`, bit for bit."""

from __future__ import annotations

import struct

from opgen.codegen.cuda.helper import Helper
from opgen.codegen.cuda.types import VALUE_TYPES
from opgen.dtypes import DTYPES, DType, Small


def small_conversions() -> dict[str, Helper]:
    """Return the conversions of all such types: floating ones via float32, integers via those of 8 bits."""
    table: dict[str, Helper] = {}
    for dtype in DTYPES.values():
        t = VALUE_TYPES[dtype]
        if dtype.small is not None:
            exact = "Exact; the product moves the exponent's bias and makes denormals normal."
            rounds = "Rounds to nearest; of a denormal the sum puts the last bit in the last place."
            table[f"f32_from_{t}"] = Helper("f32", f"{t} h", _widening(dtype.small), exact)
            table[f"{t}_from_f32"] = Helper(t, "f32 x", _narrowing(t, dtype.small), rounds)
            needs = (f"{t}_from_f32", "f32_odd_from_f64")
            table[f"{t}_from_f64"] = Helper(t, "f64 x", f"return {t}_from_f32(f32_odd_from_f64(x));", needs=needs)
        elif dtype.is_int and dtype.is_stored:
            table |= _integers(t, dtype)
    return table


def _integers(t: str, dtype: DType) -> dict[str, Helper]:
    wide, spare, mask = VALUE_TYPES[dtype.compute_type], 8 - dtype.digits, (1 << dtype.digits) - 1
    return {
        f"{wide}_from_{t}": Helper(
            wide, f"{t} h", f"return ({wide})(({wide})(h << {spare}) >> {spare});", "The lowest bits count."
        ),
        f"{t}_from_{wide}": Helper(t, f"{wide} n", f"return ({t})(n & {mask});", f"Modulo 2^{dtype.digits}."),
        **{
            f"{t}_from_{f}": Helper(
                t,
                f"{f} x",
                f"if (x != x) return 0;\n"
                f"if (x >= {dtype.greatest}) return ({t}){dtype.greatest};\n"
                f"if (x <= {dtype.least}) return ({t}){dtype.least & mask};\n"
                f"return ({t})((i32)x & {mask});",
                "Truncates and saturates; a NaN gives 0.",
            )
            for f in ("f32", "f64")
        },
    }


def _bits(exponent: int) -> str:
    """Return the bits of the float32 2**exponent."""
    return f"0x{struct.unpack('<I', struct.pack('<f', 2.0**exponent))[0]:08x}"


_NAN, _INFINITY = "__int_as_float(0x7fc00000)", "0x7f800000u"


def _widening(small: Small) -> str:
    if not small.signed:
        return f"""if (h == 0xff) return {_NAN};
return __int_as_float(h == 0 ? 0x00400000 : (i32)h << 23);"""
    top = small.exponent + small.fraction
    special = ""
    if small.one_zero:
        special = f"if (h == 0x{1 << top:x}) return {_NAN};\n"
    elif small.nan is not None:
        nan = small.nan - (small.nan != small.overflow)
        infinite = f"{_INFINITY}" if small.nan != small.overflow else "0x7fc00000u"
        special = (
            f"if (magnitude >= 0x{nan:x}) return __int_as_float((i32)(sign | 0x7fc00000u));\n"
            f"if (magnitude >= 0x{small.overflow:x}) return __int_as_float((i32)(sign | {infinite}));\n"
        )
    return f"""const u32 magnitude = h & 0x{(1 << top) - 1:x};
const u32 sign = (u32)(h & 0x{1 << top:x}) << {31 - top};
{special}const f32 scaled = __int_as_float((i32)(magnitude << {23 - small.fraction})) \
    * __int_as_float({_bits(127 - small.bias)});
return __int_as_float((i32)(sign | (u32)__float_as_int(scaled)));""".replace(" \\\n    ", " ")


def _narrowing(t: str, small: Small) -> str:
    if not small.signed:
        return f"""const u32 bits = (u32)__float_as_int(x);
if (bits == 0x80000000u) return ({t})0;
if (bits < 0x00800000u) return ({t})(bits >= 0x00600000u);
if (bits >= 0x7f400000u) return ({t})0xff;
return ({t})((bits + 0x00400000u) >> 23);"""
    top, shift = small.exponent + small.fraction, 23 - small.fraction
    greatest = small.overflow - (small.nan is not None)
    least, aligning = 1 - small.bias, 24 - small.bias - small.fraction
    nan = f"({t})0x{small.nan or 0:x}" if small.one_zero or small.nan is None else f"({t})(sign | 0x{small.nan:x})"
    if small.nan is None:
        nan = f"({t})0"
    zero = f"if (code == 0) return ({t})0;\n" if small.one_zero else ""
    return f"""const u32 bits = (u32)__float_as_int(x);
const u32 sign = bits >> {31 - top} & 0x{1 << top:x};
const u32 magnitude = bits & 0x7fffffff;
if (x != x) return {nan};
const f32 aligned = __int_as_float((i32)magnitude) + __int_as_float({_bits(aligning)});
const u32 code = magnitude < {_bits(least)}u
    ? (u32)__float_as_int(aligned) - {_bits(aligning)}u
    : (magnitude - 0x{127 - small.bias << 23:08x}u
       + 0x{(1 << shift - 1) - 1:x} + (magnitude >> {shift} & 1)) >> {shift};
{zero}return ({t})(sign | (code > 0x{greatest:x} ? 0x{small.overflow:x} : code));"""
