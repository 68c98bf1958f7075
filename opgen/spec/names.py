"""Names: which a spec may use, and what an op's function is called."""

from __future__ import annotations

import builtins
import keyword

from opgen.diagnostics import Span
from opgen.dtypes import ALIASES, DTYPES
from opgen.spec.report import Report

_LANGUAGE_WORDS = """
import function fragment let require return where if then else and or not in true false sum prod max min present
ceildiv pow exp log sqrt tanh erf sin cos floor ceil round abs layout enum alias compatibility deprecated
shape_only like inf nan
"""
_C_WORDS = """
alignas alignof and_eq asm atomic_cancel atomic_commit atomic_noexcept auto bitand bitor bool break case catch
char char8_t char16_t char32_t class co_await co_return co_yield compl concept const const_cast consteval
constexpr constinit continue decltype default delete do double dynamic_cast else enum explicit export extern
false final float for friend goto if inline int long main mutable namespace new noexcept not not_eq nullptr
operator or or_eq override private protected public register reinterpret_cast requires restrict return short
signed sizeof static static_assert static_cast struct switch synchronized template this thread_local throw true
try typedef typeid typename typeof union unsigned using virtual void volatile wchar_t while xor xor_eq NULL EOF
INFINITY NAN HUGE_VAL M_PI M_E assert errno stdin stdout stderr signbit isnan isinf isfinite linux unix
threadIdx blockIdx blockDim gridDim warpSize size_t ptrdiff_t int8_t int16_t int32_t int64_t uint8_t uint16_t
uint32_t uint64_t std
"""
_LANGUAGE = frozenset(_LANGUAGE_WORDS.split())
_PYTHON = frozenset({*keyword.kwlist, *keyword.softkwlist} - {"type", "_"})
_C = frozenset(_C_WORDS.split())
_GENERATED = frozenset({"self", "cls", "out", "name", "np", "numpy", "opgen", "raw_ops", "typing", "annotations"})
_TYPES = frozenset({*DTYPES, *ALIASES, "int"})

_BUILTINS = frozenset(n for n in dir(builtins) if not n.startswith("_"))


def why_illegal(name: str) -> str | None:
    """Why a name cannot be used in a spec, completing "'x' is ..."; None if it can."""
    reasons = (
        (name in _LANGUAGE, "a word of the spec language"),
        (name in _TYPES, "the name of a type"),
        (name in _PYTHON, "a keyword of Python"),
        (name in _GENERATED, "a name that generated code uses itself"),
    )
    return next((reason for holds, reason in reasons if holds), None) or why_illegal_in_c(name)


def why_illegal_in_c(name: str) -> str | None:
    """Why what looks like a name cannot be one in C and C++, completing "'x' is ..."; None if it can."""
    if name in _C:
        return "a word that C or C++ keeps for itself"
    if name.startswith("_") or "__" in name:
        return "not usable: names that begin with '_' or hold '__' are reserved in C and C++"
    return None


def check_name(report: Report, name: str, span: Span) -> bool:
    """Notes a name that generated code could not hold; whether it is fine."""
    reason = why_illegal(name)
    if reason is not None:
        report.add("S010", f"'{name}' is {reason}", span, "choose another name")
    return reason is None


def check_word(report: Report, word: str, span: Span) -> bool:
    """The same for a word of an enumeration, which generated code holds as a string and as an enumerator."""
    if word in _PYTHON or word in _C or word in ("true", "false", "inf", "nan"):
        report.add("S010", f"'{word}' is a keyword in Python, C or C++", span, "choose another word")
        return False
    return True


def check_function_name(report: Report, op: str, span: Span) -> None:
    """Notes an op whose function would hide one of Python's own."""
    function = snake_case(op)
    if function in _BUILTINS and why_illegal(function) is None:
        report.add(
            "S010", f"the function of '{op}' would hide Python's built-in '{function}'", span, "choose another name"
        )
    elif function != op:
        check_name(report, function, span)


def snake_case(name: str) -> str:
    """The function of an op, by TensorFlow's rule: `HalfTurn` is half_turn, `FFT2D` is fft2d.

    An underscore goes before a capital that follows a small letter, or that a small letter follows.
    """
    out = []
    for at, letter in enumerate(name):
        if letter.isupper() and at > 0 and (name[at - 1].islower() or name[at + 1 : at + 2].islower()):
            out.append("_")
        out.append(letter.lower())
    return "".join(out)
