"""Gradients: the adjoint of an op's mathematics, as an op again."""

from opgen.grad.gradient import expand, gradient
from opgen.grad.load import derived, load, load_text

__all__ = ["derived", "expand", "gradient", "load", "load_text"]
