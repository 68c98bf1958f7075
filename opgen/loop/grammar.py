"""The grammar of loop IR listings, its expressions made from the precedence table."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from lark import Lark, Token
from lark.indenter import DedentError, Indenter

from opgen.loop.syntax import ATOM, LEVELS, LITERAL

_END = "[A-Za-z0-9_.]"
"""Characters that cannot follow a word."""

_RULES = r"""
kernel: _NL? "kernel" name "(" header ")" "->" "(" header ")" ":" _NL _INDENT assume* item+ _DEDENT
expression: _NL? expr _NL?
header: [_declaration ("," _declaration)* [","]]
_declaration: parameter | buffer
parameter: name ":" NAME ["in" "[" bound "," bound "]"]
bound: MINUS? (LITERAL | NAME)
buffer: name ":" NAME "[" [expr ("," expr)*] "]" given? space?
given: "as" "[" [expr ("," expr)*] "]"
space: NAME
assume: "assume" expr _NL

suite: _NL _INDENT item+ _DEDENT
?item: "pass" _NL -> pass
    | "barrier" _NL -> barrier
    | "check" expr "else" LITERAL ":" expr _NL -> check
    | "prefetch" name "[" indices "]" _NL -> prefetch
    | "block" ":" suite -> block
    | LOOP_KIND? "for" name "in" expr ".." expr ":" suite -> loop
    | "if" expr ":" suite ["else" ":" suite] -> conditional
    | "let" name ":" NAME "=" expr _NL -> let_rest
    | "let" name ":" NAME "=" expr ":" suite -> let_suite
    | "alloc" buffer _NL -> alloc_rest
    | "alloc" buffer ":" suite -> alloc_suite
    | name "[" indices mask? "]" "=" expr _NL -> store

?expr: level0
?atom: LITERAL -> literal
    | "(" expr ")" -> parentheses
    | name -> variable
    | "(" name ":" NAME ")" -> typed_variable
    | NAME "(" expr ("," expr)* ")" -> call
    | name "[" indices mask? "]" -> load
    | "(" name ":" NAME ")" "[" indices mask? "]" -> typed_load
indices: [expr ("," expr)*]
mask: "if" expr
name: NAME | QUOTED

NAME: /[A-Za-z_][A-Za-z0-9_]*/
QUOTED: /`[^`\r\n]+`/
MINUS: "-"
LOOP_KIND.2: /((ordered|parallel|unroll|vector|(block|thread)\.[xyz])(?!{END}))|(tile(?=[ \t]+for(?!{END})))/
COMMENT: /#[^\n]*/
_NL: (/\r?\n[\t ]*/ | COMMENT)+
%import common.WS_INLINE
%ignore WS_INLINE
%declare _INDENT _DEDENT
"""


class BadDedent(Exception):
    """A line whose indentation matches no suite around it."""

    def __init__(self, line: int, column: int) -> None:
        super().__init__(line, column)
        self.line = line
        self.column = column


class _Indentation(Indenter):
    """Newlines and leading spaces as tokens; none inside parentheses or brackets."""

    def handle_NL(self, token: Token) -> Iterator[Token]:
        try:
            yield from super().handle_NL(token)
        except DedentError:
            raise BadDedent(token.end_line or 1, token.end_column or 1) from None

    @property
    def NL_type(self) -> str:
        return "_NL"

    @property
    def OPEN_PAREN_types(self) -> list[str]:
        return ["LPAR", "LSQB"]

    @property
    def CLOSE_PAREN_types(self) -> list[str]:
        return ["RPAR", "RSQB"]

    @property
    def INDENT_type(self) -> str:
        return "_INDENT"

    @property
    def DEDENT_type(self) -> str:
        return "_DEDENT"

    @property
    def tab_len(self) -> int:
        return 8


def _expressions() -> str:
    """One rule a precedence level, each over the next tighter one."""
    rows = []
    for number, level in enumerate(LEVELS):
        this = f"level{number}"
        tighter = "atom" if number + 1 == ATOM else f"level{number + 1}"
        operator = " | ".join(f'"{token}"' for token in level.tokens.values())
        terminal = "MINUS" if operator == '"-"' else f"_op{number}"
        alternatives = {
            "binary": f"{this} {terminal} {tighter} -> binary",
            "compare": f"{tighter} {terminal} {tighter} -> compare",
            "unary": f"{terminal} {this} -> unary",
        }
        rows.append(f"?{this}: {alternatives[level.kind]} | {tighter}")
        if terminal != "MINUS":
            rows.append(f"!_op{number}: {operator}".replace('"-"', "MINUS"))
    return "\n".join(rows)


@cache
def listing_parser() -> Lark:
    """Return the LALR parser; `start` is "kernel" or "expression"."""
    grammar = _RULES.replace("{END}", _END) + f"LITERAL.3: /{LITERAL}/\n" + _expressions()
    return Lark(
        grammar,
        parser="lalr",
        start=["kernel", "expression"],
        propagate_positions=True,
        maybe_placeholders=False,
        postlex=_Indentation(),
    )


def describe(terminal: str) -> str:
    """Return a terminal in a reader's words."""
    words = {
        "_NL": "end of line",
        "_INDENT": "an indented block",
        "_DEDENT": "end of block",
        "NAME": "a name",
        "QUOTED": "a name",
        "LITERAL": "a constant",
        "LOOP_KIND": "a loop",
        "$END": "end of text",
    }
    if terminal in words:
        return words[terminal]
    pattern = next((t.pattern.value for t in listing_parser().terminals if t.name == terminal), terminal)
    return f"'{pattern}'"
