"""The small device functions that emitted code calls, each with its dependencies.

They are written in plain C with integer arithmetic where a rounding matters, so that a C++ compiler for the CPU gives
the same bits; a GPU has instructions for two of them.  Only those in use are printed, in the order of this table.
"""

from __future__ import annotations

from collections.abc import Iterable

from opgen.codegen.cuda.helper import Helper
from opgen.codegen.cuda.small import small_conversions
from opgen.codegen.cuda.types import VALUE_TYPES, literal
from opgen.dtypes import DTYPES, DType

_INTS = {VALUE_TYPES[d]: d for d in DTYPES.values() if d.is_int and not d.is_stored}
_FLOATS = ("f32", "f64")


def _arithmetic() -> dict[str, Helper]:
    table: dict[str, Helper] = {}
    for t, dtype in _INTS.items():
        two = f"{t} a, {t} b"
        wide = "u32" if dtype.bits <= 32 else "u64"
        for name, sign in (("add", "+"), ("sub", "-"), ("mul", "*")):
            body = f"return ({t})(({wide})a {sign} ({wide})b);"
            table[f"{name}_{t}"] = Helper(t, two, body, f"a {sign} b modulo 2^{dtype.bits}.")
        table[f"min_{t}"] = Helper(t, two, "return a <= b ? a : b;")
        table[f"max_{t}"] = Helper(t, two, "return a >= b ? a : b;")
        table |= _of_elements(t, dtype)
        if not dtype.signed:
            table[f"floordiv_{t}"] = Helper(t, two, "return b == 0 ? a : a / b;")
            table[f"mod_{t}"] = Helper(t, two, "return b == 0 ? 0 : a % b;")
            continue
        table[f"floordiv_{t}"] = Helper(
            t,
            two,
            f"if (b == -1) return sub_{t}(0, a);\nif (b == 0) return a;\n"
            "return a / b - (a % b != 0 && (a < 0) != (b < 0));",
            "The quotient rounded towards minus infinity.",
            (f"sub_{t}",),
        )
        table[f"mod_{t}"] = Helper(
            t,
            two,
            f"if (b == -1 || b == 0) return 0;\nconst {t} r = a % b;\nreturn r != 0 && (r < 0) != (b < 0) ? r + b : r;",
            "The remainder with the sign of the divisor.",
        )
        table[f"abs_{t}"] = Helper(t, f"{t} a", f"return a < 0 ? sub_{t}(0, a) : a;", needs=(f"sub_{t}",))
    for t in _FLOATS:
        two = f"{t} a, {t} b"
        table[f"min_{t}"] = Helper(t, two, "return a <= b || a != a ? a : b;", "A NaN in either operand is the result.")
        table[f"max_{t}"] = Helper(t, two, "return a >= b || a != a ? a : b;", "A NaN in either operand is the result.")
    return table


def _of_elements(t: str, dtype: DType) -> dict[str, Helper]:
    """Return the operations that have a value for every second operand."""
    two, bits, wide = f"{t} a, {t} b", dtype.bits, "u32" if dtype.bits <= 32 else "u64"
    inside = f"b >= 0 && b < {bits}" if dtype.signed else f"b < {bits}"
    minus = f"if (b == -1) return sub_{t}(0, a);\n" if dtype.signed else ""
    below = "if (b < 0 && a != 1 && a != -1) return 0;\n" if dtype.signed else ""
    return {
        f"quot_{t}": Helper(
            t, two, f"{minus}return b == 0 ? 0 : a / b;", "Rounded towards 0.", (f"sub_{t}",) if dtype.signed else ()
        ),
        f"rem_{t}": Helper(
            t, two, f"return b == 0{' || b == -1' if dtype.signed else ''} ? 0 : a % b;", "With the sign of a."
        ),
        f"shl_{t}": Helper(t, two, f"return {inside} ? ({t})(({wide})a << b) : 0;", "0 if all bits are shifted out."),
        f"shr_{t}": Helper(
            t, two, f"return a >> ({inside} ? b : {bits - 1});" if dtype.signed else f"return {inside} ? a >> b : 0;"
        ),
        f"pow_{t}": Helper(
            t,
            two,
            f"{below}{wide} total = 1, square = ({wide})a;\n"
            f"for ({wide} rest = ({wide})b; rest != 0; rest >>= 1) {{\n"
            "    if (rest & 1) total *= square;\n    square *= square;\n}\n"
            f"return ({t})total;",
            f"Modulo 2^{bits}; with a negative exponent rounded towards 0, and 0 of 0.",
        ),
    }


def _saturating() -> dict[str, Helper]:
    table: dict[str, Helper] = {}
    for t, dtype in _INTS.items():
        for f in _FLOATS:
            suffix = "f" if f == "f32" else ""
            body = (
                f"if (x != x) return 0;\n"
                f"if (x >= {dtype.greatest + 1}.0{suffix}) return {literal(dtype.greatest, dtype)};\n"
                f"if (x < {dtype.least}.0{suffix}) return {literal(dtype.least, dtype)};\n"
                f"return ({t})x;"
            )
            table[f"{t}_from_{f}"] = Helper(t, f"{f} x", body, "Truncates and saturates; a NaN gives 0.")
    return table


def _of_bits() -> dict[str, Helper]:
    table: dict[str, Helper] = {}
    for f, bits, signed in (("f32", "float_as_int", "i32"), ("f64", "double_as_longlong", "i64")):
        made, _, taken = bits.partition("_as_")
        for t in (signed, f"u{signed[1:]}"):
            table[f"{t}_of_bits_of_{f}"] = Helper(t, f"{f} x", f"return ({t})__{bits}(x);")
            table[f"{f}_of_bits_of_{t}"] = Helper(f, f"{t} n", f"return __{taken}_as_{made}(({signed})n);")
    return table


_CONVERSIONS = {
    "f32_from_bf16": Helper("f32", "bf16 h", "return __int_as_float((i32)((u32)h << 16));"),
    "f32_from_f16": Helper(
        "f32",
        "f16 h",
        """const u32 sign = (u32)(h & 0x8000) << 16;
const u32 magnitude = (u32)(h & 0x7fff) << 13;
if (magnitude >= 0x0f800000u) return __int_as_float((i32)(sign | 0x70000000u | magnitude));
const f32 scaled = __int_as_float((i32)magnitude) * 5.192296858534828e+33f;
return __int_as_float((i32)(sign | (u32)__float_as_int(scaled)));""",
        "Exact; the product with 2^112 moves the exponent's bias and makes denormals normal.",
        on_device='f32 x;\nasm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));\nreturn x;',
    ),
    "bf16_from_f32": Helper(
        "bf16",
        "f32 x",
        """const u32 bits = (u32)__float_as_int(x);
if (x != x) return (bf16)(bits >> 16 | 0x40);
return (bf16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);""",
        "Rounds to nearest even; a NaN stays a NaN.",
    ),
    "f16_from_f32": Helper(
        "f16",
        "f32 x",
        """const u32 bits = (u32)__float_as_int(x);
const u32 sign = bits >> 16 & 0x8000;
const u32 magnitude = bits & 0x7fffffff;
if (magnitude > 0x7f800000u) return (f16)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
if (magnitude >= 0x47800000u) return (f16)(sign | 0x7c00);
if (magnitude >= 0x38800000u) return (f16)(sign | ((magnitude - 0x38000000u + 0xfff + (magnitude >> 13 & 1)) >> 13));
const f32 aligned = __int_as_float((i32)magnitude) + 0.5f;
return (f16)(sign | ((u32)__float_as_int(aligned) - 0x3f000000u));""",
        "Rounds to nearest even; a NaN stays a NaN.  Adding 0.5 puts a denormal's last bit in the last place.",
        on_device='f16 h;\nasm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));\nreturn h;',
    ),
    "f32_odd_from_f64": Helper(
        "f32",
        "f64 x",
        """const f32 nearest = (f32)x;
if (x != x || (f64)nearest == x) return nearest;
const f64 back = (f64)nearest;
const bool beyond = (back < 0.0 ? -back : back) > (x < 0.0 ? -x : x);
return __int_as_float((__float_as_int(nearest) - (beyond ? 1 : 0)) | 1);""",
        "Rounds to odd: an inexact result has its last bit set, so that rounding it again rounds x once.",
    ),
    "f16_from_f64": Helper(
        "f16", "f64 x", "return f16_from_f32(f32_odd_from_f64(x));", needs=("f16_from_f32", "f32_odd_from_f64")
    ),
    "bf16_from_f64": Helper(
        "bf16", "f64 x", "return bf16_from_f32(f32_odd_from_f64(x));", needs=("bf16_from_f32", "f32_odd_from_f64")
    ),
    "f64_odd_from_i64": Helper(
        "f64",
        "i64 n",
        """if (n > -(1LL << 53) && n < (1LL << 53)) return (f64)n;
const u64 bits = (u64)n;
return (f64)(i64)((bits & ~0xfffULL) | ((bits & 0xfffULL) != 0 ? 0x800ULL : 0));""",
        "Exact, or between the two nearest: the low bits only leave a mark that they are not all 0.",
    ),
    "f64_odd_from_u64": Helper(
        "f64",
        "u64 n",
        """if (n < (1ULL << 53)) return (f64)n;
return (f64)((n & ~0xfffULL) | ((n & 0xfffULL) != 0 ? 0x800ULL : 0));""",
        "Exact, or between the two nearest: the low bits only leave a mark that they are not all 0.",
    ),
}

HELPERS: dict[str, Helper] = _arithmetic() | _saturating() | _of_bits() | _CONVERSIONS | small_conversions()


def render_helpers(used: Iterable[str]) -> list[str]:
    """Return the definitions of the helpers in use and of those they call, in the table's order."""
    wanted: set[str] = set()
    queue = list(used)
    while queue:
        name = queue.pop()
        if name not in wanted:
            wanted.add(name)
            queue.extend(HELPERS[name].needs)
    return [helper.render(name) for name, helper in HELPERS.items() if name in wanted]
