"""All checks of a call, as generated modules use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import cast

from opgen.diagnostics import did_you_mean
from opgen.diagnostics.calls import UnknownArgumentError, UnknownInputError
from opgen.diagnostics.describe import describe
from opgen.runtime.call.arguments import AttributeChecks
from opgen.runtime.call.dimensions import DimensionChecks
from opgen.runtime.call.tensors import TensorChecks

_SHOWN = 60
"""Letters of an unknown keyword that a message shows."""
_LISTED = 20
"""Arguments that a message lists."""


class Checks(AttributeChecks, TensorChecks, DimensionChecks):
    """The checks of one op's calls, by the op's name."""

    def unexpected(self, function: object, unknown: Mapping[str, object]) -> UnknownArgumentError:
        """Return the error for keywords that a generated function does not have, to be raised."""
        code = cast("FunctionType", function).__code__
        known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        name, value = next(iter(unknown.items()))
        return UnknownArgumentError(self.op, name[:_SHOWN], _meant(name, known), describe(value))

    def unknown_input(self, name: str, known: Sequence[str], value: object) -> UnknownInputError:
        """Return the error for an unknown input name of a model, to be raised."""
        return UnknownInputError(self.op, name[:_SHOWN], _meant(name, known), describe(value))


def _meant(name: str, known: Sequence[str]) -> str:
    """Return the closest known name, or the first ones of all."""
    listed = f"{', '.join(known[:_LISTED]) or 'none'}{', ...' if len(known) > _LISTED else ''}"
    return did_you_mean(name, known) or f"it takes {listed}"
