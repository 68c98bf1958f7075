"""Expressions of a syntax tree, and the names and texts in it; `nodes.py` has the rules for all trees."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from opgen.diagnostics import Span


@dataclass(frozen=True, slots=True)
class Node:
    """A node with a place in the text."""

    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Ident(Node):
    """A name where it is declared or referred to."""

    name: str


@dataclass(frozen=True, slots=True)
class Text(Node):
    """A string in quotes, its escapes resolved."""

    value: str


@dataclass(frozen=True, slots=True)
class Doc(Node):
    """A docstring, its common indentation and outer blank lines removed."""

    value: str


# Expressions --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Constant(Node):
    """A number, `true` or `false`, as written."""

    text: str


@dataclass(frozen=True, slots=True)
class Named(Node):
    name: str


@dataclass(frozen=True, slots=True)
class Member(Node):
    """`owner.letter` or `owner.letter[subscripts]`: an element of a list attribute that follows a layout."""

    owner: Ident
    letter: Ident
    subscripts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Subscripted(Node):
    """`owner[subscripts] else outside`: a read of a tensor, or an element of a list attribute."""

    owner: Ident
    subscripts: tuple[Expression, ...]
    outside: Expression | None


@dataclass(frozen=True, slots=True)
class Keyword(Node):
    """`name = value` among the arguments of a call of an op."""

    name: Ident
    value: Expression | Text


@dataclass(frozen=True, slots=True)
class Call(Node):
    """`function(arguments)`: on shapes or elements, or a call of an op; only that has `keywords`, after `arguments`."""

    function: Ident
    arguments: tuple[Expression, ...]
    keywords: tuple[Keyword, ...] = ()


@dataclass(frozen=True, slots=True)
class Range(Node):
    """An index, with its extent if that is written; `pack`: `index...`, one index for each element of the pack."""

    index: Ident
    extent: Expression | None
    pack: bool = False


@dataclass(frozen=True, slots=True)
class Reduction(Node):
    """`kind[ranges if condition](body)`; `kind[index](body, place)` of an order."""

    kind: str
    ranges: tuple[Range, ...]
    body: Expression
    condition: Expression | None = None
    place: Expression | None = None


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """`-operand` or `not operand`."""

    op: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary(Node):
    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Choice(Node):
    """`if condition then if_true else if_false`."""

    condition: Expression
    if_true: Expression
    if_false: Expression


@dataclass(frozen=True, slots=True)
class Expansion(Node):
    """`pattern...`: the pattern once for each element of the packs in it."""

    pattern: Expression


@dataclass(frozen=True, slots=True)
class Listed(Node):
    """`[items]`: a list of these elements."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Chain(Node):
    """`if condition then value... else if_false`: the value of the first pack element for which the condition holds.

    Without `else`, the last element is the default.
    """

    condition: Expression
    value: Expression
    if_false: Expression | None


Expression: TypeAlias = (
    Constant | Named | Member | Subscripted | Call | Reduction | Unary | Binary | Choice | Expansion | Listed | Chain
)
