"""Cliffs: the same computation written in two ways, or at neighbouring sizes, that takes far longer in one of them."""
