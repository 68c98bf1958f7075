"""Printer of expressions and values.

It writes brackets where the grammar needs them, or to help a reader (`(x[i - 1] else 0) * y`).
"""

from __future__ import annotations

from collections.abc import Sequence

from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.pretty import SOFT, SPACE, Align, Document, Group, Nest, fill, join
from opgen.spec.syntax.strings import quote

PRECEDENCE = {
    "or": 1, "and": 2, "not": 3, "==": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "+": 5, "-": 5, "*": 6, "/": 6,
    "//": 6, "%": 6, "negate": 7,
}  # fmt: skip
"""Binding strength of operators; comparisons do not chain, the others group from the left."""

_CHOICE, _COMPARISON, _ATOM = 0, 4, 8


def expression(tree: s.Expression) -> Document:
    """Print an expression in any context."""
    return _print(tree, _CHOICE, False)


def condition(tree: s.Expression) -> Document:
    """Print an expression after `when`, with brackets around an `if`."""
    return _print(tree, PRECEDENCE["or"], False)


def extent(tree: s.Expression) -> Document:
    """Print an expression after `<` in a range, with brackets around a comparison."""
    if isinstance(tree, s.Expansion):
        return (_print(tree.pattern, PRECEDENCE["+"], False), "...")
    return _print(tree, PRECEDENCE["+"], False)


def expanded(pattern: s.Expression) -> Document:
    """Print an expanded pattern with its dots, in brackets unless it is a single operand."""
    return (_print(pattern, _ATOM, True), "...")


def _print(tree: s.Expression, level: int, closed: bool) -> Document:
    """Print with brackets around operators looser than `level`.

    `closed`: a read or a chain without `else` also gets brackets if an `else` may follow.
    """
    needed = _level(tree) < level or (closed and _takes_else(tree))
    return ("(", Align(_bare(tree, False)), ")") if needed else _bare(tree, closed)


def _takes_else(tree: s.Expression) -> bool:
    if isinstance(tree, s.Chain):
        return tree.if_false is None
    return isinstance(tree, s.Subscripted) and tree.outside is not None


def _level(tree: s.Expression) -> int:
    if isinstance(tree, s.Choice | s.Chain | s.Listed):
        return _CHOICE
    if isinstance(tree, s.Binary):
        return PRECEDENCE[tree.op]
    if isinstance(tree, s.Unary):
        return PRECEDENCE["not" if tree.op == "not" else "negate"]
    return _ATOM


def _bare(tree: s.Expression, closed: bool) -> Document:
    if isinstance(tree, s.Constant):
        return tree.text
    if isinstance(tree, s.Named):
        return tree.name
    if isinstance(tree, s.Member):
        subscripts = _brackets(tree.subscripts) if tree.subscripts else ""
        return (f"{tree.owner.name}.{tree.letter.name}", subscripts)
    if isinstance(tree, s.Subscripted):
        outside: Document = "" if tree.outside is None else (" else ", _plain(tree.outside))
        return (tree.owner.name, _brackets(tree.subscripts), outside)
    if isinstance(tree, s.Call):
        return (tree.function.name, "(", fill([*map(expression, tree.arguments), *map(_keyword, tree.keywords)]), ")")
    if isinstance(tree, s.Reduction):
        inside: Document = fill([range_(r) for r in tree.ranges])
        if tree.condition is not None:
            inside = Group(Align((inside, SPACE, "if ", Align(expression(tree.condition)))))
        head = (tree.kind, "[", inside, "](")
        place: Document = "" if tree.place is None else (",", SPACE, expression(tree.place))
        return (head, Group(Nest(2, (SOFT, expression(tree.body), place, ")"))))
    if isinstance(tree, s.Unary):
        return _unary(tree)
    if isinstance(tree, s.Binary):
        return Group(_chain(tree))
    if isinstance(tree, s.Expansion):
        return expanded(tree.pattern)
    if isinstance(tree, s.Listed):
        return _brackets(tree.items)
    return _choice(tree, closed)


def _keyword(tree: s.Keyword) -> Document:
    value: Document = quote(tree.value.value) if isinstance(tree.value, s.Text) else expression(tree.value)
    return (f"{tree.name.name} = ", value)


def _brackets(subscripts: Sequence[s.Expression]) -> Document:
    return ("[", fill([expression(e) for e in subscripts]), "]")


def _plain(tree: s.Expression) -> Document:
    """Print the value after a read's `else`: an operand without a looser operator and without its own `else`."""
    if isinstance(tree, s.Unary) and tree.op == "-":
        return ("-", _plain(tree.operand))
    return _print(tree, _ATOM, True)


def _unary(tree: s.Unary) -> Document:
    if tree.op == "not":
        return ("not ", _print(tree.operand, PRECEDENCE["not"], True))
    return ("-", _print(tree.operand, PRECEDENCE["negate"], True))


def _chain(tree: s.Binary) -> Document:
    """Print left-grouped operators of one level in a row that breaks before all of them or before none."""
    level = PRECEDENCE[tree.op]
    rows: list[Document] = []
    node: s.Expression = tree
    while isinstance(node, s.Binary) and PRECEDENCE[node.op] == level and (not rows or level != _COMPARISON):
        rows.append((SPACE, node.op, " ", _print(node.right, level + 1, True)))
        node = node.left
    first = _print(node, level + 1 if level == _COMPARISON else level, True)
    return (first, Nest(2, tuple(reversed(rows))))


def _choice(tree: s.Choice | s.Chain, closed: bool) -> Document:
    parts: list[Document] = []
    node: s.Expression | None = tree
    while isinstance(node, s.Choice | s.Chain) and (node is tree or not (closed and _takes_else(node))):
        chain = isinstance(node, s.Chain)
        value = _print(node.value if isinstance(node, s.Chain) else node.if_true, _CHOICE, True)
        parts.append(("if ", expression(node.condition), " then ", value, "..." if chain else ""))
        node = node.if_false
    if node is not None:
        parts.append(_print(node, _CHOICE, closed))
    return Group(Align(join((SPACE, "else "), parts)))


def range_(tree: s.Range) -> Document:
    """Print an index, with its extent if that is written."""
    index = f"{tree.index.name}..." if tree.pack else tree.index.name
    return index if tree.extent is None else (index, " < ", extent(tree.extent))


def value(tree: s.Value) -> Document:
    """Print a literal value; a list breaks if it does not fit."""
    if isinstance(tree, s.Constant):
        return tree.text
    if isinstance(tree, s.Named):
        return tree.name
    if isinstance(tree, s.Text):
        return quote(tree.value)
    return ("[", fill([value(item) for item in tree.items]), "]")
