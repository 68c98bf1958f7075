"""Text of a spec inside C source: whatever it holds, it stays the string, the comment or the name that it is."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

from opgen.diagnostics import InternalError

WIDTH = 100
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}

_C = "auto break case char const continue default do double else enum extern float for goto if inline int long"
_C += " register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while"
_CPP = "alignas alignof and and_eq asm bitand bitor bool catch char16_t char32_t char8_t class compl concept constexpr"
_CPP += " const_cast co_await co_return co_yield decltype delete dynamic_cast explicit export false friend mutable"
_CPP += (
    " namespace new noexcept not not_eq nullptr operator or or_eq private protected public reinterpret_cast requires"
)
_CPP += " static_assert static_cast template this thread_local throw true try typeid typename using virtual wchar_t xor"
_CPP += " xor_eq NULL errno stdin stdout stderr assert offsetof main linux unix typeof"
KEYWORDS = frozenset(f"{_C} {_CPP}".split())
"""Words that no name in a header for C and C++ can be."""


def string(text: str) -> str:
    """A C string literal.  Every byte that is not plain ASCII is escaped, and so is what could begin a trigraph."""
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
    """Text that a comment may hold: it neither ends the comment nor begins another, and has no trigraph."""
    safe = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    safe = re.sub(r"\*(?=\\*\s*/)", "* ", safe)
    safe = re.sub(r"/(?=\\*\s*\*)", "/ ", safe)
    return re.sub(r"\?(?=\?)", "? ", safe)


def one_line(text: str) -> str:
    """Text on one line, fit for a comment."""
    return comment(" ".join(text.split()))


def wrapped(text: str, width: int, indent: str = "", hanging: str = "    ") -> list[str]:
    """A paragraph as lines of at most `width` characters, those after the first indented further; escaped."""
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
    """Documentation text as lines: paragraphs are filled, blank lines between them kept."""
    lines: list[str] = []
    for block in re.split(r"\n\s*\n", text.strip()):
        lines += [*([""] if lines else []), *wrapped(block, width, hanging="")]
    return lines


def block_comment(lines: Iterable[str], indent: str = "") -> str:
    """A documentation comment of lines that are escaped already."""
    body = "".join(f"{indent} * {line}".rstrip() + "\n" for line in lines)
    return f"/**\n{body}{indent} */"


class Names:
    """The names of one scope: each is given once, and none is a keyword of C or C++ or a name in use.

    A name that is taken gets an underscore at its end.
    """

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken = {*KEYWORDS, *reserved}

    def fresh(self, name: str) -> str:
        """A free name, `name` itself if it is one."""
        if not _IDENTIFIER.fullmatch(name):
            raise InternalError(f"{name!r} is no identifier")
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name
