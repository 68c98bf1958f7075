"""Strings and docstrings: conversions between their spelling in a file and their value."""

from __future__ import annotations

import re

ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}
_WRITTEN = {value: "\\" + letter for letter, value in ESCAPES.items()}


def bad_escape(body: str) -> int | None:
    """Return the position of the first invalid escape in a string's body, or None."""
    for match in re.finditer(r"\\(.)", body, re.DOTALL):
        if match.group(1) not in ESCAPES:
            return match.start()
    return None


def unescape(body: str) -> str:
    """Return the value of a string's body (without its quotes)."""
    return re.sub(r"\\(.)", lambda m: ESCAPES.get(m.group(1), m.group(0)), body, flags=re.DOTALL)


def quote(value: str) -> str:
    """Quote and escape a string."""
    return '"' + "".join(_WRITTEN.get(c, c) for c in value) + '"'


def clean_doc(body: str) -> str:
    """Strip common indentation, trailing blanks and outer blank lines; the first line's indentation does not count."""
    lines = [line.expandtabs(8).rstrip() for line in body.split("\n")]
    rest = [len(line) - len(line.lstrip(" ")) for line in lines[1:] if line]
    margin = min(rest, default=0)
    lines = [lines[0].lstrip(), *(line[margin:] for line in lines[1:])]
    while lines and not lines[0]:
        del lines[0]
    while lines and not lines[-1]:
        del lines[-1]
    return "\n".join(lines)


def doc_lines(value: str) -> list[str]:
    """Return the lines of a docstring without indentation: one line if possible."""
    if "\n" in value or value.endswith('"') or value != value.strip():
        return ['"""', *value.split("\n"), '"""']
    return [f'"""{value}"""']


def plural(count: int, noun: str) -> str:
    """Return `1 element`, `2 elements`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
