"""Ten thousand damaged specs: each one loads, or draws diagnostics with a place in its text; nothing else comes out."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from opgen.diagnostics import DiagnosticError
from opgen.spec import format_source, load_text

ROOT = Path(__file__).parents[2]
BATCHES, EACH = 40, 250


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


def check(text: str, base: Path | None) -> bool:
    """Whether a text loads; anything but a diagnostic with a place inside the text fails the test."""
    try:
        load_text(text, "fuzz", base)
    except DiagnosticError as error:
        for diagnostic in error.diagnostics:
            span = diagnostic.span
            assert span is not None, diagnostic
            assert 1 <= span.line <= span.source.text.count("\n") + 1, diagnostic
            assert 1 <= span.column <= len(span.source.line(span.line)) + 2, diagnostic
        return False
    return True


@pytest.mark.parametrize("batch", range(BATCHES))
def test_mutations_draw_only_diagnostics(batch: int) -> None:
    for number in range(EACH):
        seed = batch * EACH + number
        rng = random.Random(seed)
        snippet = rng.choice(SNIPPETS)
        imports = rng.random() < 0.05
        text = mutate('import "window.op"\n' + snippet if imports else snippet, rng)
        try:
            loaded = check(text, ROOT / "specs" if imports else None)
            if loaded:
                assert format_source(format_source(text)) == format_source(text)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r} for the text\n{text}") from error


def test_the_snippets_are_the_whole_language() -> None:
    assert len(SNIPPETS) >= 13
    assert {"sum", "prod", "max", "min", "fragment", "function", "enum", "layout", "else"} <= set(TOKENS)
