"""Random models from a seed."""

from __future__ import annotations

import random

from tests.verification.random_models.build import Builder, UnusableError
from tests.verification.random_models.rules import (
    RULES,
    contractions,
    control,
    movement,
    pointwise,
    quantised,
    reductions,
)

FAMILIES = (contractions, control, movement, pointwise, quantised, reductions)
"""Imported for their rules."""
TRIES = 12
"""Rules that are tried for each node that a model shall have: many do not fit what is there."""


def generate(choose: random.Random) -> Builder:
    """Return a model of at least one node and at most twelve, those that its rules add at once beside them."""
    builder = Builder(
        choose,
        empty=choose.random() < 0.15,
        special=choose.random() < 0.25,
        symbolic=choose.random() < 0.6,
    )
    wanted = choose.randint(1, 12)
    rules = [r for _, r in RULES.values()]
    weights = [w for w, _ in RULES.values()]
    for _ in range(TRIES * wanted):
        if len(builder.steps) >= wanted:
            break
        try:
            choose.choices(rules, weights)[0](builder)
        except UnusableError:
            continue
    return builder if builder.steps else generate(choose)
