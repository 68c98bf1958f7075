"""Text of a spec inside Java source: any content stays one string, one comment or one name."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

from opgen.diagnostics import InternalError
from opgen.spec.resolve import words

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;", "\\": "&#92;", "{": "&#123;", "}": "&#125;"}

OBJECT = frozenset(("clone", "equals", "finalize", "getClass", "hashCode", "notify", "notifyAll", "toString", "wait"))
"""Methods of every object."""


def string(text: str) -> str:
    """Return a Java string literal; all but plain ASCII is escaped.

    Half a pair of surrogates is replaced: javac reads the backslashes after its escape wrongly.
    """
    out: list[str] = []
    for c in text:
        if c in _ESCAPES:
            out.append(_ESCAPES[c])
        elif " " <= c <= "~":
            out.append(c)
        else:
            pair = ("\ufffd" if "\ud800" <= c <= "\udfff" else c).encode("utf-16-be")
            out += [f"\\u{pair[i : i + 2].hex()}" for i in range(0, len(pair), 2)]
    return f'"{"".join(out)}"'


def joined(text: str, width: int = 80) -> str:
    """Return a Java string, as several literals that are joined if it is long."""
    pieces = [""]
    for word in re.split(r"(?<= )", text):
        if pieces[-1] and len(pieces[-1]) + len(word) > width:
            pieces.append("")
        pieces[-1] += word
    return " + ".join(map(string, pieces))


def line_comment(text: str) -> str:
    """Return text for a comment of one line: Java reads `\\u` as an escape there, but not after a backslash."""
    return "".join(c if c.isprintable() else " " for c in text).replace("\\", "\\\\")


def javadoc_text(text: str) -> str:
    """Return text that is safe in a documentation comment: no tag, end or escape; `code` becomes code."""
    safe = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    safe = "".join(_HTML.get(c, c) for c in safe).replace("*/", "*&#47;")
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", safe)


def wrapped(text: str, width: int, hanging: str = "") -> list[str]:
    """Return a paragraph, escaped already, as lines; those after the first are indented."""
    return textwrap.wrap(
        " ".join(text.split()), width, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False
    )


def paragraphs(text: str, width: int) -> list[str]:
    """Return documentation text, escaped, as lines; a blank line and `<p>` separate its paragraphs."""
    lines: list[str] = []
    for block in re.split(r"\n\s*\n", text.strip()):
        head = "<p>" if lines else ""
        lines += [*([""] if lines else []), *wrapped(head + javadoc_text(block), width)]
    return lines


def javadoc(lines: Iterable[str], indent: int) -> str:
    """Return a documentation comment of lines that are escaped already."""
    margin = " " * indent
    given = list(lines)
    if len(given) == 1 and len(given[0]) + indent <= 110:
        return f"{margin}/** {given[0]} */"
    body = "".join(f"{margin} * {line}".rstrip() + "\n" for line in given)
    return f"{margin}/**\n{body}{margin} */"


class Names:
    """The names of one scope: each is given once, and none is a keyword of Java or a name in use.

    A name that is taken gets an underscore at its end.
    """

    def __init__(self, reserved: Iterable[str] = (), inherited: Iterable[str] = OBJECT) -> None:
        self._taken = {*words.JAVA, *inherited, *reserved, "_"}

    def fresh(self, name: str) -> str:
        """Return a free name, `name` itself if it is one."""
        if not _IDENTIFIER.fullmatch(name):
            raise InternalError(f"{name!r} is no identifier")
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name
