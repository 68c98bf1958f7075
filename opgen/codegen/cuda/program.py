"""The emitter's output: CUDA C source, and the host's work with its functions.

The host's part is a short program of steps.  Their expressions are loop IR over the kernel's parameters and the
variables of enclosing steps.  Except for those of a `Demand` they never read memory, so that the host can evaluate them
before anything runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from opgen.diagnostics import UserError
from opgen.dtypes import DType
from opgen.loop.nodes import Buffer, Check, Expr, Kernel, Var

Extents: TypeAlias = tuple[Expr, Expr, Expr]
"""Sizes along x, y and z."""

MAX_THREADS = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_SHARED_BYTES = 48 * 1024

COMPILE_FLAGS = ("--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true")
"""Flags with which a CUDA compiler keeps the meaning of the loop IR: one rounding an operation."""


class DeviceLimitError(UserError):
    """A launch or a shared array larger than any device takes."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a device function: a pointer to a buffer's elements, or a scalar by value."""

    name: str
    dtype: DType
    pointer: bool


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of an `extern "C" __global__` function.

    The launch is left out if any extent is below 1.  `barriers` is True if the function waits at `__syncthreads`.
    """

    function: str
    grid: Extents
    block: Extents
    arguments: tuple[Argument, ...]
    barriers: bool


@dataclass(frozen=True, slots=True)
class Repeat:
    """The body once for each value of `var` in start <= var < stop, in order."""

    var: str
    start: Expr
    stop: Expr
    body: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Choose:
    condition: Expr
    then: tuple[Step, ...]
    otherwise: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Define:
    """A name for a scalar within the body."""

    var: Var
    value: Expr
    body: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Workspace:
    """Device memory that lives while the body runs."""

    buffers: tuple[Buffer, ...]
    body: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Demand:
    """The end of the program, with the check's report, unless its condition holds.

    This is the only step in which the host reads memory: one element of some buffers, after all earlier launches.
    """

    check: Check


Step: TypeAlias = Launch | Repeat | Choose | Define | Workspace | Demand


@dataclass(frozen=True, slots=True)
class CudaProgram:
    """`source` is a self-contained translation unit; `steps` run its functions in order."""

    kernel: Kernel
    source: str
    steps: tuple[Step, ...]

    @property
    def launches(self) -> tuple[Launch, ...]:
        """Return every launch in the steps, in the order of the functions in the source."""
        return tuple(_launches(self.steps))


def _launches(steps: tuple[Step, ...]) -> Iterator[Launch]:
    for step in steps:
        match step:
            case Launch():
                yield step
            case Repeat() | Define() | Workspace():
                yield from _launches(step.body)
            case Choose():
                yield from _launches(step.then)
                yield from _launches(step.otherwise)
