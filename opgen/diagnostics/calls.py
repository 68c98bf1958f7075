"""Errors of a wrong call: the op, the argument, the expected and the given value."""

from __future__ import annotations

from opgen.diagnostics import UserError, brief


class ArgumentError(UserError):
    """A wrong argument of an op.

    `op` is the op's name, `argument` the input or attribute at fault.  `expected` and `given` describe the value that
    was expected there and the given one.
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
    """A keyword that an op's function does not have; `expected` is the closest known one, or all of them."""

    noun = "argument"

    def __init__(self, op: str, argument: str, expected: str, given: str) -> None:
        super().__init__(op, argument, expected, given)
        self.args = (f"{op}: unknown {self.noun} '{argument}'; {expected}",)


class UnknownInputError(UnknownArgumentError):
    """An unknown input name of a model; `expected` is the closest known one, or all of them."""

    noun = "input"


class CallMemoryError(UserError, MemoryError):
    """A call whose temporary results this machine's memory cannot hold."""


class ArgumentMemoryError(ArgumentError, MemoryError):
    """Arguments that are consistent, for a call that this machine's memory cannot hold."""
