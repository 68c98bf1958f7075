"""Damaged spec texts."""

from __future__ import annotations

import random
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def snippets() -> list[str]:
    """The declarations of all specs one by one: small, so that many mutations run in little time."""
    paths = sorted([*(ROOT / "specs").glob("*.op"), *(ROOT / "tests/specs").glob("*.op")])
    texts = [path.read_text(encoding="utf-8") for path in paths]
    return [part for text in texts for part in re.split(r"(?m)^(?=op |function |fragment )", text)[1:]]


SNIPPETS = snippets()
ODD = ["\0", "\u2028", "é", "\t", "9" * 30, "not "]
TOKENS = [*sorted(set(re.findall(r'\w+|"""|[^\w\s]', "".join(SNIPPETS)))), *ODD]


def mutate(text: str, rng: random.Random) -> str:
    for _ in range(rng.randint(1, 3)):
        at, length = rng.randrange(len(text) + 1), rng.choice((1, 1, 2, 5, 20))
        words = list(re.finditer(r"\w+|[^\w\s]", text)) or [None]
        word = rng.choice(words)
        kind = rng.randrange(7)
        if kind == 0:
            text = text[:at] + text[at + length :]
        elif kind == 1:
            text = text[:at] + rng.choice(TOKENS) + text[at:]
        elif kind == 2:
            text = text[:at] + chr(rng.randrange(32, 127)) + text[at + 1 :]
        elif kind == 3:
            other = rng.randrange(len(text) + 1)
            text = text[:at] + text[other : other + length * 4] + text[at:]
        elif kind == 4:
            text = text[:at]
        elif word is not None:
            new = rng.choice(TOKENS) if kind == 5 else ""
            text = text[: word.start()] + new + text[word.end() :]
    return text
