"""Lines of generated C++ that fit the page."""

from __future__ import annotations

from collections.abc import Iterable

WIDTH = 120


def call(head: str, items: Iterable[str], tail: str, indent: int) -> str:
    """Lay out `head(items)tail`; items that do not fit on a line go on under the first item."""
    margin = " " * indent
    given = list(items)
    hanging = " " * (indent + len(head) + 1) if len(head) + indent < 60 else margin + "    "
    lines = [f"{margin}{head}("]
    for i, item in enumerate(given):
        piece = item + ("," if i + 1 < len(given) else f"){tail}")
        if i and len(lines[-1]) + 1 + len(piece) > WIDTH:
            lines.append(hanging + piece)
        else:
            lines[-1] += piece if not i else f" {piece}"
    if not given:
        lines[-1] += f"){tail}"
    return "\n".join(lines)
