"""Builder of the syntax tree from lark's tree of rules and tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from lark import Token, Tree

from opgen.diagnostics import InternalError, Source, Span
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.limits import NAME
from opgen.spec.syntax.report import Report
from opgen.spec.syntax.strings import bad_escape, clean_doc, unescape

Branch: TypeAlias = "Tree[Token]"
Child: TypeAlias = "Branch | Token | None"
N = TypeVar("N", bound=s.Node)


class TreeBuilder:
    """Builder of one source's syntax tree; errors that the grammar accepts go to the report.

    `origin` is the line and column of the source at which the parsed text begins.
    """

    def __init__(self, source: Source, report: Report, origin: tuple[int, int] = (1, 1)) -> None:
        self._source = source
        self._report = report
        self._origin = origin

    # Leaves ---------------------------------------------------------------------------------------

    def span(self, node: Branch | Token) -> Span:
        at = node if isinstance(node, Token) else node.meta
        line, column, end_line, end_column = at.line, at.column, at.end_line, at.end_column
        if line is None or column is None or end_line is None or end_column is None:
            raise InternalError("the parser gave a node without a place")
        return place(self._source, (line, column, end_line, end_column), self._origin)

    def ident(self, child: Child) -> s.Ident:
        token = as_token(child)
        return s.Ident(self.span(token), self._name(token))

    def _name(self, token: Token) -> str:
        """Return a token's name; report one that is too long to quote or to compile."""
        if len(token) > NAME:
            self._report.add("S010", f"a name of {len(token):,} letters, at most {NAME}", self.span(token))
        return str(token[:NAME])

    def maybe_ident(self, child: Child) -> s.Ident | None:
        return None if child is None else self.ident(child)

    def text(self, child: Child) -> s.Text:
        token = as_token(child)
        span, body = self.span(token), str(token)[1:-1]
        at = bad_escape(body)
        if at is not None:
            column = span.column + 1 + at
            place = Span(self._source, span.line, column, span.line, column + 2)
            self._report.add("S004", f"unknown escape '{body[at : at + 2]}'", place, 'known are \\n, \\t, \\" and \\\\')
        return s.Text(span, unescape(body))

    def doc(self, child: Child) -> s.Doc | None:
        if child is None:
            return None
        token = as_token(child)
        value = clean_doc(str(token)[3:-3])
        return s.Doc(self.span(token), value) if value else None

    # Expressions ----------------------------------------------------------------------------------

    def expression(self, child: Child) -> s.Expression:
        node = as_branch(child)
        return _EXPRESSIONS[node.data](self, node)

    def _all(self, child: Child) -> tuple[s.Expression, ...]:
        return tuple(self.expression(c) for c in as_branch(child).children if c is not None)

    def _literal(self, node: Branch) -> s.Constant:
        return s.Constant(self.span(node), str(node.children[0]))

    def _named(self, node: Branch) -> s.Named:
        return s.Named(self.span(node), self._name(as_token(node.children[0])))

    def _member(self, node: Branch) -> s.Member:
        owner, letter, subscripts = node.children
        given = () if subscripts is None else self._all(subscripts)
        return s.Member(self.span(node), self.ident(owner), self.ident(letter), given)

    def _subscripted(self, node: Branch) -> s.Subscripted:
        owner, subscripts, *rest = node.children
        outside = self.expression(rest[0]) if rest and rest[0] is not None else None
        return s.Subscripted(self.span(node), self.ident(owner), self._all(subscripts), outside)

    def _call(self, node: Branch) -> s.Call:
        function, passed = node.children
        children = [as_branch(c) for c in as_branch(passed).children if c is not None]
        keywords = [self._keyword(c) for c in children if c.data == "keyword"]
        last = next((at for at, c in enumerate(children) if c.data == "keyword"), len(children))
        for late in (c for c in children[last:] if c.data != "keyword"):
            self._report.add("S001", "an argument without a name stands after one that has a name", self.span(late))
        arguments = tuple(self.expression(c) for c in children if c.data != "keyword")
        return s.Call(self.span(node), self.ident(function), arguments, tuple(keywords))

    def _keyword(self, node: Branch) -> s.Keyword:
        name, value = node.children
        text = isinstance(value, Token)
        return s.Keyword(self.span(node), self.ident(name), self.text(value) if text else self.expression(value))

    def range(self, child: Child) -> s.Range:
        node = as_branch(child)
        index, pack, extent = node.children
        given = None if extent is None else self.expression(extent)
        return s.Range(self.span(node), self.ident(index), given, pack is not None)

    def _reduction(self, node: Branch) -> s.Reduction:
        kind, *ranges, condition, body, place = node.children
        given, at = (None if e is None else self.expression(e) for e in (condition, place))
        return s.Reduction(self.span(node), str(kind), tuple(map(self.range, ranges)), self.expression(body), given, at)

    def _unary(self, node: Branch) -> s.Unary:
        op, operand = node.children
        return s.Unary(self.span(node), str(op), self.expression(operand))

    def _binary(self, node: Branch) -> s.Binary:
        left, op, right = node.children
        return s.Binary(self.span(node), str(op), self.expression(left), self.expression(right))

    def _choice(self, node: Branch) -> s.Choice:
        condition, if_true, if_false = map(self.expression, node.children)
        return s.Choice(self.span(node), condition, if_true, if_false)

    def _expansion(self, node: Branch) -> s.Expansion:
        return s.Expansion(self.span(node), self.expression(node.children[0]))

    def _listed(self, node: Branch) -> s.Listed:
        return s.Listed(self.span(node), self._all(node.children[0]))

    def _chain(self, node: Branch) -> s.Chain:
        condition, value, if_false = node.children
        rest = None if if_false is None else self.expression(if_false)
        return s.Chain(self.span(node), self.expression(condition), self.expression(value), rest)

    # Values ---------------------------------------------------------------------------------------

    def value(self, child: Child) -> s.Value:
        node = as_branch(child)
        if node.data == "list_value":
            return s.ListValue(self.span(node), tuple(self.value(c) for c in node.children if c is not None))
        if node.data == "text_value":
            return self.text(node.children[0])
        sign, body = node.children
        word = self._name(as_token(body)) if node.data == "word_value" else str(body)
        written = word if sign is None else f"-{word}"
        return s.Named(self.span(node), written) if node.data == "word_value" else s.Constant(self.span(node), written)

    def constant(self, child: Child) -> s.Constant:
        value = self.value(child)
        if not isinstance(value, s.Constant):
            raise InternalError("the grammar gave a bound that is not a number")
        return value


def place(source: Source, at: tuple[int, int, int, int], origin: tuple[int, int]) -> Span:
    """Return the source's span for one in a text that begins at a line and column of it."""
    line, column, end_line, end_column = at
    down, right = origin[0] - 1, origin[1] - 1
    return Span(
        source,
        line + down,
        column + (right if line == 1 else 0),
        end_line + down,
        end_column + (right if end_line == 1 else 0),
    )


def as_token(child: Child) -> Token:
    if not isinstance(child, Token):
        raise InternalError(f"the grammar gave {child!r} where a token was due")
    return child


def as_branch(child: Child) -> Branch:
    if not isinstance(child, Tree):
        raise InternalError(f"the grammar gave {child!r} where a rule was due")
    return child


_EXPRESSIONS: dict[str, Callable[[TreeBuilder, Branch], s.Expression]] = {
    "literal": TreeBuilder._literal,
    "named": TreeBuilder._named,
    "member": TreeBuilder._member,
    "subscripted": TreeBuilder._subscripted,
    "call": TreeBuilder._call,
    "reduction": TreeBuilder._reduction,
    "unary": TreeBuilder._unary,
    "binary": TreeBuilder._binary,
    "choice": TreeBuilder._choice,
    "expansion": TreeBuilder._expansion,
    "expanded_sum": TreeBuilder._expansion,
    "listed": TreeBuilder._listed,
    "chain": TreeBuilder._chain,
}
