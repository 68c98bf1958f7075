"""Strings and docstrings: what their text in a file stands for, and how a value is written again."""

from __future__ import annotations

import re

ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}
_WRITTEN = {value: "\\" + letter for letter, value in ESCAPES.items()}


def bad_escape(body: str) -> int | None:
    """The position of the first backslash in a string's body that begins no escape, or None."""
    for match in re.finditer(r"\\(.)", body, re.DOTALL):
        if match.group(1) not in ESCAPES:
            return match.start()
    return None


def unescape(body: str) -> str:
    """The value of a string's body (without its quotes)."""
    return re.sub(r"\\(.)", lambda m: ESCAPES.get(m.group(1), m.group(0)), body, flags=re.DOTALL)


def quote(value: str) -> str:
    """A string as it is written, quotes and all."""
    return '"' + "".join(_WRITTEN.get(c, c) for c in value) + '"'


def clean_doc(body: str) -> str:
    """A docstring without common indentation, trailing blanks and outer blank lines; the first line counts apart."""
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
    """A docstring as it is written, line by line, without indentation: on one line where it can be."""
    if "\n" in value or value.endswith('"') or value != value.strip():
        return ['"""', *value.split("\n"), '"""']
    return [f'"""{value}"""']


def plural(count: int, noun: str) -> str:
    """`1 element`, `2 elements`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
