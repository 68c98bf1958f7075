"""Names: those that a spec may use, and the name of an op's function."""

from __future__ import annotations

import builtins

from opgen.diagnostics import Span
from opgen.spec.resolve import words
from opgen.spec.resolve.c_library import C_LIBRARY, HEADERS
from opgen.spec.syntax.report import Report

_BUILTINS = frozenset(n for n in dir(builtins) if not n.startswith("_"))


def why_illegal(name: str) -> str | None:
    """Return the reason a name cannot be used in a spec, completing "'x' is ..."; None if it can."""
    return "a word of the spec language" if name in words.SPEC else why_illegal_outside(name)


def why_illegal_outside(name: str) -> str | None:
    """Return the reason a name cannot be used in code of one of the other languages; None if it can."""
    reasons = (
        (name in words.TYPES, "the name of a type"),
        (name in words.PYTHON, "a keyword of Python"),
        (name in words.GENERATED, "a name that generated code uses itself"),
    )
    found = next((reason for holds, reason in reasons if holds), None) or why_illegal_in_c(name)
    return found or ("a keyword of Java" if name in words.JAVA else None)


def why_illegal_in_c(name: str) -> str | None:
    """Return the reason an identifier cannot be a name in C and C++, completing "'x' is ..."; None if it can."""
    if name in words.C or name in words.CPP:
        return "a word that C or C++ keeps for itself"
    if name.startswith("_") or "__" in name:
        return "not usable: names that begin with '_' or hold '__' are reserved in C and C++"
    if name in words.C_MACROS or words.C_MACRO_FAMILIES.fullmatch(name):
        return "a macro or type of C's headers"
    return None


def why_no_prefix(prefix: str) -> str | None:
    """Return the reason a prefix cannot begin a C or C++ library's names, headers and namespace; None if it can."""
    if not (prefix.isascii() and prefix.isidentifier()):
        return "no name in C"
    if prefix in HEADERS:
        return "the name of a header of C's"
    if prefix in C_LIBRARY or prefix in words.CPP_API:
        return "a name that C's or C++'s library declares"
    for name in sorted(words.C_PREFIXED):
        if name in (f"{prefix.upper()}_{name.rpartition('_')[2]}", f"{prefix}_{name.rpartition('_')[2]}"):
            return f"not usable: the library's {name} would be one of C's headers"
    return why_illegal_in_c(prefix)


def why_no_module(name: str) -> str | None:
    """Return the reason a generated Python module cannot have a name, completing "'x' ..."; None if it can."""
    if not name.isidentifier() or name in words.PYTHON:
        return "cannot be the name of a Python module"
    return "would hide a module of Python's" if name in words.PYTHON_MODULES else None


def check_name(report: Report, name: str, span: Span) -> bool:
    """Note a name that generated code cannot use; return True if it is fine."""
    reason = why_illegal(name)
    if reason is not None:
        report.add("S010", f"'{name}' is {reason}", span, "choose another name")
    return reason is None


def check_result(report: Report, name: str, span: Span) -> bool:
    """Check a name as `check_name`, for an argument or result: it shares its scope with the interface's names."""
    fine = check_name(report, name, span)
    if fine and name in words.CPP_API:
        report.add("S010", f"'{name}' is a name of the C++ interface's own", span, "choose another name")
    return fine and name not in words.CPP_API


def check_argument(report: Report, name: str, span: Span) -> None:
    """Check a name as `check_result`, for an argument: it must also differ from the generated module's names."""
    if check_result(report, name, span) and name in words.MODULE:
        message = f"'{name}' is a name that the generated module uses itself"
        report.add("S010", message, span, "choose another name")


def check_word(report: Report, word: str, span: Span) -> bool:
    """Check a word of an enumeration, which generated code has as a string and as an enumerator."""
    kept = words.PYTHON | words.C | words.CPP | words.JAVA | {"NULL", "inf", "nan"}
    if word in kept:
        report.add("S010", f"'{word}' is a keyword in Python, C, C++ or Java", span, "choose another word")
    return word not in kept


def check_function_name(report: Report, op: str, span: Span) -> None:
    """Note an op whose function or class would hide a name that code relies on, and so would be renamed."""
    message = _why_no_function(op)
    if message is not None:
        report.add("S010", message, span, "choose another name")


def why_no_op(name: str) -> str | None:
    """Return the reason an op cannot have a name; None if it can."""
    reason = why_illegal(name)
    return _why_no_function(name) if reason is None else f"'{name}' is {reason}"


def _why_no_function(op: str) -> str | None:
    function = snake_case(op)
    if function in _BUILTINS and why_illegal_outside(function) is None:
        return f"the function of '{op}' would hide Python's built-in '{function}'"
    if function in words.MODULE and why_illegal_outside(function) is None:
        return f"the function of '{op}' would have a name that the generated module uses itself, '{function}'"
    if function in words.C_API | words.CPP_API and why_illegal(function) is None:
        return f"the function of '{op}' would have a name of the C or C++ interface's own, '{function}'"
    if op in words.MODULE | words.CPP_API | words.CPP_MEMBERS | words.JAVA_LANG and why_illegal(op) is None:
        return f"the class of '{op}' would hide one that generated code uses"
    reason = None if function == op else why_illegal_outside(function)
    return None if reason is None else f"'{function}' is {reason}"


def snake_case(name: str) -> str:
    """Return the name of an op's function by TensorFlow's rule: `HalfTurn` is half_turn, `FFT2D` is fft2d.

    An underscore is inserted before a capital that is next to a small letter on either side.
    """
    out = []
    for at, letter in enumerate(name):
        if letter.isupper() and at > 0 and (name[at - 1].islower() or name[at + 1 : at + 2].islower()):
            out.append("_")
        out.append(letter.lower())
    return "".join(out)
