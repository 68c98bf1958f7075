"""Limits on a model's memory and work: excessive demands are refused, by node, before any of it is allocated or run.

A few bytes of a file can demand any amount.  A model's limit is a fixed amount plus an amount for each byte of its
inputs and constants, far above the needs of real networks.  OPGEN_MODEL_MIB and OPGEN_MODEL_GOPS raise it for models
that need more.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from opgen.cache.settings import shown, whole_number
from opgen.diagnostics import UserError
from opgen.graph.ir.values import Value
from opgen.graph.program.amounts import MOST, amount
from opgen.graph.program.runnable import Runnable

MIB, GOPS = "OPGEN_MODEL_MIB", "OPGEN_MODEL_GOPS"
BYTES, BYTES_EACH = 1 << 30, 256
"""Maximum number of bytes of values: a fixed part, and a factor for each byte of inputs and constants."""
STEPS, STEPS_EACH = 1 << 42, 1 << 20
"""Maximum number of operations on elements of a node: a fixed part (about an hour), and a factor for each byte."""


class TooMuchError(UserError):
    """A model that demands more memory or work than its limit; the text names the value or op."""


@dataclass(frozen=True)
class Allowed:
    """Maximum number of bytes that the values of a model take at once, and of operations of a node."""

    bytes: int
    steps: int

    def check_value(self, value: Value) -> None:
        """Raise TooMuchError for a value that alone takes too much."""
        size = bytes_of(value)
        if size > self.bytes:
            what = f"{value.dtype}{list(value.shape)}"
            raise TooMuchError(f"its result '{value.name}' of {what} takes {amount(size)}; {self._may}")

    def check_program(self, program: Runnable, threads: int) -> None:
        """Raise TooMuchError for a program whose values take too much at once."""
        size = program.arena_bytes(threads) + sum(map(bytes_of, program.outputs))
        if size > self.bytes:
            raise TooMuchError(f"its values take {amount(size)} at once; {self._may}")

    @property
    def _may(self) -> str:
        return f"values of this model may take {amount(self.bytes)} at once ({MIB})"

    def check_steps(self, count: int) -> None:
        """Raise TooMuchError for a node that takes too many operations (counted by `opgen.graph.ir.steps`)."""
        if count > self.steps:
            taken, most = (f"{float(min(number, MOST)):.1e}" for number in (count, self.steps))
            raise TooMuchError(f"it takes about {taken} operations; a node of this model may take {most} ({GOPS})")


def allowed(given: Iterable[Value]) -> Allowed:
    """Return the limits of a model with these inputs and constants.  Raises UserError for invalid settings."""
    size = sum(map(bytes_of, given))
    mib, gops = settings()
    return Allowed(
        BYTES + BYTES_EACH * size if mib is None else mib << 20,
        STEPS + STEPS_EACH * size if gops is None else gops * 10**9,
    )


def bytes_of(value: Value) -> int:
    """Return the number of bytes of a value's elements."""
    return prod(value.shape) * value.dtype.bytes


def settings() -> tuple[int | None, int | None]:
    """Return both limits from the environment.  Raises UserError for a setting that is not a number."""
    return _setting(MIB), _setting(GOPS)


def _setting(name: str) -> int | None:
    text = os.environ.get(name, "").strip()
    number = whole_number(text) if text else None
    if text and number is None:
        raise UserError(f"{name}: expected a whole number, given {shown(text)}")
    return number
