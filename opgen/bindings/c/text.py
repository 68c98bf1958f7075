"""Text of a spec inside C source: any content stays one string, one comment or one name."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

from opgen.diagnostics import InternalError
from opgen.spec.resolve import words

WIDTH = 100
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}

KEYWORDS = words.C | words.CPP | words.C_MACROS
"""Words that no name in a header for C and C++ can be."""


def string(text: str) -> str:
    """Return a C string literal, with every byte escaped that is not plain ASCII or could begin a trigraph."""
    out: list[str] = []
    for c in text:
        if c in _ESCAPES:
            out.append(_ESCAPES[c])
        elif c == "?":
            out.append("\\?" if out and out[-1].endswith("?") else "?")
        elif " " <= c <= "~":
            out.append(c)
        else:
            out += [f"\\{byte:03o}" for byte in c.encode("utf-8", "surrogatepass")]
    return f'"{"".join(out)}"'


def comment(text: str) -> str:
    """Return text that a comment may hold: it neither ends the comment nor begins another, and has no trigraph."""
    safe = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    safe = re.sub(r"\*(?=\\*\s*/)", "* ", safe)
    safe = re.sub(r"/(?=\\*\s*\*)", "/ ", safe)
    return re.sub(r"\?(?=\?)", "? ", safe)


def one_line(text: str) -> str:
    """Return text on one line, fit for a comment."""
    return comment(" ".join(text.split()))


def wrapped(text: str, width: int, indent: str = "", hanging: str = "    ") -> list[str]:
    """Return a paragraph as lines of at most `width` characters, those after the first indented further; escaped."""
    lines = textwrap.wrap(
        one_line(text),
        width,
        initial_indent=indent,
        subsequent_indent=indent + hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line + " ." if line.endswith("\\") else line for line in lines]


def paragraphs(text: str, width: int) -> list[str]:
    """Return documentation text as lines: paragraphs are filled, blank lines between them kept."""
    lines: list[str] = []
    for block in re.split(r"\n\s*\n", text.strip()):
        lines += [*([""] if lines else []), *wrapped(block, width, hanging="")]
    return lines


def block_comment(lines: Iterable[str], indent: str = "") -> str:
    """Return a documentation comment of lines that are escaped already."""
    body = "".join(f"{indent} * {line}".rstrip() + "\n" for line in lines)
    return f"/**\n{body}{indent} */"


class Names:
    """The names of one scope: each is given once, and none is a keyword of C or C++ or a name in use.

    A name that is taken gets an underscore at its end.
    """

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken = {*KEYWORDS, *reserved}

    def fresh(self, name: str) -> str:
        """Return a free name, `name` itself if it is one."""
        if not _IDENTIFIER.fullmatch(name):
            raise InternalError(f"{name!r} is no identifier")
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name
