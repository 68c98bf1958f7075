"""Gradients: the adjoint of an op's mathematics, as an op again."""

from opgen.grad.gradient import expand, gradient

__all__ = ["expand", "gradient"]
