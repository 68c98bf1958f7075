"""A small pretty printer: documents of text with places where a line may break, set to a width (after Wadler)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Line:
    """A place where a line may break; `flat` stands there if it does not."""

    flat: str = " "


@dataclass(frozen=True, slots=True)
class Nest:
    """Lines broken inside begin `by` columns further in."""

    by: int
    body: Document


@dataclass(frozen=True, slots=True)
class Align:
    """Lines broken inside begin at the column where this begins."""

    body: Document


@dataclass(frozen=True, slots=True)
class Group:
    """All of its own lines break, or none does."""

    body: Document


Document: TypeAlias = "str | Line | Nest | Align | Group | tuple[Document, ...]"

SPACE, SOFT = Line(" "), Line("")


def join(separator: Document, parts: Iterable[Document]) -> Document:
    """The parts with a separator between them."""
    joined: list[Document] = []
    for part in parts:
        if joined:
            joined.append(separator)
        joined.append(part)
    return tuple(joined)


def fill(parts: Sequence[Document]) -> Document:
    """The parts after commas, as many on a line as fit."""
    if not parts:
        return ""
    rest = tuple(Group((",", SPACE, part)) for part in parts[1:])
    return Align((parts[0], *rest))


def render(document: Document, width: int, column: int = 0) -> str:
    """The document as text; lines are at most `width` wide where its breaks allow it; the first begins at `column`."""
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
    """Whether a group fits on the rest of the line together with what follows it up to the next possible break."""
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
