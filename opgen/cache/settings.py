"""Environment variables: the table of all, their words and numbers.  (Cache maintenance runs without numpy.)"""

from __future__ import annotations

import os
from collections.abc import Mapping

from opgen.diagnostics import UserError, did_you_mean

_LENGTH = 80

SETTINGS: Mapping[str, tuple[str, ...]] = {
    "OPGEN_NUM_THREADS": (),
    "OPGEN_THREADING": ("pthread", "openmp", "serial"),
    "OPGEN_ALGORITHMS": ("default", "off", "all"),
    "OPGEN_SPECIALIZE": ("auto", "always", "never"),
    "OPGEN_MACHINE": (),
    "OPGEN_COUNTERS": ("1", "0"),
    "OPGEN_DEVICE": (),
    "OPGEN_TUNED": (),
    "OPGEN_CACHE_DIR": (),
    "OPGEN_CACHE": ("off", "on"),
    "OPGEN_CACHE_MIB": (),
    "OPGEN_MODEL_MIB": (),
    "OPGEN_MODEL_GOPS": (),
    "OPGEN_PERF": ("map",),
    "OPGEN_DEBUG": ("1", "0"),
    "OPGEN_FALLBACK": ("raise",),
}
"""Every variable that opgen reads, with its words; empty for numbers, names and files."""


def word(name: str) -> str:
    """Return the word of a variable, "" where it is not set.  Raises UserError for an unknown word."""
    given = os.environ.get(name, "").strip()
    words = SETTINGS[name]
    if given and given not in words:
        hint = did_you_mean(given, words)
        expected = " or ".join((", ".join(words[:-1]), words[-1]) if words[1:] else (*words, "nothing"))
        raise UserError(f"{name}: expected {expected}, given {shown(given)}{f'; {hint}' if hint else ''}")
    return given


def shown(text: str) -> str:
    """Return the beginning of a setting's text, quoted for a message."""
    quoted = repr(text[: _LENGTH + 1])
    return quoted if len(quoted) <= _LENGTH else f"{quoted[: _LENGTH - 3]}..."


def whole_number(text: str) -> int | None:
    """Return the number that a setting's text denotes; None if it is not a number, or has more than 18 digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None
