"""Places in source text, and the errors that name them.

Errors belong to one of two families, by whose fault they are:

* `UserError`: a mistake in a spec, a schedule, a listing or a call.  It has a code, a place, and the expected form.
* `InternalError`: an invariant of opgen itself is broken; it is a bug in opgen, never in its input.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from opgen.locks import cached_property


@dataclass(frozen=True)
class Source:
    """A named text, so that a place in it can be shown."""

    name: str
    text: str = field(repr=False)

    @cached_property
    def lines(self) -> list[str]:
        """The lines, without their newlines."""
        return self.text.split("\n")

    def line(self, number: int) -> str:
        """Return the text of a line, counted from 1, without its newline."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""


@dataclass(frozen=True)
class Span:
    """A stretch of a source: lines and columns are counted from 1, the end is exclusive."""

    source: Source
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}"

    def through(self, other: Span) -> Span:
        """Return the stretch from the start of this span to the end of the other."""
        return Span(self.source, self.line, self.column, other.end_line, other.end_column)


@dataclass(frozen=True)
class Diagnostic:
    """One mistake: a stable code, a sentence, a place, and a remedy."""

    code: str
    message: str
    span: Span | None = None
    help: str | None = None

    def __post_init__(self) -> None:
        from opgen.diagnostics.codes import CODES

        if self.code not in CODES:
            raise InternalError(f"the code '{self.code}' is not declared")

    def render(self) -> str:
        """Return the message as a compiler prints it: place, sentence, the line itself, a caret, the remedy."""
        if self.span is None:
            head = f"error[{self.code}]: {self.message}"
            return head if self.help is None else f"{head}\n  = help: {self.help}"
        span = self.span
        line = span.source.line(span.line)
        last = span.end_column if span.end_line == span.line else len(line) + 1
        gutter = " " * len(str(span.line))
        shown, start, width = _window(line, span.column - 1, max(1, last - span.column))
        caret = " " * start + "^" * width
        rows = [
            f"{span}: error[{self.code}]: {self.message}",
            f" {gutter} |",
            f" {span.line} | {shown}",
            f" {gutter} | {caret}",
        ]
        if self.help is not None:
            rows.append(f" {gutter} = help: {self.help}")
        return "\n".join(rows)


_WIDEST = 200
"""Columns of a line that are shown whole; of a longer one, a stretch around the place."""


def _window(line: str, start: int, width: int) -> tuple[str, int, int]:
    """Return the shown part of a line, and the start and width of the stretch in that part."""
    if len(line) > _WIDEST:
        first = max(0, start - _WIDEST // 4)
        line = ("..." if first else "") + line[first : first + _WIDEST] + ("..." if first + _WIDEST < len(line) else "")
        start = start - first + (3 if first else 0)
        width = min(width, max(1, len(line) - start))
    return line.replace("\t", " "), start, width


MOST = 1600
"""Approximate length of a message's lines: the first mistakes and the number of others stay in view."""


def brief(text: str, most: int = 120) -> str:
    """Return a text that somebody else wrote, its middle left out if it is long."""
    return text if len(text) <= most else f"{text[: most - most // 4 - 5]} ... {text[len(text) - most // 4 :]}"


def first_of(rows: Sequence[str]) -> list[str]:
    """Return as many lines as a message shows, at least the first one, and the number of omitted ones."""
    shown: list[str] = []
    left = MOST
    for row in rows:
        left -= len(row)
        if shown and left < 0:
            return [*shown, f"... and {len(rows) - len(shown)} more"]
        shown.append(row)
    return shown


def _restored(kind: type[OpgenError], arguments: tuple[Any, ...]) -> OpgenError:
    """Return an error of a class without calling its constructor, whose parameters may differ from `args`."""
    return kind.__new__(kind, *arguments)


class OpgenError(Exception):
    """Base class of everything that opgen raises on purpose.  All of them can be pickled, whatever a subclass holds."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.args), self.__dict__


class UserError(OpgenError):
    """A mistake in the user's input."""


class DiagnosticError(UserError):
    """One or more mistakes in a text (spec, schedule, listing), each with its place."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n\n".join(d.render() for d in self.diagnostics))


class InternalError(OpgenError):
    """A broken invariant of opgen: a bug in opgen, never in its input."""


class CheckFailed(OpgenError):
    """A check of a kernel failed on its inputs' elements: the check's number, and the value that it reports.

    A caller that knows the kernel's op translates it into the op's terms.
    """

    def __init__(self, number: int, value: int) -> None:
        self.number = number
        self.value = value
        super().__init__(f"check {number} of a kernel does not hold: {value}")


_COMPARED = 60
"""Longest name that is compared with others, in letters: the time grows with their square."""


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Return `did you mean 'x'?` for the known name closest to a misspelt one, compared without regard to case.

    Names that are much longer or much shorter are never close; names of more than 60 letters are not compared.
    """
    if len(name) > _COMPARED:
        return None
    known = [candidate for candidate in known if len(candidate) <= 2 * len(name) + 4]
    folded = {candidate.lower(): candidate for candidate in sorted(known, reverse=True)}
    close = difflib.get_close_matches(name.lower(), list(folded), n=1, cutoff=0.6)
    return f"did you mean '{folded[close[0]]}'?" if close else None
