"""Numbers in environment variables.  (Nothing is imported: the cache is looked after without numpy.)"""

from __future__ import annotations

_LENGTH = 80


def shown(text: str) -> str:
    """A setting's text in a message: the beginning of it."""
    quoted = repr(text[: _LENGTH + 1])
    return quoted if len(quoted) <= _LENGTH else f"{quoted[: _LENGTH - 3]}..."


def whole_number(text: str) -> int | None:
    """The number that a setting's text is; None if it is none, or has more than 18 digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None
