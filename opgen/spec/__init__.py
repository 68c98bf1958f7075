"""The spec language: from text to the resolved model of its ops."""

from opgen.spec.format import format_source
from opgen.spec.load import flatten, load, load_text
from opgen.spec.shapes import CallError, CallTypeError, Environment, evaluate, solve

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
