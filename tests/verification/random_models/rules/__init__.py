"""Rules by which random models grow, a family of operators a file.

A rule takes the builder, chooses inputs among its values and attributes, and adds a node or a few.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tests.verification.random_models.build import Builder

Rule = Callable[[Builder], object]
Made = TypeVar("Made", bound=Rule)
RULES: dict[str, tuple[float, Rule]] = {}
"""All rules by name, with the weight by which they are chosen."""


def rule(weight: float = 1.0) -> Callable[[Made], Made]:
    """Register a rule."""

    def add(function: Made) -> Made:
        RULES[function.__name__] = weight, function
        return function

    return add
