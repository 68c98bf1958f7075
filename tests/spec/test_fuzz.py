"""Ten thousand damaged specs: each one loads, or draws diagnostics with a place in its text; nothing else comes out."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from opgen.diagnostics import DiagnosticError
from opgen.spec import format_source, load_text
from tests.support.mutation import ROOT, SNIPPETS, TOKENS, mutate

BATCHES, EACH = 40, 250


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
