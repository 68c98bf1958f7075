"""All checks of a call, as generated modules use them."""

from __future__ import annotations

from opgen.runtime.arguments import AttributeChecks
from opgen.runtime.dimensions import DimensionChecks
from opgen.runtime.tensors import TensorChecks


class Checks(AttributeChecks, TensorChecks, DimensionChecks):
    """The checks of one op's calls, by the op's name."""
