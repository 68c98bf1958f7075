"""Algorithms that calls may be computed by: a spec can give an op others than its definition.

    with opgen.algorithms("off"):       # or "default", "all"
        y = nn_ops.op(x)

    default   the definition, or an algorithm that is not `optional` where it is estimated to be faster
    off       the definition only
    all       also optional algorithms, which are faster still and less exact

Outside of such blocks the environment variable OPGEN_ALGORITHMS decides.  A choice holds in the context (`contextvars`)
that made it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

from opgen.diagnostics import UserError, did_you_mean
from opgen.diagnostics.describe import describe

Mode = Literal["default", "off", "all"]
VARIABLE = "OPGEN_ALGORITHMS"

_MODES: tuple[Mode, ...] = ("default", "off", "all")
_asked: ContextVar[Mode | None] = ContextVar("opgen_algorithms", default=None)

asked = _asked.get
"""The enclosing block's mode; None outside of blocks.  Every call reads it, so it is the bare lookup."""


def mode() -> Mode:
    """Return the algorithms that calls may use here.  Raises UserError for an unknown word in the environment."""
    return asked() or _known(os.environ.get(VARIABLE) or "default", f"{VARIABLE} is")


@contextmanager
def algorithms(which: Mode) -> Iterator[None]:
    """Compute calls inside by their definitions ("off"), by equally exact algorithms ("default"), or by any ("all").

    Raises UserError for another word.
    """
    token = _asked.set(_known(which, "opgen.algorithms is given"))
    try:
        yield
    finally:
        _asked.reset(token)


def _known(word: object, asks: str) -> Mode:
    for known in _MODES:
        if word == known:
            return known
    hint = did_you_mean(word, _MODES) if isinstance(word, str) else ""
    raise UserError(f"{asks} {describe(word)}, expected default, off or all{f'; {hint}' if hint else ''}")
