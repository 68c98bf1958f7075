"""Text of a spec inside Python source: any content stays one literal, one docstring or one name."""

from __future__ import annotations

import keyword
import math
import re
import textwrap
from collections.abc import Iterable

from opgen.diagnostics import InternalError

WIDTH = 120
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAMED_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def literal(value: object) -> str:
    """Return Python source for a bool, int, float, str, None, or a tuple of such (as a list)."""
    match value:
        case None | bool() | int():
            return repr(value)
        case float():
            return repr(value).replace("e+", "e") if math.isfinite(value) else f'float("{value}")'
        case str():
            escaped = _escaped(value.replace("\\", "\\\\").replace('"', '\\"'), _NAMED_ESCAPES)
            return f'"{escaped}"'
        case tuple():
            return f"[{', '.join(literal(v) for v in value)}]"
    raise InternalError(f"no Python literal for a {type(value).__name__}")


def docstring(text: str, indent: int) -> str:
    """Return a docstring, quotes included, whose lines after the first are indented; the first line is not."""
    quoted = re.sub(r'"(?="|\Z)', '\\\\"', text.strip().replace("\\", "\\\\"))
    safe = _escaped(quoted, {"\n": "\n"})
    lines = [line.rstrip() for line in safe.split("\n")]
    body = textwrap.indent("\n".join(lines), " " * indent).lstrip()
    return f'"""{body}"""' if len(lines) == 1 else f'"""{body}\n{" " * indent}"""'


def comment(text: str) -> str:
    """Return one line that a comment may hold."""
    return _escaped(" ".join(text.split()), {})


def wrapped(text: str, width: int, indent: str = "", hanging: str = "    ") -> list[str]:
    """Return a paragraph as lines of at most `width` characters, those after the first indented further.

    A prompt in the text is broken up, so that no line of it is taken for a doctest.
    """
    return textwrap.wrap(
        " ".join(text.split()).replace(">>>", "> > >"),
        width,
        initial_indent=indent,
        subsequent_indent=indent + hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def paragraphs(text: str, width: int) -> list[str]:
    """Return documentation text as lines: paragraphs are filled, blank lines between them kept."""
    lines: list[str] = []
    for block in re.split(r"\n\s*\n", text.strip()):
        lines += [*([""] if lines else []), *wrapped(block, width, hanging="")]
    return lines


def _escaped(text: str, kept: dict[str, str]) -> str:
    return "".join(kept.get(c, c) if c in kept or c.isprintable() else _code(c) for c in text)


def _code(c: str) -> str:
    point = ord(c)
    if point < 0x100:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


class Names:
    """The names of one scope: each is given once, and none is a keyword or a name that generated code relies on.

    A name that is taken gets an underscore at its end.
    """

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken = set(reserved)

    def fresh(self, name: str) -> str:
        """Return a free name, `name` itself if it is one."""
        if not _IDENTIFIER.fullmatch(name):
            raise InternalError(f"{name!r} is no identifier")
        while name in self._taken or keyword.iskeyword(name):
            name += "_"
        self._taken.add(name)
        return name

    def reserve(self, *names: str) -> None:
        """Names that none may have."""
        self._taken.update(names)
