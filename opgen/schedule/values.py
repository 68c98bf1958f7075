"""Types of the fields of a step: each reads its word in the text of a schedule and prints it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias, cast

from opgen.diagnostics import DiagnosticError, Span, did_you_mean
from opgen.loop.nodes import INDEX, Expr
from opgen.loop.print import print_expr
from opgen.schedule.errors import ScheduleError

DIGITS = 9
"""Largest number of digits: a product of two such numbers is far from the end of 64 bits."""
NAME = re.compile(r"[A-Za-z_][\w.]*")
NUMBER = re.compile(r"-?\d+")


@dataclass(frozen=True)
class Word:
    """A word of a text, or several that are read as one."""

    text: str
    span: Span


class Value:
    """A type of fields."""

    usage: str = ""
    """Word for a value of the type in messages about a step's syntax; the field's name if empty."""

    def read(self, word: Word, field: str) -> object:
        """Return the value of a word; raises ScheduleError with its place.  `field` names the field in messages."""
        return word.text

    def show(self, value: object) -> str:
        """Return the word of a value."""
        return str(value)


class Loop(Value):
    """The name of a loop of the kernel."""

    usage = "LOOP"


class Buffered(Value):
    """The name of a buffer of the kernel."""

    usage = "BUFFER"


@dataclass(frozen=True)
class Made(Value):
    """A name for a loop or buffer that the step makes, or an end of such names; these stand after the arrow.

    `default` is the name if the text gives none, with the words of other fields in braces.
    """

    default: str | None = None
    usage: str = "NAME"

    def read(self, word: Word, field: str) -> str:
        if not (word.text.isascii() and word.text.isidentifier()):
            raise ScheduleError(f"'{word.text}' is not a name", span=word.span)
        return word.text


@dataclass(frozen=True)
class Number(Value):
    """An integer of a few digits."""

    usage: str = "NUMBER"

    def read(self, word: Word, field: str) -> int:
        if not NUMBER.fullmatch(word.text):
            raise ScheduleError(f"'{word.text}' is not an integer", span=word.span)
        if len(word.text.lstrip("-")) > DIGITS:
            raise ScheduleError(f"'{word.text}' is too large", f"a number has up to {DIGITS} digits", word.span)
        return int(word.text)


@dataclass(frozen=True)
class OneOf(Value):
    """A word among a few."""

    choices: tuple[str, ...]

    def read(self, word: Word, field: str) -> str:
        return _choice(word, self.choices, field)


class Truth(Value):
    """True or false."""

    usage = "true"

    def read(self, word: Word, field: str) -> bool:
        return _choice(word, ("true", "false"), "truth value") == "true"

    def show(self, value: object) -> str:
        return str(value).lower()


class Condition(Value):
    """An expression of the loop IR, over parameters of the kernel."""

    def read(self, word: Word, field: str) -> Expr:
        from opgen.loop.parse import parse_expr  # brings the parser's tables, which nothing else here needs

        try:
            return parse_expr(word.text, dict.fromkeys(NAME.findall(word.text), INDEX))
        except DiagnosticError as error:
            reason = error.diagnostics[0].message
            raise ScheduleError(f"'{word.text}' is not a condition: {reason}", span=word.span) from None

    def show(self, value: object) -> str:
        return print_expr(cast(Expr, value))


def _choice(word: Word, known: Sequence[str], what: str) -> str:
    if word.text not in known:
        hint = did_you_mean(word.text, known) or f"it is one of {', '.join(known)}"
        raise ScheduleError(f"there is no {what} '{word.text}'", hint, word.span)
    return word.text


LoopName: TypeAlias = Annotated[str, Loop()]
BufferName: TypeAlias = Annotated[str, Buffered()]
NewName: TypeAlias = Annotated[str, Made()]
Dimension: TypeAlias = Annotated[int, Number("DIMENSION")]
