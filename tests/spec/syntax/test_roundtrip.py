"""Printing and parsing undo each other; formatting keeps trees and comments, and is done once."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from opgen.diagnostics import Source
from opgen.spec import format_source
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.format import normalise
from opgen.spec.syntax.parse import parse
from opgen.spec.syntax.printer import WIDTH, print_file
from opgen.spec.syntax.trivia import comments_of
from tests.spec.strategies import files

ROOT = Path(__file__).parents[3]
SPECS = sorted([*(ROOT / "specs").glob("*.op"), *(ROOT / "tests/specs").glob("*.op")])


def read(text: str) -> s.File:
    return parse(Source("test", text))


@given(files)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_parse_undoes_print(tree: s.File) -> None:
    text = print_file(tree)
    assert read(text) == tree
    assert format_source(text) == text


def test_a_chain_without_else_keeps_its_brackets_before_an_else() -> None:
    tree = read("function a() -> a { return if a then (if a then b else (if a then c...)) else d }")
    assert read(print_file(tree)) == tree


@pytest.mark.parametrize("path", SPECS, ids=lambda p: p.name)
def test_checked_in_specs_are_formatted(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert format_source(text, str(path)) == text
    assert read(print_file(read(text))) == read(text)
    assert max(map(len, text.splitlines())) <= WIDTH


@pytest.mark.parametrize("seed", range(12))
def test_formatting_keeps_comments_and_trees(seed: int) -> None:
    """Comments and line breaks strewn between the tokens of a spec; the reproduction is the seed."""
    rng = random.Random(seed)
    text = SPECS[seed % len(SPECS)].read_text(encoding="utf-8")
    tokens = re.findall(r'"""(?:.|\n)*?"""|"(?:\\.|[^"\\\n])*"|\w+(?:\.\d+)?|//|[<>=!]=|\s+|.', text)
    strewn = []
    for i, token in enumerate(tokens):
        strewn.append(token)
        if token.isspace() and rng.random() < 0.03:
            strewn.append(rng.choice([f" # note {i}\n", f"\n\n# note {i}\n\n", "\n\n\n", "  "]))
    messy = "".join(strewn)
    done = format_source(messy)
    assert format_source(done) == done
    assert read(done) == read(messy)
    assert sorted(c.text for c in comments_of(done)) == sorted(c.text for c in comments_of(messy))


def test_formatting_of_comments() -> None:
    messy = """\
# The head.

\"\"\"Docs.\"\"\"   # about docs
import "a.op" # imported
# Leads the op.
op X{ # after the brace
  # first


  # second
  let a = 1 + # inside
     2      # trailing

  # closing
}
# The end.
"""
    assert (
        format_source(messy)
        == """\
# The head.

\"\"\"Docs.\"\"\"  # about docs

import "a.op"  # imported

# Leads the op.
op X {
  # after the brace
  # first

  # second
  # inside
  let a = 1 + 2  # trailing

  # closing
}

# The end.
"""
    )


def test_brackets_only_where_needed() -> None:
    text = "op X {\n  let a = (((1 + 2))) * (3 * 4) - (5 - 6) - (if b then (c) else (d)) + (x[(1)] else (2 + 3))\n}\n"
    assert format_source(text) == (
        "op X {\n  let a = (1 + 2) * (3 * 4) - (5 - 6) - (if b then c else d) + (x[1] else (2 + 3))\n}\n"
    )


def test_else_of_a_read_inside_then_keeps_its_brackets() -> None:
    text = "op X {\n  y[i] = if i < 1 then (x[i] else 0) else x[i - 1] else 0\n}\n"
    assert format_source(text) == text


def test_windows_line_ends_and_byte_order_mark() -> None:
    assert normalise("\ufeffop X {}\r\n") == "op X {}\n"
    assert format_source("op X {\r\n  let a = 1\r\n}\r\n") == "op X {\n  let a = 1\n}\n"
