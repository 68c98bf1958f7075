"""Long statements over several lines, as formatters write them: the last bracket that opens is split."""

from __future__ import annotations

from collections.abc import Iterator

from opgen.bindings.python.text import WIDTH

_OPEN, _CLOSE = "([{", ")]}"


def fit(statement: str, indent: int) -> list[str]:
    """Break a statement into lines of at most 120 columns, where its brackets allow it; `indent` is not added."""
    if len(statement) + indent <= WIDTH:
        return [statement]
    margin = " " * (len(statement) - len(statement.lstrip()))
    if statement.lstrip().startswith("if "):
        return _condition(statement.strip().removeprefix("if ").removesuffix(":"), margin)
    span = _widest_bracket(statement)
    if span is None:
        return [statement]
    start, end = span
    inside, tail = statement[start + 1 : end].strip().removesuffix(","), statement[end:]
    room = WIDTH - indent - len(margin) - 4
    if len(inside) <= room and not _is_keyed(inside):
        return [statement[: start + 1], f"{margin}    {inside}" + _comma(inside, statement, start), f"{margin}{tail}"]
    parts = [f"{margin}    {part.strip()}," for part in _split(inside)]
    return [statement[: start + 1], *(line for p in parts for line in fit(p, indent)), f"{margin}{tail}"]


def _condition(text: str, margin: str) -> list[str]:
    """`if` with a condition in parentheses, a line for each of its outer parts."""
    word = " or " if _parts(text, " or ") else " and "
    first, *rest = _parts(text, word) or [text]
    return [f"{margin}if (", f"{margin}    {first}", *(f"{margin}    {word.strip()} {p}" for p in rest), f"{margin}):"]


def _parts(text: str, word: str) -> list[str]:
    """Return the text at a word outside brackets and strings, if it is there."""
    cuts = [i for i, c in _outside_strings(text) if text.startswith(word, i) and _depth(text, i) == 0]
    starts = [0, *(i + len(word) for i in cuts)]
    return [text[a:b] for a, b in zip(starts, [*cuts, len(text)], strict=True)] if cuts else []


def _comma(inside: str, statement: str, start: int) -> str:
    """Return the comma that a tuple of one keeps."""
    return "," if statement[start + 1 :].strip().startswith(f"{inside},") else ""


def _is_keyed(inside: str) -> bool:
    return any(True for position, c in _outside_strings(inside) if c == ":" and _depth(inside, position) == 0)


def _depth(text: str, stop: int) -> int:
    depth = 0
    for position, c in _outside_strings(text):
        if position >= stop:
            break
        depth += (c in _OPEN) - (c in _CLOSE)
    return depth


def _widest_bracket(text: str) -> tuple[int, int] | None:
    """Return the outermost bracket that holds the most text."""
    best: tuple[int, int] | None = None
    opened: list[int] = []
    for position, c in _outside_strings(text):
        if c in _OPEN:
            opened.append(position)
        elif c in _CLOSE:
            start = opened.pop()
            if not opened and (best is None or position - start > best[1] - best[0]):
                best = (start, position)
    return best if best is not None and best[1] - best[0] > 1 else None


def _split(text: str) -> list[str]:
    """Split at the commas outside brackets and strings."""
    parts, depth, start = [], 0, 0
    for position, c in _outside_strings(text):
        depth += (c in _OPEN) - (c in _CLOSE)
        if c == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    return [*parts, text[start:]]


def _outside_strings(text: str) -> Iterator[tuple[int, str]]:
    """Yield the characters outside string literals, with their positions."""
    quoted = escaped = False
    for position, c in enumerate(text):
        if quoted:
            quoted = escaped or c != '"'
            escaped = c == "\\" and not escaped
        elif c == '"':
            quoted, escaped = True, False
        else:
            yield position, c
