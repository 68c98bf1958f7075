"""Numbers in environment variables."""

from __future__ import annotations


def whole_number(text: str) -> int | None:
    """The number that a setting's text is; None if it is none, or has more than 18 digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None
