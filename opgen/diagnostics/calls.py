"""The errors of a wrong call: whose op, which argument, what was expected, what was given."""

from __future__ import annotations

from opgen.diagnostics import UserError, brief


class ArgumentError(UserError):
    """A wrong argument of an op.

    `op` is the op's name, `argument` the input or attribute at fault, `expected` and `given` say what should have stood
    there and what stood there instead.
    """

    def __init__(self, op: str, argument: str, expected: str, given: str) -> None:
        self.op = op
        self.argument = argument
        self.expected = expected
        self.given = given
        where = f"{brief(op, 200)}: argument '{brief(argument)}'"
        super().__init__(f"{where}: expected {brief(expected, 800)}, given {brief(given, 800)}")

    def __reduce__(self) -> tuple[type[ArgumentError], tuple[str, str, str, str]]:
        return type(self), (self.op, self.argument, self.expected, self.given)


class ArgumentValueError(ArgumentError, ValueError):
    """An argument of the right kind with a value that does not fit."""


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument of the wrong kind, or a tensor of the wrong scalar type."""


class UnknownArgumentError(ArgumentTypeError):
    """A keyword that an op's function does not have; `expected` is the one that was meant, or all that there are."""

    noun = "argument"

    def __init__(self, op: str, argument: str, expected: str, given: str) -> None:
        super().__init__(op, argument, expected, given)
        self.args = (f"{op}: unknown {self.noun} '{argument}'; {expected}",)


class UnknownInputError(UnknownArgumentError):
    """A name that no input of a model has; `expected` is the one that was meant, or all that there are."""

    noun = "input"


class CallMemoryError(UserError, MemoryError):
    """A call whose temporary results this machine's memory cannot hold."""


class ArgumentMemoryError(ArgumentError, MemoryError):
    """Arguments that fit together, for a call that this machine's memory cannot hold."""
