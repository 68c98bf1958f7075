"""Trivia that a formatter keeps and a tree does not hold: comments, blank lines, and positions of docstrings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from opgen.spec.syntax import nodes as s

Child: TypeAlias = s.Doc | s.Declaration | s.Item | s.ReturnDecl | s.Entry
Container: TypeAlias = s.FunctionDecl | s.FragmentDecl | s.OpDecl | s.ExampleDecl | s.AlgorithmDecl
Place: TypeAlias = tuple[int, int]

_TOKENS = re.compile(r'"""(?:.|\n)*?"""|"(?:\\.|[^"\\\n])*"|(#[^\n]*)')


def children_of(tree: Container) -> list[Child]:
    """Return the declarations between the braces of another, in order."""
    if isinstance(tree, s.ExampleDecl):
        return list(tree.entries)
    inside: list[Child] = [] if tree.doc is None else [tree.doc]
    if isinstance(tree, s.FunctionDecl):
        return [*inside, *tree.lets, tree.returns]
    return [*inside, *tree.items]


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment with its `#`; `blank_before`: a blank line precedes it."""

    place: Place
    text: str
    blank_before: bool = False


def comments_of(text: str) -> list[Comment]:
    """Return the comments of a text; a `#` inside a string or docstring does not begin one."""
    found = []
    lines = text.split("\n")
    for match in _TOKENS.finditer(text):
        if match.group(1) is not None:
            line = text.count("\n", 0, match.start()) + 1
            column = match.start() - (text.rfind("\n", 0, match.start()) + 1) + 1
            alone = not lines[line - 1][: column - 1].strip()
            found.append(Comment((line, column), match.group(1).rstrip(), alone and _blank(lines, line - 1)))
    return found


def _blank(lines: Sequence[str], number: int) -> bool:
    return 0 < number <= len(lines) and not lines[number - 1].strip()


@dataclass
class Trivia:
    """Comments by the declaration they belong to; empty for a tree without a text.

    A comment on the last line of a declaration trails it.  A comment inside a declaration without braces moves before
    it.  Any other leads the next declaration, or closes the enclosing braces.
    """

    lines: Sequence[str] = ()
    _leading: dict[Place, list[Comment]] = field(default_factory=dict)
    _trailing: dict[Place, Comment] = field(default_factory=dict)
    _closing: dict[Place | None, list[Comment]] = field(default_factory=dict)
    _hoisted: set[Place] = field(default_factory=set)

    @staticmethod
    def of(tree: s.File) -> Trivia:
        """Return the trivia of a parsed tree, from its text."""
        text = tree.source.text
        trivia = Trivia(text.split("\n"))
        top: list[Child] = [] if tree.doc is None else [tree.doc]
        top += tree.items
        for comment in comments_of(text):
            trivia._place(comment, top, None)
        return trivia

    def _place(self, comment: Comment, children: Sequence[Child], owner: Place | None) -> None:
        before = [c for c in children if _end(c) <= comment.place]
        if before and before[-1].span.end_line == comment.place[0]:
            self._trailing[_start(before[-1])] = comment
            return
        after = next((c for c in children if comment.place < _end(c)), None)
        if after is None:
            self._closing.setdefault(owner, []).append(comment)
        elif comment.place < _start(after):
            self._leading.setdefault(_start(after), []).append(comment)
        elif isinstance(after, Container):
            self._place(comment, children_of(after), _start(after))
        else:
            self._leading.setdefault(_start(after), []).append(Comment(comment.place, comment.text))
            self._hoisted.add(_start(after))

    def leading(self, tree: Child) -> list[Comment]:
        return self._leading.get(_start(tree), [])

    def trailing(self, tree: Child) -> Comment | None:
        return self._trailing.get(_start(tree))

    def closing(self, owner: Container | None) -> list[Comment]:
        """Return the comments after the last declaration in braces, or (None) in the file."""
        return self._closing.get(None if owner is None else _start(owner), [])

    def hoisted(self, tree: Child) -> bool:
        """Return True if a comment from inside the declaration was moved before it."""
        return _start(tree) in self._hoisted

    def blank_before(self, tree: s.Node) -> bool:
        return bool(self.lines) and _blank(self.lines, tree.span.line - 1)

    def own_line(self, doc: s.Doc) -> bool:
        """Return True if a docstring begins a line."""
        return bool(self.lines) and not self.lines[doc.span.line - 1][: doc.span.column - 1].strip()


def _start(tree: s.Node) -> Place:
    return (tree.span.line, tree.span.column)


def _end(tree: s.Node) -> Place:
    return (tree.span.end_line, tree.span.end_column)
