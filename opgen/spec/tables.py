"""The parser's tables, worked out beforehand: lark takes ten times as long to make them as to read them.

They lie beside the grammar as JSON (`python -m tools.tables` writes them), with the grammar's hash and lark's version:
with another of either, lark makes them anew.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
from importlib import resources
from typing import Any

import lark

_FILES = resources.files("opgen.spec")
NAME = "grammar.json"


def parser() -> lark.Lark:
    """The LALR parser of specs; `start` is "start" (a file) or "open" (an expression)."""
    grammar = _FILES.joinpath("grammar.lark").read_text(encoding="utf-8")
    return kept(grammar) or made(grammar)


def made(grammar: str) -> lark.Lark:
    """The parser, with tables that lark makes of the grammar."""
    return lark.Lark(grammar, parser="lalr", propagate_positions=True, start=["start", "open"], maybe_placeholders=True)


def text() -> str:
    """What the file is to hold."""
    grammar = _FILES.joinpath("grammar.lark").read_text(encoding="utf-8")
    saved = io.BytesIO()
    made(grammar).save(saved)
    tables = pickle.loads(saved.getvalue())
    return json.dumps({"made_of": _made_of(grammar), **tables}, separators=(",", ":")) + "\n"


def _made_of(grammar: str) -> list[str]:
    return [lark.__version__, hashlib.sha256(grammar.encode()).hexdigest()]


def kept(grammar: str) -> lark.Lark | None:
    """The parser with the tables of the file; None if there are none for this grammar and this lark."""
    try:
        found = json.loads(_FILES.joinpath(NAME).read_bytes(), object_hook=_with_numbers)
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict) or found.pop("made_of", None) != _made_of(grammar):
        return None
    return lark.Lark.load(io.BytesIO(pickle.dumps(found)))


def _with_numbers(table: dict[str, Any]) -> dict[Any, Any]:
    """A table by numbers, which JSON has as texts; no name is a number."""
    return {int(k): v for k, v in table.items()} if next(iter(table), "").isdigit() else table
