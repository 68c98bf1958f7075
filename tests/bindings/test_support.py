"""The page of support: whatever texts a spec holds, it keeps its tables, its headings and its lists."""

from __future__ import annotations

import os
import random

import pytest
from markdown_it import MarkdownIt

from opgen.bindings.docs.support import support_page
from opgen.grad.load import load_text
from opgen.spec.model.model import Module

MARKS = [
    "|",
    "`",
    "```",
    "~~~",
    "#",
    "---",
    "===",
    "* ",
    "- ",
    "1. ",
    "> ",
    "<b>",
    "</td>",
    "<!--",
    "&lt;",
    "|---|",
    " ",
    "a",
]
MARKS += ["[x]: y", "\n\n", "\n", "$$", "![", "](", "_", "word"]


def _page(text: str) -> str:
    return support_page(_module(text), "marks.op")


def _module(text: str) -> Module:
    said = text.replace("\\", "").replace('"', "")
    inside = said.replace("{", "").replace("}", "").replace("\n", "\\n")
    return load_text(
        f"""op Marks {{
  \"\"\"{said}\"\"\"
  type T in {{float32}}
  input x: T[n]
  attr pad: enum {{A, B}} = A \"\"\"{said}\"\"\"
  output y: T[n]
  require n > 0 : x "{inside}"
  y[i] = if pad == A then x[i] else -x[i]
  algorithm quick {{
    \"\"\"{said}\"\"\"
    when n > 7
    y[i] = x[i]
  }}
}}
"""
    )


def _blocks(page: str) -> list[str]:
    return [t.type for t in MarkdownIt("commonmark").enable("table").parse(page) if t.type != "inline"]


PLAIN = _blocks(_page("word"))


@pytest.mark.parametrize("text", MARKS)
def test_marks_keep_the_page(text: str) -> None:
    assert _blocks(_page(f"{text} word")) == PLAIN


def test_random_texts_keep_the_page() -> None:
    seed = int(os.environ.get("OPGEN_SEED", random.randrange(10**6)))
    print(f"OPGEN_SEED={seed}")
    rng = random.Random(seed)
    for _ in range(300):
        text = "".join(rng.choice(MARKS) for _ in range(rng.randint(1, 12))) + "word"
        assert _blocks(_page(text)) == PLAIN, repr(text)
