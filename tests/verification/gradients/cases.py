"""The calls whose gradients are compared with differences, of `cases.txt`, and the operators that are left out."""

from __future__ import annotations

from pathlib import Path

_FILE = Path(__file__).with_name("cases.txt")

CASES: list[tuple[str, str]] = [
    (name, case)
    for name, _, case in (line.partition(" ") for line in _FILE.read_text(encoding="utf-8").splitlines())
    if name != "#"
]
"""Operators and calls."""

DISCRETE = {
    "Arange": "its numbers are of a count that its inputs decide",
    "Bernoulli": "0 or 1, by chance",
    "Binarizer": "0 or 1",
    "BitCast": "bits, not values",
    "DynamicQuantizeLinear": "of steps, in float32 alone",
    "TfIdfVectorizer": "it counts; its weights are of float32 alone",
    "Unique": "its numbers are of a count that its input decides",
}
"""Operators that have floats in and out and are left out, with the reason."""
