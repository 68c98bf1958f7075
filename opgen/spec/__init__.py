"""The spec language: from text to the resolved model of its ops.

Modules that read text are imported on first use: a kernel can be built from a model without a parser.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opgen.spec.call.shapes import CallError, CallTypeError, Environment, evaluate, solve
    from opgen.spec.loading import flatten, load, load_text
    from opgen.spec.syntax.format import format_source

__all__ = [
    "CallError",
    "CallTypeError",
    "Environment",
    "evaluate",
    "flatten",
    "format_source",
    "load",
    "load_text",
    "solve",
]

_HOMES = {"format_source": "syntax.format", "flatten": "loading", "load": "loading", "load_text": "loading"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'opgen.spec' has no attribute {name!r}")
    found: object = getattr(importlib.import_module(f"opgen.spec.{_HOMES.get(name, 'call.shapes')}"), name)
    return found
