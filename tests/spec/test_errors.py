"""Messages of mistakes, word for word: each spec in tests/errors has what it draws beside it.

The examples of the codes themselves are in specs/ERRORS.md (`tests/cli/test_explain.py`).

OPGEN_UPDATE=1 writes the expectations anew; read the difference before keeping it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from opgen.diagnostics import DiagnosticError
from opgen.examples import verify_examples
from opgen.grad import load
from opgen.spec.generic.forms import check_forms

FOLDER = Path(__file__).parent.parent / "errors"
SPECS = sorted(path.name for path in FOLDER.glob("*.op"))


def check(name: str) -> None:
    """Check a spec as `opgen check` does."""
    module = load(name)
    check_forms(module)
    verify_examples(module)


@pytest.mark.parametrize("name", SPECS)
def test_message(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)
    with pytest.raises(DiagnosticError) as caught:
        check(name)
    expectation = (FOLDER / name).with_suffix(".txt")
    rendered = str(caught.value) + "\n"
    if os.environ.get("OPGEN_UPDATE"):
        expectation.write_text(rendered, encoding="utf-8")
    assert rendered == expectation.read_text(encoding="utf-8")
    codes = {d.code for d in caught.value.diagnostics}
    assert name.split("_")[0] in codes
    assert all(d.span is not None for d in caught.value.diagnostics)


def test_every_expectation_has_a_spec() -> None:
    assert {p.stem for p in FOLDER.glob("*.txt")} == {p.stem for p in FOLDER.glob("*.op")}
