"""What specs/LANGUAGE.md claims: its specs load and are formatted, its mistakes draw the messages it shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opgen.diagnostics import DiagnosticError
from opgen.spec import format_source, load_text
from opgen.spec.generic.forms import check_forms

SPECS = Path(__file__).parents[2] / "specs"
BLOCKS = re.findall(r"```(op error|op|text)\n(.*?)```", (SPECS / "LANGUAGE.md").read_text(encoding="utf-8"), re.DOTALL)
RIGHT = [text for kind, text in BLOCKS if kind == "op"]
WRONG = [
    (text, message)
    for (kind, text), (_, message) in zip(BLOCKS, [*BLOCKS[1:], ("", "")], strict=True)
    if kind == "op error"
]


@pytest.mark.parametrize("text", RIGHT, ids=range(len(RIGHT)))
def test_specs_load_and_are_formatted(text: str) -> None:
    module = load_text(text, "page", SPECS)
    assert module.ops or module.generics
    check_forms(module)
    assert format_source(text) == text


@pytest.mark.parametrize(("text", "message"), WRONG, ids=range(len(WRONG)))
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        load_text(text, "page", SPECS)
    assert str(caught.value) == message.rstrip("\n")


def test_the_page_has_both() -> None:
    assert len(RIGHT) >= 7
    assert len(WRONG) >= 2
