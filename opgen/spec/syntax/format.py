"""The formatter: a text laid out in the one way, its comments kept."""

from __future__ import annotations

from opgen.diagnostics import Source
from opgen.spec.syntax.parse import parse
from opgen.spec.syntax.printer import format_file
from opgen.spec.syntax.trivia import Trivia


def format_source(text: str, name: str = "<text>") -> str:
    """The text, formatted; what is formatted stays as it is.  Raises DiagnosticError where it does not parse."""
    tree = parse(Source(name, normalise(text)))
    return format_file(tree, Trivia.of(tree))


def normalise(text: str) -> str:
    """The text with lines that end in a newline only, without a byte-order mark."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n")
