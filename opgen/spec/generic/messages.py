"""Messages of requirements, with their expressions expanded for a form."""

from __future__ import annotations

import re

from opgen.spec.generic.evaluate import Evaluator
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.parse import parse_expression
from opgen.spec.syntax.pretty import render
from opgen.spec.syntax.print_expression import expression

_PIECES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")


def message(evaluator: Evaluator, text: s.Text) -> s.Text:
    """Expand the expressions in a message; a pack becomes a list with commas."""
    return s.Text(text.span, _PIECES.sub(lambda m: _piece(evaluator, text, m), text.value))


def spoken(evaluator: Evaluator, text: s.Text) -> str:
    """Return the message that a caller reads if the form is refused."""
    told = message(evaluator, text).value
    return re.sub(r"\{([^{}]*)\}", r"\1", told.replace("{{", "\0").replace("}}", "\1")).translate({0: "{", 1: "}"})


def _piece(evaluator: Evaluator, text: s.Text, found: re.Match[str]) -> str:
    written = found.group(1)
    if written is None:
        return found.group()
    expanded = written.endswith("...")
    column = text.span.column + 1 + found.start(1)
    tree = parse_expression(text.span.source, written.removesuffix("..."), text.span.line, column)
    trees = evaluator.all(tree) if expanded else (evaluator.one(tree, None),)
    return ", ".join("{" + " ".join(render(expression(t), 10**6).split()) + "}" for t in trees)
