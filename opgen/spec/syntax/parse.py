"""Parser of specs: it returns a syntax tree, or a diagnostic with place and expectation for every syntax error."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import replace

from lark import Lark, Tree, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from opgen.diagnostics import Diagnostic, DiagnosticError, InternalError, Source, Span, did_you_mean
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax import tables
from opgen.spec.syntax.declarations import FileBuilder
from opgen.spec.syntax.limits import DEPTH, NAME
from opgen.spec.syntax.report import Report
from opgen.spec.syntax.tree import Branch, TreeBuilder, place

MAX_SYNTAX_ERRORS = 10
SHORT = 1 << 16
"""Greatest length of a text whose tree is cached."""

ITEM_KEYWORDS = (
    "signature", "type", "input", "output", "sizes", "attr", "use", "require", "let", "example", "specialize",
    "gradient", "constant", "when", "algorithm", "inputs", "outputs", "static", "rank", "versions",
    "count",
)  # fmt: skip
TOP_KEYWORDS = ("import", "function", "fragment", "op")

_START_OF_ITEM = re.compile(rf"^[ \t]*(?:{'|'.join(ITEM_KEYWORDS)})\b|^[ \t]*[A-Za-z_]\w*\[", re.MULTILINE)
_ITEM_HEAD = re.compile(rf"[ \t]*({'|'.join(ITEM_KEYWORDS)})[ \t]+(?:\w+[ \t]*)?")
_DANGLING = re.compile(r"(?:[-+*/%=<(,\[]|\b(?:and|or|not|then|else|if))\s*\Z")
_START_OF_ANY = re.compile(
    rf"^[ \t]*(?:{'|'.join((*ITEM_KEYWORDS, *TOP_KEYWORDS))}|return)\b|^[ \t]*[A-Za-z_]\w*\[|^[ \t]*\}}", re.MULTILINE
)


@functools.cache
def _lark() -> Lark:
    return tables.parser()


def parse(source: Source) -> s.File:
    """Return the syntax tree of a file; raise DiagnosticError with every separate syntax error.

    Trees of short files are cached, so that a file with many importers is parsed once.
    """
    return _kept(source) if len(source.text) <= SHORT else _tree(source)


@functools.lru_cache(maxsize=64)
def _kept(source: Source) -> s.File:
    return _tree(source)


def _tree(source: Source) -> s.File:
    report = Report()
    root = _parsed(source, report)
    report.raise_if_any()
    if root is None:
        raise InternalError("a text neither parsed nor drew a diagnostic")
    _check_depth(source, root)
    tree = FileBuilder(source, report).file(root)
    report.raise_if_any()
    return tree


def _parsed(source: Source, report: Report) -> Branch | None:
    """Return lark's tree; after an error, blank out its declaration and find the errors in the rest."""
    text: str | None = source.text
    while text is not None and len(report) < MAX_SYNTAX_ERRORS:
        try:
            return _lark().parse(text, start="start")
        except UnexpectedInput as error:
            at = _unfinished(text, error)
            report.append(_syntax_error(source, text, error) if at is None else _cut_short(source, at))
            text = _without_bad_item(text, error.pos_in_stream if at is None else at - 1)
    return None


def parse_expression(source: Source, text: str, line: int, column: int) -> s.Expression:
    """Parse an expression inside a source (in a message of `require`); its places are those of the source."""
    try:
        root = _lark().parse(text, start="open")
    except UnexpectedInput as error:
        mistake = _syntax_error(Source(source.name, text), text, error)
        raise DiagnosticError([replace(mistake, span=_moved(source, mistake.span, line, column))]) from None
    _check_depth(source, root, (line, column))
    report = Report()
    tree = TreeBuilder(source, report, (line, column)).expression(root)
    report.raise_if_any()
    return tree


def _moved(source: Source, span: Span | None, line: int, column: int) -> Span | None:
    """Map a place in a one-line text to the source in which the text begins at a line and column."""
    return None if span is None else Span(source, line, span.column + column - 1, line, span.end_column + column - 1)


def _check_depth(source: Source, root: Branch, origin: tuple[int, int] = (1, 1)) -> None:
    stack: list[tuple[Branch, int]] = [(root, 1)]
    while stack:
        node, depth = stack.pop()
        if depth > DEPTH:
            line, column = node.meta.line, node.meta.column
            span = place(source, (line, column, line, column + 1), origin)
            raise DiagnosticError([Diagnostic("S003", "this nests too deeply", span, "name a part of it with `let`")])
        # A node without tokens has no place, and no children either.
        stack.extend((c, depth + 1) for c in node.children if isinstance(c, Tree) and c.children)


# Mistakes of form ---------------------------------------------------------------------------------


def _syntax_error(source: Source, text: str, error: UnexpectedInput) -> Diagnostic:
    """Describe a parse error; parts of the text may be blanked out, but its places are those of the source."""
    if isinstance(error, UnexpectedToken) and not _at_end(error):
        token = error.token
        first = str(token).split("\n")[0]
        start_column = token.column or 1
        span = Span(source, token.line or 1, start_column, token.line or 1, start_column + max(1, len(first)))
        shown = token if len(token) <= NAME else f"{token[:NAME]}..."
        found = "a docstring" if token.type == "DOC" else "a string" if token.type == "STRING" else f"'{shown}'"
    elif isinstance(error, UnexpectedCharacters):
        return _bad_character(source, text, error)
    else:
        span, found = _end_of(source, text), "the end"
    expected = _expected(error)
    return Diagnostic("S001", f"expected {expected}, found {found}", span, _keyword_help(source, span))


def _bad_character(source: Source, text: str, error: UnexpectedCharacters) -> Diagnostic:
    span = Span(source, error.line, error.column, error.line, error.column + 1)
    at = error.pos_in_stream or 0
    character = text[at]
    if character == '"':
        triple = text.startswith('"""', at)
        what = 'docstring is not closed by """' if triple else "string is not closed on its line"
        return Diagnostic("S001", f"the {what}", span)
    if character.isdigit():
        return Diagnostic("S001", "this is not a number", span, "numbers are written 3, 0.5 or 1e-3")
    shown = character if character.isprintable() else f"U+{ord(character):04X}"
    return Diagnostic("S001", f"unexpected character '{shown}'", span)


def _end_of(source: Source, text: str) -> Span:
    lines = text.rstrip("\n").split("\n")
    column = len(lines[-1]) + 1
    return Span(source, len(lines), column, len(lines), column + 1)


_SHOWN = {
    "NAME": "a name", "INT": "an integer", "FLOAT": "a number", "DOC": "a docstring", "STRING": "a string",
    "$END": "the end",
}  # fmt: skip
_EXPRESSION = {"NAME", "INT", "FLOAT", "TRUE", "FALSE", "MINUS", "LPAR", "SUM"}
_OPERATORS = {
    "PLUS", "MINUS", "TIMES", "DIVIDE", "FLOOR", "MODULO", "EQUAL", "UNEQUAL", "LESS", "LESS_EQUAL", "GREATER",
    "GREATER_EQUAL", "AND", "OR",
}  # fmt: skip


def _expected(error: UnexpectedInput) -> str:
    """Describe the acceptable tokens in words: names for whole classes, single tokens as written."""
    found = set(_acceptable(error))
    tokens = found - {"ELLIPSIS", "EACH"} or found  # syntax of generic ops is suggested only if nothing else fits
    parts = []
    if tokens >= _EXPRESSION:
        parts.append("an expression")
        tokens -= _EXPRESSION | {
            "PROD",
            "MAX",
            "MIN",
            "ARGMAX",
            "ARGMIN",
            "ASCENDING",
            "DESCENDING",
            "NOT",
            "IF",
            "LSQB",
        }
    if tokens >= _OPERATORS - {"AND", "OR", "NOT"}:
        parts.append("an operator")
        tokens -= _OPERATORS
    words = {k.upper() for k in ITEM_KEYWORDS}
    if len(tokens & words) > 3:
        parts.append("a declaration")
        tokens -= words | {"OP", "NAME"}
    parts += sorted(_shown(t) for t in tokens)
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} or {parts[-1]}" if parts else "nothing more"


def _acceptable(error: UnexpectedInput) -> Iterable[str]:
    if isinstance(error, UnexpectedToken):
        accepts = error.accepts
        return accepts if accepts else error.expected
    return ()


def _shown(terminal: str) -> str:
    if terminal in _SHOWN:
        return _SHOWN[terminal]
    definition = next((t for t in _lark().terminals if t.name == terminal), None)
    return f"'{definition.pattern.value}'" if definition is not None else terminal.lower()


def _keyword_help(source: Source, span: Span) -> str | None:
    """Suggest a keyword for a misspelt one: it parses as a tensor's name, and the error is one word later."""
    before = source.line(span.line)[: span.column - 1].strip()
    if not re.fullmatch(r"[A-Za-z_]\w*", before) or before in ITEM_KEYWORDS or before in TOP_KEYWORDS:
        before = source.line(span.line)[span.column - 1 : span.end_column - 1] if not before else ""
    keywords = (*ITEM_KEYWORDS, *TOP_KEYWORDS)
    return did_you_mean(before, keywords) if before.isidentifier() and before not in keywords else None


def _unfinished(text: str, error: UnexpectedInput) -> int | None:
    """Return the start of the declaration after an unfinished one, whose keyword was parsed as an operand."""
    at = error.pos_in_stream
    if at is None or _at_end(error):
        return None
    line = text.rfind("\n", 0, at) + 1
    head = _ITEM_HEAD.fullmatch(text, line, at)
    return head.start(1) if head is not None and _DANGLING.search(text, 0, line) else None


def _cut_short(source: Source, at: int) -> Diagnostic:
    line = source.text.count("\n", 0, at) + 1
    column = at - source.text.rfind("\n", 0, at)
    word = re.compile(r"\w+").match(source.text, at)
    found = word.group() if word is not None else ""
    span = Span(source, line, column, line, column + len(found))
    return Diagnostic(
        "S001", f"expected an expression, found '{found}'", span, "the declaration before it is not finished"
    )


def _at_end(error: UnexpectedInput) -> bool:
    return isinstance(error, UnexpectedToken) and error.token.type == "$END"


def _without_bad_item(text: str, at: int | None) -> str | None:
    """Blank out the declaration that holds an error; return None if it is not a declaration in an op."""
    if at is None or at >= len(text):
        return None
    line = text.rfind("\n", 0, at) + 1
    if line > 0 and not text[line:at].strip() and _START_OF_ITEM.match(text, line):
        at = line - 1  # the error is that the declaration before this one continues
    starts = [m.start() for m in _START_OF_ANY.finditer(text, 0, at + 1)]
    if not starts or not _START_OF_ITEM.match(text, starts[-1]):
        return None
    following = _START_OF_ANY.search(text, text.find("\n", at) + 1) if "\n" in text[at:] else None
    if following is None:
        return None
    begin, end = starts[-1], following.start()
    return text[:begin] + re.sub(r"[^\n]", " ", text[begin:end]) + text[end:]
