"""What specs/LANGUAGE.md claims: its specs load and are formatted, its mistakes draw the messages it shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from opgen.diagnostics import DiagnosticError
from opgen.spec import format_source, load_text
from opgen.spec.generic.forms import check_forms
from opgen.spec.model.expressions import ScalarFunction
from opgen.spec.resolve.words import SPEC

SPECS = Path(__file__).parents[2] / "specs"
PAGE = (SPECS / "LANGUAGE.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(op error|op|opgen|text)(?: \w+\.op)?\n(.*?)```", PAGE, re.DOTALL)
RIGHT = [text for kind, text in BLOCKS if kind in ("op", "opgen")]
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


def test_the_operators_of_models_are_short() -> None:
    (text,) = (text for kind, text in BLOCKS if kind == "opgen")
    lines = [len(op.split("\n")) for op in re.findall(r"^op .*?^}", text, re.DOTALL | re.MULTILINE)]
    assert len(lines) == 4
    assert max(lines) <= 15


def test_the_page_has_both() -> None:
    assert len(RIGHT) >= 7
    assert len(WRONG) >= 2


def test_every_scalar_function_is_on_the_page() -> None:
    functions = get_args(ScalarFunction)
    shown = {word for line in re.findall(r"^\| `.*$", PAGE, re.MULTILINE) for word in re.findall(r"\w+", line)}
    assert [name for name in functions if name not in shown] == []
    assert set(functions) <= SPEC
