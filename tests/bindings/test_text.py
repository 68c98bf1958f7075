"""Text of a spec inside Python source, whatever it holds."""

from __future__ import annotations

import ast
import random

import pytest

from opgen.bindings.python.layout import fit
from opgen.bindings.python.text import Names, comment, docstring, literal, paragraphs
from opgen.diagnostics import InternalError

PIECES = (
    '"', "'", "\\", '"""', "'''", "\n", "\r", "\t", "\0", "a b", " ", "{{ x }}", "{% raw %}", "*/", "//", "#",
    "\u202e", "\u2028",
    "é", "😀", "\\N{BULLET}", "\\x41", ">>> import os", 'os.system("x")', "\ud800",
)  # fmt: skip


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().split("\n")]


@pytest.mark.parametrize("seed", range(20))
def test_hostile_text_stays_in_its_place(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(300):
        text = "".join(rng.choices(PIECES, k=rng.randrange(9)))
        where = f"seed {seed}: {text!r}"
        assert ast.literal_eval(literal(text)) == text, where
        assert "\n" not in literal(text), where
        body = ast.parse(f"def f():\n    {docstring(text, 4)}\n    return 1\n").body
        assert len(body) == 1, where
        function = body[0]
        assert isinstance(function, ast.FunctionDef), where
        assert len(function.body) == 2, where
        assert _lines(ast.get_docstring(function, clean=False) or "") == _lines(text), where
        assert ast.parse(f"# {comment(text)}\n").body == [], where


def test_no_line_becomes_a_doctest() -> None:
    for line in paragraphs("an op\n\n>>> import os\n>>> os.abort()\n\n    >>> 1", 80):
        assert ">>>" not in line


@pytest.mark.parametrize(
    ("value", "source"),
    [(None, "None"), (True, "True"), (3, "3"), (0.5, "0.5"), (float("inf"), 'float("inf")'),
     ((1, (2.0,)), "[1, [2.0]]"),
     ("a\nb", '"a\\nb"'), ("é", '"é"'), ("\u202e", '"\\u202e"')],
)  # fmt: skip
def test_literals(value: object, source: str) -> None:
    assert literal(value) == source


def test_names_are_unique_and_free() -> None:
    names = Names({"check"})
    assert [names.fresh(n) for n in ("a", "a", "check", "lambda", "a_")] == ["a", "a_", "check_", "lambda_", "a__"]
    for bad in ("a b", "1a", "", "a;b", "é", "a\n"):
        with pytest.raises(InternalError):
            names.fresh(bad)


def test_long_statements_are_taken_apart() -> None:
    short = "x = f(a, b)"
    assert fit(short, 4) == [short]
    names = [f"argument_{i}" for i in range(20)]
    lines = fit(f"x = f({', '.join(names)})", 4)
    assert lines == ["x = f(", *(f"    {n}," for n in names), ")"]
    middle = fit(f"x = f({', '.join([*names[:8], 'y' * 14])})", 4)
    assert middle == ["x = f(", "    " + ", ".join([*names[:8], "y" * 14]), ")"]


def test_brackets_in_strings_do_not_count() -> None:
    text = '"' + ")" * 50 + '\\"' + "(" * 50 + '"'
    assert fit(f'f({text}, {text[:60]}x")', 0)[0] == "f("
