"""Colours for what is printed on a terminal; plain text everywhere else."""

from __future__ import annotations

import os
import sys
from typing import ClassVar, TypeAlias

from pygments import highlight
from pygments.formatters import Terminal256Formatter
from pygments.lexer import Lexer, RegexLexer, words
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Keyword, Name, Number, Operator, String, Text

from opgen.dtypes import ALIASES, DTYPES
from opgen.schedule.steps import PRIMITIVES
from opgen.spec.generic.lists import LISTS, SINGLE
from opgen.spec.generic.types import PREDICATES
from opgen.spec.resolve.scalars import PAIR_FUNCTIONS, SCALAR_FUNCTIONS

STYLE = "monokai"


SPEC_KEYWORDS = (
    "op fragment function import use type input output attr let require signature example specialize gradient layout "
    "compatibility optional alias deprecated if then else and or not in return of with respect to inputs outputs "
    "static rank versions each one more"
)
_LISTS = [*LISTS, *SINGLE, *PREDICATES, "rank", "count"]
SPEC_FUNCTIONS = " ".join(
    [
        "sum prod max min argmax argmin ascending descending ceildiv pow present fma bit_cast",
        *SCALAR_FUNCTIONS,
        *PAIR_FUNCTIONS,
        *_LISTS,
    ]
)
SPEC_TYPES = " ".join([*ALIASES, *DTYPES, "int", "enum"])
LOOP_KEYWORDS = "kernel for in if else let alloc barrier input output assume param"
LOOP_KINDS = "ordered parallel vector unroll tile serial global heap stack streamed register shared mask"
LOOP_TYPES = rf"({'|'.join(DTYPES)})(x\d+)?\b"
NUMBER = r"\d+(\.\d+)?([eE][+-]?\d+)?"

Rules: TypeAlias = "dict[str, list[tuple[object, ...]]]"


def any_of(names: str) -> words:
    return words(names.split(), prefix=r"\b", suffix=r"\b")


class SpecLexer(RegexLexer):
    """The spec language."""

    name = "opgen spec"
    tokens: ClassVar[Rules] = {
        "root": [
            (r'"""', String.Doc, "doc"),
            (r'"(\\.|[^"\\])*"', String),
            (r"#.*", Comment),
            (any_of(SPEC_KEYWORDS), Keyword),
            (any_of(SPEC_FUNCTIONS), Name.Builtin),
            (any_of(SPEC_TYPES), Keyword.Type),
            (NUMBER, Number),
            (r"\w+", Name),
            (r"\s+", Text),
            (r".", Operator),
        ],
        "doc": [(r'"""', String.Doc, "#pop"), (r'[^"]+|"', String.Doc)],
    }


class LoopLexer(RegexLexer):
    """Loop IR, and schedules, which are calls of named primitives."""

    name = "opgen loop IR"
    tokens: ClassVar[Rules] = {
        "root": [
            (r"(#|//).*", Comment),
            (r"'[^']*'|\"[^\"]*\"", String),
            (rf"^({'|'.join(PRIMITIVES)})\b", Name.Function),
            (any_of(LOOP_KEYWORDS), Keyword),
            (any_of(LOOP_KINDS), Keyword.Reserved),
            (r"(block|thread)\.[xyz]\b", Keyword.Reserved),
            (LOOP_TYPES, Keyword.Type),
            (r"[A-Za-z_]\w*(?=\()", Name.Function),
            (NUMBER, Number),
            (r"\w+", Name),
            (r"\s+", Text),
            (r".", Operator),
        ]
    }


def lexer(language: str) -> Lexer:
    """Return the lexer of a language: "spec", "loop", or one that pygments knows."""
    if language == "spec":
        return SpecLexer()
    return LoopLexer() if language == "loop" else get_lexer_by_name(language)


def wants_colors() -> bool:
    """Return True if stdout is a terminal that should show colours (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def colored(text: str, language: str) -> str:
    """Return the text with the colours of its language; only colours are added."""
    return str(highlight(text, lexer(language), Terminal256Formatter(style=STYLE)))
