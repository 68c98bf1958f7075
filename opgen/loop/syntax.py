"""Syntax shared by the printer and the parser of loop IR listings: operators, precedence, literals, names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from opgen.dtypes import DTYPES, DType
from opgen.loop.nodes import BinaryOp, CompareOp, Function, Type, UnaryOp


@dataclass(frozen=True)
class Level:
    """Operators of equal precedence.  Binary ones group to the left, comparisons do not chain, unary ones precede."""

    kind: Literal["binary", "compare", "unary"]
    tokens: dict[str, str]


LEVELS: tuple[Level, ...] = (
    Level("binary", {"or": "or"}),
    Level("binary", {"xor": "xor"}),
    Level("binary", {"and": "and"}),
    Level("unary", {"not": "not"}),
    Level("compare", {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}),
    Level("binary", {"add": "+", "sub": "-"}),
    Level("binary", {"mul": "*", "div": "/", "floordiv": "//", "mod": "%"}),
    Level("unary", {"neg": "-"}),
)
"""The precedence table, loosest first."""

ATOM = len(LEVELS)
"""Precedence of an expression that needs no parentheses anywhere."""

PRECEDENCE = {op: number for number, level in enumerate(LEVELS) for op in level.tokens}
TOKENS = {op: token for level in LEVELS for op, token in level.tokens.items()}

CALLED: tuple[BinaryOp, ...] = ("min", "max", "quot", "rem", "shl", "shr")
"""The binary operations that are written as functions."""

BINARY_BY_TOKEN: dict[str, BinaryOp] = {
    "or": "or",
    "xor": "xor",
    "and": "and",
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "div",
    "//": "floordiv",
    "%": "mod",
    **{name: name for name in CALLED},
}
COMPARE_BY_TOKEN: dict[str, CompareOp] = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
UNARY_BY_TOKEN: dict[str, UnaryOp] = {"not": "not", "-": "neg"}

FUNCTIONS: dict[str, tuple[Function, int]] = {
    "fma": ("fma", 3),
    "exp": ("exp", 1),
    "log": ("log", 1),
    "sqrt": ("sqrt", 1),
    "tanh": ("tanh", 1),
    "erf": ("erf", 1),
    "pow": ("pow", 2),
    "sin": ("sin", 1),
    "cos": ("cos", 1),
    "atan": ("atan", 1),
    "floor": ("floor", 1),
    "ceil": ("ceil", 1),
    "round": ("round", 1),
    "abs": ("abs", 1),
}
"""The scalar functions and how many arguments each takes."""

BIT_CAST = "bit_cast_"
"""Prefix of the type in `bit_cast_float32x16(x)`."""

SUFFIXES = {
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
    "i4": "int4", "u4": "uint4", "i2": "int2", "u2": "uint2", "f4e2m1": "float4_e2m1fn", "f8e8m0": "float8_e8m0fnu",
    "f8e4m3": "float8_e4m3fn", "f8e4m3z": "float8_e4m3fnuz", "f8e5m2": "float8_e5m2", "f8e5m2z": "float8_e5m2fnuz",
}  # fmt: skip
SUFFIX_OF = {name: suffix for suffix, name in SUFFIXES.items()}

_SUFFIX = rf"(?:{'|'.join(sorted(SUFFIXES, reverse=True))})(?:x[0-9]{{1,4}})?"
LITERAL = (
    rf"(?:(?:true|false)(?:_x[0-9]{{1,4}})?|(?:inf|nan)_{_SUFFIX}"
    rf"|[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?:{_SUFFIX})?)(?![A-Za-z0-9_])"
)
"""A constant without its sign: `3`, `3i32`, `0.5f32x16`, `inf_f64`, `true`, `false_x8`."""

_STATEMENTS = (
    "kernel",
    "assume",
    "for",
    "in",
    "let",
    "alloc",
    "if",
    "else",
    "pass",
    "barrier",
    "check",
    "prefetch",
    "block",
)
_WORDS = ("ordered", "parallel", "unroll", "vector", "and", "or", "xor", "not")
RESERVED = frozenset(_STATEMENTS + _WORDS)
"""Words that a name must be quoted to be."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LITERAL = re.compile(LITERAL)


def is_plain_name(name: str) -> bool:
    """Return True if a listing shows a name without back quotes."""
    return bool(_NAME.fullmatch(name)) and name not in RESERVED and not _LITERAL.fullmatch(name)


def parse_type(text: str) -> Type | None:
    """Return the type that `float32` or `float32x16` names, or None."""
    if text in DTYPES:
        return Type(DTYPES[text])
    name, _, lanes = text.rpartition("x")
    known = name in DTYPES and lanes.isdecimal() and not lanes.startswith("0") and len(lanes) <= 4
    return Type(DTYPES[name], int(lanes)) if known else None


def literal_type(suffix: str) -> Type | None:
    """Return the type that a literal's suffix (`f32`, `i32x8`) names, or None."""
    name, _, lanes = suffix.partition("x")
    dtype: DType | None = DTYPES.get(SUFFIXES.get(name, ""))
    return None if dtype is None else Type(dtype, int(lanes or 1))
