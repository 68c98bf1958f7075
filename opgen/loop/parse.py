"""Text to loop IR: the inverse of `opgen.loop.print`.  Mistakes are `DiagnosticError`s with their places.

The parser resolves names (a use takes the type its declaration gives); types and bounds are the verifier's affair.
"""

from __future__ import annotations

from collections.abc import Mapping

from lark import Token
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput

from opgen.diagnostics import Diagnostic, DiagnosticError, Source, Span
from opgen.dtypes import DType
from opgen.locks import Lock
from opgen.loop.grammar import BadDedent, describe, listing_parser
from opgen.loop.nodes import Expr, Kernel, Type
from opgen.loop.reader import Node, Reader, child

_LOCK = Lock()


def parse_kernel(text: str, name: str = "<loop>") -> Kernel:
    """Parse the kernel that a listing describes; messages call the text `name`."""
    source = Source(name, text)
    reader = Reader(source, {}, {})
    try:
        kernel = reader.kernel(_tree(source, "kernel"))
    except RecursionError:
        raise _too_deep(source) from None
    reader.finish()
    return kernel


def parse_expr(
    text: str, variables: Mapping[str, Type], buffers: Mapping[str, DType] | None = None, name: str = "<expression>"
) -> Expr:
    """Return the expression that a text describes, over variables and buffers of the given types."""
    source = Source(name, text)
    reader = Reader(source, dict(variables), dict(buffers or {}))
    try:
        expr = reader.expr(child(_tree(source, "expression"), 0))
    except RecursionError:
        raise _too_deep(source) from None
    reader.finish()
    return expr


def _too_deep(source: Source) -> DiagnosticError:
    return DiagnosticError([Diagnostic("loop-syntax", "this is nested too deeply", Span(source, 1, 1, 1, 2))])


def _tree(source: Source, start: str) -> Node:
    try:
        with _LOCK:  # the parser keeps the indentation in itself
            return listing_parser().parse(source.text + "\n", start=start)
    except UnexpectedCharacters as error:
        found = f"unexpected character {error.char!r}"
        raise _syntax(source, error.line, error.column, 1, found, set(error.allowed or ())) from None
    except (UnexpectedEOF, UnexpectedInput) as error:
        raise _unexpected(source, error) from None
    except BadDedent as error:
        message = "this line is indented unlike the blocks around it"
        raise _syntax(source, error.line, error.column, 1, message, set()) from None


def _unexpected(source: Source, error: UnexpectedInput) -> DiagnosticError:
    token = getattr(error, "token", None)
    if not isinstance(token, Token) or token.type == "$END":
        lines = source.text.split("\n")
        return _syntax(source, len(lines), len(lines[-1]) + 1, 1, "unexpected end of text", _expected(error))
    shown = describe(token.type) if token.type.startswith("_") else f"'{token}'"
    line, column = token.line or 1, token.column or 1
    width = 1 if token.type.startswith("_") else len(token)
    return _syntax(source, line, column, width, f"unexpected {shown}", _expected(error))


def _expected(error: UnexpectedInput) -> set[str]:
    accepts = getattr(error, "accepts", None) or getattr(error, "expected", None) or ()
    return {str(name) for name in accepts}


def _syntax(source: Source, line: int, column: int, width: int, found: str, expected: set[str]) -> DiagnosticError:
    words = sorted({describe(name) for name in expected})
    wanted = None if not words or len(words) > 6 else "expected " + " or ".join(words)
    return DiagnosticError([Diagnostic("loop-syntax", found, Span(source, line, column, line, column + width), wanted)])
