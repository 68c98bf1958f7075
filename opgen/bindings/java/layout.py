"""Lines of generated Java that fit the page."""

from __future__ import annotations

import re
from collections.abc import Iterable

WIDTH = 120


def call(head: str, items: Iterable[str] | None, tail: str, indent: int, brackets: str = "()") -> str:
    """Lay out `head(items)tail`, or without items `head tail`.

    Text that does not fit on a line goes on, indented by four; an item may be split before the `+` of joined texts.
    """
    opening, closing = brackets[0], brackets[1]
    margin = " " * indent
    if items is None:
        return _broken(f"{margin}{head}{tail}", indent)
    given = list(items)
    line = f"{margin}{head}{opening}{', '.join(given)}{closing}{tail}"
    if len(line) <= WIDTH:
        return line
    lines, line = [], f"{margin}{head}{opening}"
    for i, item in enumerate(given):
        pieces = re.split(r' (?=\+ ")', item + ("," if i + 1 < len(given) else f"{closing}{tail}"))
        for piece in pieces:
            glue = "" if line.endswith(opening) or not line.strip() else " "
            if len(line) + len(glue) + len(piece) > WIDTH:
                lines.append(line)
                line = f"{margin}    {piece}"
            else:
                line += glue + piece
    return "\n".join([*lines, line])


def _broken(line: str, indent: int) -> str:
    """Return a line, or two if it is too long: `implements` begins the second."""
    head, word, rest = line.partition(" implements ")
    if len(line) <= WIDTH or not word:
        return line
    return f"{head}\n{' ' * (indent + 4)}{word.strip()} {rest}"
