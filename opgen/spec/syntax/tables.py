"""Precomputed parser tables: lark takes ten times as long to make them as to read them.

They are stored next to the grammar as JSON (`python -m tools.tables` writes them), with the grammar's hash and lark's
version.  If either differs, lark makes new tables.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
from importlib import resources
from typing import Any

import lark

_FILES = resources.files("opgen.spec.syntax")
NAME = "grammar.json"
_SHIFT = 0
"""The shift action of a parse table; the other action reduces by a rule."""


def parser() -> lark.Lark:
    """Return the LALR parser of specs; `start` is "start" (a file) or "open" (an expression)."""
    grammar = _FILES.joinpath("grammar.lark").read_text(encoding="utf-8")
    return kept(grammar) or made(grammar)


def made(grammar: str) -> lark.Lark:
    """Return the parser with tables made by lark from the grammar."""
    return lark.Lark(grammar, parser="lalr", propagate_positions=True, start=["start", "open"], maybe_placeholders=True)


def text() -> str:
    """Return the content of the file, reproducibly."""
    grammar = _FILES.joinpath("grammar.lark").read_text(encoding="utf-8")
    saved = io.BytesIO()
    made(grammar).save(saved)
    tables = pickle.loads(saved.getvalue())
    frontend = tables["data"]["parser"]
    frontend["parser"] = _in_order(frontend["parser"])
    return json.dumps({"made_of": _made_of(grammar), **tables}, separators=(",", ":")) + "\n"


def _in_order(table: dict[str, Any]) -> dict[str, Any]:
    """Number tokens by their names, and states in the order of a traversal from the start.

    Lark numbers both in the order of sets.
    """
    names: dict[int, str] = table["tokens"]
    rows = {
        state: sorted((names[token], action) for token, action in row.items()) for state, row in table["states"].items()
    }
    numbers = {name: number for number, name in enumerate(sorted(names.values()))}
    met = list(dict.fromkeys(state for _, state in sorted(table["start_states"].items())))
    for state in met:  # grows as it goes
        met += dict.fromkeys(to for _, (kind, to) in rows[state] if kind == _SHIFT and to not in met)
    place = {state: number for number, state in enumerate(met)}

    def moved(kind: int, to: Any) -> tuple[int, Any]:
        return kind, place[to] if kind == _SHIFT else to

    return {
        **table,
        "tokens": {number: name for name, number in numbers.items()},
        "states": {place[s]: {numbers[name]: moved(*action) for name, action in rows[s]} for s in met},
        "start_states": {name: place[s] for name, s in sorted(table["start_states"].items())},
        "end_states": {name: place[s] for name, s in sorted(table["end_states"].items())},
    }


def _made_of(grammar: str) -> list[str]:
    return [lark.__version__, hashlib.sha256(grammar.encode()).hexdigest()]


def kept(grammar: str) -> lark.Lark | None:
    """Return the parser with the stored tables; None if there are none for this grammar and this lark."""
    try:
        found = json.loads(_FILES.joinpath(NAME).read_bytes(), object_hook=_with_numbers)
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict) or found.pop("made_of", None) != _made_of(grammar):
        return None
    return lark.Lark.load(io.BytesIO(pickle.dumps(found)))


def _with_numbers(table: dict[str, Any]) -> dict[Any, Any]:
    """Restore a table's integer keys, which are strings in JSON; names are never numbers."""
    return {int(k): v for k, v in table.items()} if next(iter(table), "").isdigit() else table
