"""How much a model may ask for: memory and work that it declares is refused before any of it is taken, by node.

A few bytes of a file can ask for any number of them.  What a model may take goes by what it is given: so much in any
case, and so much more for each byte of its inputs and constants, which is far above what networks take.  A model that
needs more is given more by OPGEN_MODEL_MIB and OPGEN_MODEL_GOPS.
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
"""What values may take, and how much more for each byte that the model is given."""
STEPS, STEPS_EACH = 1 << 42, 1 << 20
"""How many operations on elements a node may take (an hour, about), and how many more for each byte."""


class TooMuchError(UserError):
    """A model asks for more memory or work than it may; the text says of which value or op."""


@dataclass(frozen=True)
class Allowed:
    """The bytes that the values of a model may take at once, and the operations of a node."""

    bytes: int
    steps: int

    def check_value(self, value: Value) -> None:
        """Raises TooMuchError for a value that alone takes too much."""
        size = bytes_of(value)
        if size > self.bytes:
            what = f"{value.dtype}{list(value.shape)}"
            raise TooMuchError(f"its result '{value.name}' of {what} takes {amount(size)}; {self._may}")

    def check_program(self, program: Runnable, threads: int) -> None:
        """Raises TooMuchError for a program whose values take too much at once."""
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
    """What a model may take that is given these inputs and constants.  Raises UserError for settings that are none."""
    size = sum(map(bytes_of, given))
    mib, gops = settings()
    return Allowed(
        BYTES + BYTES_EACH * size if mib is None else mib << 20,
        STEPS + STEPS_EACH * size if gops is None else gops * 10**9,
    )


def bytes_of(value: Value) -> int:
    """The bytes of a value's elements."""
    return prod(value.shape) * value.dtype.bytes


def settings() -> tuple[int | None, int | None]:
    """What the environment says of both limits.  Raises UserError for what is no number."""
    return _setting(MIB), _setting(GOPS)


def _setting(name: str) -> int | None:
    text = os.environ.get(name, "").strip()
    number = whole_number(text) if text else None
    if text and number is None:
        raise UserError(f"{name}: expected a whole number, given {shown(text)}")
    return number
