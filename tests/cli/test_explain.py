"""`opgen explain`, and the page of all codes: each code is drawn by its own example."""

from __future__ import annotations

import json

import pytest

from opgen.cli.explain import drawn
from opgen.diagnostics import Diagnostic, InternalError
from opgen.diagnostics.codes import CODES
from opgen.diagnostics.codes.code import Code
from tests.cli.conftest import Run
from tools.error_page import PLACE, page


@pytest.mark.parametrize("code", CODES.values(), ids=list(CODES))
def test_the_example_draws_the_code_and_no_other(code: Code) -> None:
    assert {found.code for found in drawn(code).diagnostics} == {code.name}


def test_the_page_is_what_the_codes_give() -> None:
    """After a change: python -m tools.error_page."""
    assert PLACE.read_text(encoding="utf-8") == page()


def test_a_code_that_is_not_declared_is_a_bug() -> None:
    with pytest.raises(InternalError, match="the code 'S999' is not declared"):
        Diagnostic("S999", "not good")


def test_a_code_is_explained_with_what_its_example_draws(here: Run) -> None:
    result = here("explain", "s012")
    assert result.returncode == 0
    assert result.stdout.startswith("S012: an unknown name\n\nNo type, dimension,")
    assert "      type T in {float33}\n" in result.stdout
    assert "    S012.op:2:14: error[S012]: unknown type 'float33'\n" in result.stdout
    assert "\nremedy: Correct the spelling" in result.stdout


def test_programs_get_the_same_as_json(here: Run) -> None:
    found = json.loads(here("explain", "schedule", "--json").stdout)
    assert found["code"] == "schedule"
    assert found["example"] == "split x four\n"
    assert found["message"].startswith("schedule.schedule:1:9: error[schedule]: 'four' is not an integer\n")


def test_all_codes_are_listed(here: Run) -> None:
    rows = here("explain").stdout.splitlines()
    assert [row.split()[0] for row in rows] == list(CODES)
    assert [found["code"] for found in json.loads(here("explain", "--json").stdout)] == list(CODES)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("S0012", "did you mean 'S012'?"), ("loop-nmae", "did you mean 'loop-name'?"), ("?", "'opgen explain' lists all")],
)
def test_an_unknown_code_is_refused(name: str, hint: str, here: Run) -> None:
    result = here("explain", name)
    assert result.returncode == 1
    assert result.stderr == f"error: unknown code '{name}'; {hint}\n"
