"""A small pretty printer (after Wadler): documents of text with possible line breaks, rendered to a width."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Line:
    """A possible line break; `flat` replaces it if the line does not break."""

    flat: str = " "


@dataclass(frozen=True, slots=True)
class Nest:
    """A document whose broken lines are indented by `by` more columns."""

    by: int
    body: Document


@dataclass(frozen=True, slots=True)
class Align:
    """A document whose broken lines begin at its own start column."""

    body: Document


@dataclass(frozen=True, slots=True)
class Group:
    """A document of which all direct lines break, or none."""

    body: Document


Document: TypeAlias = "str | Line | Nest | Align | Group | tuple[Document, ...]"

SPACE, SOFT = Line(" "), Line("")


def join(separator: Document, parts: Iterable[Document]) -> Document:
    """Join the parts with a separator."""
    joined: list[Document] = []
    for part in parts:
        if joined:
            joined.append(separator)
        joined.append(part)
    return tuple(joined)


def fill(parts: Sequence[Document]) -> Document:
    """Join the parts with commas, as many on a line as fit."""
    if not parts:
        return ""
    rest = tuple(Group((",", SPACE, part)) for part in parts[1:])
    return Align((parts[0], *rest))


def render(document: Document, width: int, column: int = 0) -> str:
    """Render a document that begins at `column`; lines are at most `width` wide if its breaks allow it."""
    out: list[str] = []
    base = at = column
    stack: list[tuple[int, bool, Document]] = [(base, False, document)]
    while stack:
        indent, flat, node = stack.pop()
        if isinstance(node, str):
            out.append(node)
            at += len(node)
        elif isinstance(node, tuple):
            stack.extend((indent, flat, part) for part in reversed(node))
        elif isinstance(node, Line):
            out.append(node.flat if flat else "\n" + " " * indent)
            at = at + len(node.flat) if flat else indent
        elif isinstance(node, Nest):
            stack.append((indent + node.by, flat, node.body))
        elif isinstance(node, Align):
            stack.append((at, flat, node.body))
        else:
            stack.append((indent, flat or _fits(node.body, width - at, stack), node.body))
    return "".join(out)


def _fits(body: Document, room: int, after: Sequence[tuple[int, bool, Document]]) -> bool:
    """Return True if a group fits on the rest of the line, with the text after it up to the next possible break."""
    stack: list[tuple[bool, Document]] = [(True, body)]
    following = len(after)
    while room >= 0:
        if not stack:
            if following == 0:
                return True
            following -= 1
            _, flat, node = after[following]
            stack.append((flat, node))
            continue
        flat, node = stack.pop()
        if isinstance(node, str):
            room -= len(node)
        elif isinstance(node, tuple):
            stack.extend((flat, part) for part in reversed(node))
        elif isinstance(node, Line):
            if not flat:
                return True
            room -= len(node.flat)
        elif isinstance(node, Nest | Align):
            stack.append((flat, node.body))
        else:
            stack.append((flat, node.body))
    return False
