"""Long lines of C over several, as a person would break them: after a comma or before an operator."""

from __future__ import annotations

from collections.abc import Iterator

from opgen.bindings.c.text import WIDTH

_BREAKS = (" && ", " || ", " ? ", " : ")


def fitted(source: str) -> str:
    """Fit the lines of a source into the width, where there is a place to break them; comments stay unchanged."""
    return "".join(f"{part}\n" for line in source.removesuffix("\n").split("\n") for part in _fit(line))


def _fit(line: str) -> Iterator[str]:
    code = line.lstrip()
    margin = line[: len(line) - len(code)]
    if code.startswith(("#", "*")):
        yield line
    elif code.startswith("/*"):
        yield from _fit_comment(line, margin) if len(line) > WIDTH and code.endswith("*/") else (line,)
    else:
        while (at := _place(line, len(margin) + 8)) is not None:
            yield line[:at].rstrip()
            line = f"{margin}    {line[at:].lstrip()}"
        yield line


def _fit_comment(line: str, margin: str) -> Iterator[str]:
    """Yield a comment of one line over several."""
    opening, *words = line.split()
    current = f"{margin}{opening}"
    for word in words:
        if len(current) + len(word) + 1 > WIDTH:
            yield current
            current = f"{margin}  "
        current += f" {word}"
    yield current


def _place(line: str, least: int) -> int | None:
    """Return the last place within the width, outside strings, to break a long line; None if there is none."""
    if len(line) <= WIDTH:
        return None
    quoted = escaped = False
    best = None
    for i, c in enumerate(line[: WIDTH + 1]):
        if quoted:
            quoted = escaped or c != '"'
            escaped = c == "\\" and not escaped
        elif c == '"':
            quoted, escaped = True, False
        elif i > least and c == " " and (line[i - 1] == "," or any(line.startswith(b, i) for b in _BREAKS)):
            best = i
    return best
