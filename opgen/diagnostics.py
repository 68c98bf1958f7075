"""Places in source text, and the errors that name them.

Two families, told apart by whose fault an error is:

* `UserError`: a mistake in a spec, a schedule, a listing or a call.  It carries a code, where it is, what was expected.
* `InternalError`: an invariant of opgen itself is broken; it is a bug in opgen, never in its input.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Source:
    """A named text, so that a place in it can be shown."""

    name: str
    text: str = field(repr=False)

    def line(self, number: int) -> str:
        """The text of a line, counted from 1, without its newline."""
        lines = self.text.split("\n")
        return lines[number - 1] if 0 < number <= len(lines) else ""


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
        """The stretch from the start of this span to the end of the other."""
        return Span(self.source, self.line, self.column, other.end_line, other.end_column)


@dataclass(frozen=True)
class Diagnostic:
    """One mistake: a stable code, a sentence, a place, and what would mend it."""

    code: str
    message: str
    span: Span | None = None
    help: str | None = None

    def render(self) -> str:
        """The message as a compiler prints it: place, sentence, the line itself, a caret, the remedy."""
        if self.span is None:
            head = f"error[{self.code}]: {self.message}"
            return head if self.help is None else f"{head}\n  = help: {self.help}"
        span = self.span
        line = span.source.line(span.line)
        last = span.end_column if span.end_line == span.line else len(line) + 1
        gutter = " " * len(str(span.line))
        shown = line.replace("\t", " ")
        caret = " " * (span.column - 1) + "^" * max(1, last - span.column)
        rows = [
            f"{span}: error[{self.code}]: {self.message}",
            f" {gutter} |",
            f" {span.line} | {shown}",
            f" {gutter} | {caret}",
        ]
        if self.help is not None:
            rows.append(f" {gutter} = help: {self.help}")
        return "\n".join(rows)


class OpgenError(Exception):
    """Everything that opgen raises on purpose."""


class UserError(OpgenError):
    """A mistake in what the user gave."""


class DiagnosticError(UserError):
    """One or more mistakes in a text (spec, schedule, listing), each with its place."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n\n".join(d.render() for d in self.diagnostics))


class InternalError(OpgenError):
    """A broken invariant of opgen: a bug in opgen, never in its input."""


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """`did you mean 'x'?` for the known name closest to a misspelt one, compared without regard to case."""
    folded = {candidate.lower(): candidate for candidate in sorted(known, reverse=True)}
    close = difflib.get_close_matches(name.lower(), list(folded), n=1, cutoff=0.6)
    return f"did you mean '{folded[close[0]]}'?" if close else None
