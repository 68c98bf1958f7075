"""The formatter: it lays out a text in the standard way and keeps its comments."""

from __future__ import annotations

from opgen.diagnostics import Source
from opgen.spec.syntax.parse import parse
from opgen.spec.syntax.printer import format_file
from opgen.spec.syntax.trivia import Trivia


def format_source(text: str, name: str = "<text>") -> str:
    """Format a text; formatted text stays unchanged.  Raises DiagnosticError if it does not parse."""
    tree = parse(Source(name, normalise(text)))
    return format_file(tree, Trivia.of(tree))


def normalise(text: str) -> str:
    """Normalise line ends to a newline, and drop a byte-order mark."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n")
