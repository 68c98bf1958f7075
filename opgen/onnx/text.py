"""Text fields of a message: the format says that they are UTF-8, and its parser does not look."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any


def torn_text(message: Any) -> Iterator[tuple[str, bytes]]:
    """Yield the text fields of a message, and of all inside it, that are not text: their names and their contents."""
    texts, parts = _fields(message.DESCRIPTOR)
    for name, repeated in texts:
        value = getattr(message, name)
        for each in value if repeated else (value,):
            if isinstance(each, bytes):
                yield name, each
    for name, repeated in parts:
        if repeated:
            for inner in getattr(message, name):
                yield from torn_text(inner)
        elif message.HasField(name):
            yield from torn_text(getattr(message, name))


@cache
def _fields(kind: Any) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    """Return the names of a message's text fields, and of its message fields with a flag if each repeats."""
    texts = [f for f in kind.fields if f.type == f.TYPE_STRING]
    parts = [f for f in kind.fields if f.type == f.TYPE_MESSAGE]
    return [(f.name, f.is_repeated) for f in texts], [(f.name, f.is_repeated) for f in parts]
