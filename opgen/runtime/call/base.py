"""Base of all checks of a call: the op's name, and the errors to raise."""

from __future__ import annotations

from opgen.diagnostics.calls import ArgumentTypeError, ArgumentValueError
from opgen.diagnostics.describe import describe


class OpChecks:
    """Checks of the arguments of one op; `op` is its name, for the messages."""

    def __init__(self, op: str) -> None:
        self.op = op

    def wrong(self, argument: str, expected: str, given: object) -> ArgumentValueError:
        """Return the error for a value that does not fit, to be raised."""
        return ArgumentValueError(self.op, argument, expected, describe(given))

    def wrong_type(self, argument: str, expected: str, given: object) -> ArgumentTypeError:
        """Return the error for a value of the wrong kind, to be raised."""
        return ArgumentTypeError(self.op, argument, expected, describe(given))

    def wrong_shape(self, argument: str, expected: str, shape: tuple[int, ...]) -> ArgumentValueError:
        """Return the error for a tensor of a shape that does not fit, to be raised."""
        return ArgumentValueError(self.op, argument, expected, f"shape {list(shape)}")
