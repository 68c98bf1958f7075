"""Long lines of C over several, as a person would break them: after a comma or before an operator."""

from __future__ import annotations

from collections.abc import Iterator

from opgen.bindings.c.text import WIDTH

_BREAKS = (" && ", " || ", " ? ", " : ", " = ")


def fitted(source: str) -> str:
    """The source with its lines within the width, where there is a place to break them; comments stay as they are."""
    return "".join(f"{part}\n" for line in source.removesuffix("\n").split("\n") for part in _fit(line))


def _fit(line: str) -> Iterator[str]:
    margin = " " * (len(line) - len(line.lstrip()))
    if line.lstrip().startswith(("#", "*")):
        yield line
        return
    if line.lstrip().startswith("/*") and line.endswith("*/"):
        yield from _fit_comment(line, margin)
        return
    while len(line) > WIDTH:
        at = _place(line, len(margin) + 8)
        if at is None:
            break
        yield line[:at].rstrip()
        line = f"{margin}    {line[at:].lstrip()}"
        margin = line[: len(line) - len(line.lstrip())] if len(margin) == 0 else margin
        margin = line[: len(line) - len(line.lstrip()) - 4]
    yield line


def _fit_comment(line: str, margin: str) -> Iterator[str]:
    text = line.strip()[2:-2].strip()
    lines, current = [], f"{margin}/*"
    for word in text.split(" "):
        if len(current) + len(word) + 4 > WIDTH:
            lines.append(current)
            current = f"{margin}   "
        current += f" {word}"
    yield from (*lines, f"{current} */")


def _place(line: str, least: int) -> int | None:
    """The last place within the width, outside strings, where a line may be broken; before there is none."""
    quoted = escaped = False
    best = None
    for i, c in enumerate(line[: WIDTH + 1]):
        if quoted:
            quoted = escaped or c != '"'
            escaped = c == "\\" and not escaped
        elif c == '"':
            quoted, escaped = True, False
        elif i > least and c == " " and (line[i - 1] == "," or any(line.startswith(b, i) for b in _BREAKS[:4])):
            best = i
    return best
