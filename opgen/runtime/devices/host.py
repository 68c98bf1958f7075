"""The host's part of a CUDA program: executing its steps, with all sizes known before anything is launched."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from opgen.codegen.cuda.program import (
    MAX_BLOCK,
    MAX_GRID,
    MAX_THREADS,
    Choose,
    CudaProgram,
    Define,
    Demand,
    DeviceLimitError,
    Launch,
    Repeat,
    Step,
    Workspace,
)
from opgen.diagnostics import CheckFailed, InternalError
from opgen.diagnostics.calls import ArgumentTypeError, ArgumentValueError
from opgen.dtypes import DType, wrap
from opgen.loop.nodes import (
    INDEX,
    Binary,
    Buffer,
    Cast,
    Check,
    Compare,
    Const,
    Expr,
    Kernel,
    Load,
    Select,
    Unary,
    Var,
)
from opgen.loop.walk import map_expr

Scalar: TypeAlias = int | float | bool
Sizes: TypeAlias = tuple[int, int, int]


class Backend(Protocol):
    """Runner of launches: a device, or the emulation."""

    def allocate(self, buffer: str, dtype: DType, elements: int) -> None: ...

    def release(self, buffer: str) -> None: ...

    def launch(self, launch: Launch, grid: Sizes, block: Sizes, scalars: Mapping[str, Scalar]) -> None: ...

    def only(self, buffer: str) -> int:
        """Return the element of a buffer of one int64, when the launched work is done."""


def execute(program: CudaProgram, parameters: Mapping[str, Scalar], backend: Backend) -> None:
    """Run a program's steps.  Workspaces are released on every path.

    Raises `DeviceLimitError` for a launch that no device accepts, `CheckFailed` if a check fails.
    """
    _Run(backend).steps(program.steps, check_parameters(program.kernel, parameters))


def check_parameters(kernel: Kernel, given: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return the parameters by name, of the right Python type and in their promised intervals."""
    if missing := [p.name for p in kernel.parameters if p.name not in given]:
        raise ArgumentTypeError(kernel.name, missing[0], "a value", "none")
    names = {p.name for p in kernel.parameters}
    if unknown := sorted(set(given) - names):
        raise ArgumentTypeError(kernel.name, unknown[0], f"one of {', '.join(sorted(names))}", "an unknown parameter")
    values: dict[str, Scalar] = {}
    for p in kernel.parameters:
        value = given[p.name]
        if p.dtype.is_float:
            values[p.name] = float(value)
            continue
        number = int(value)
        low = p.dtype.least if p.low is None else max(p.dtype.least, p.low)
        high = p.dtype.greatest if p.high is None else min(p.dtype.greatest, p.high)
        if not low <= number <= high:
            raise ArgumentValueError(kernel.name, p.name, f"a value from {low} to {high}", str(number))
        values[p.name] = number if p.dtype.is_int else bool(number)
    return values


def shape_of(buffer: Buffer, scalars: Mapping[str, Scalar]) -> tuple[int, ...]:
    """Return a buffer's shape, as callers know it, for given parameters."""
    return tuple(int(evaluate(size, scalars)) for size in buffer.outside)


@dataclass(frozen=True, slots=True)
class _Run:
    backend: Backend

    def steps(self, steps: tuple[Step, ...], scalars: dict[str, Scalar]) -> None:
        for step in steps:
            self._step(step, scalars)

    def _step(self, step: Step, scalars: dict[str, Scalar]) -> None:
        match step:
            case Launch():
                self._launch(step, scalars)
            case Repeat():
                for value in range(int(evaluate(step.start, scalars)), int(evaluate(step.stop, scalars))):
                    self.steps(step.body, {**scalars, step.var: value})
            case Choose():
                self.steps(step.then if evaluate(step.condition, scalars) else step.otherwise, scalars)
            case Define():
                self.steps(step.body, {**scalars, step.var.name: evaluate(step.value, scalars)})
            case Demand():
                self._demand(step.check, scalars)
            case Workspace():
                with contextlib.ExitStack() as held:
                    for buffer in step.buffers:
                        elements = math.prod(max(0, n) for n in shape_of(buffer, scalars))
                        self.backend.allocate(buffer.name, buffer.dtype, elements)
                        held.callback(self.backend.release, buffer.name)
                    self.steps(step.body, scalars)

    def _demand(self, check: Check, scalars: dict[str, Scalar]) -> None:
        """Evaluate both expressions, with the elements that they read substituted."""

        def read(e: Expr) -> Expr:
            if not isinstance(e, Load):
                return e
            if e.indices or e.type != INDEX:
                raise InternalError(f"a check reads more than a number of '{e.buffer}'")
            return Const(self.backend.only(e.buffer))

        if not evaluate(map_expr(read, check.condition), scalars):
            raise CheckFailed(check.number, int(evaluate(map_expr(read, check.value), scalars)))

    def _launch(self, launch: Launch, scalars: dict[str, Scalar]) -> None:
        gx, gy, gz, bx, by, bz = (int(evaluate(e, scalars)) for e in (*launch.grid, *launch.block))
        grid, block = (gx, gy, gz), (bx, by, bz)
        if min(*grid, *block) <= 0:
            return
        _check_limits(launch.function, grid, block)
        self.backend.launch(launch, grid, block, scalars)


def _check_limits(function: str, grid: Sizes, block: Sizes) -> None:
    for what, sizes, limits in (("grid", grid, MAX_GRID), ("block", block, MAX_BLOCK)):
        if any(size > limit for size, limit in zip(sizes, limits, strict=True)):
            raise DeviceLimitError(f"{function}: a {what} of {sizes}, at most {limits} are possible")
    if math.prod(block) > MAX_THREADS:
        raise DeviceLimitError(f"{function}: {math.prod(block)} threads in a block, at most {MAX_THREADS} are possible")


# Host expressions ------------------------------------------------------------------------------------------------

_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "min": min,
    "max": max,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}
_COMPARISONS: dict[str, Callable[[Scalar, Scalar], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def evaluate(e: Expr, scalars: Mapping[str, Scalar]) -> Scalar:
    """Return the value of a scalar integer or bool expression; floats are only compared."""
    dtype = e.type.dtype
    match e:
        case Const():
            return e.value
        case Var():
            return scalars[e.name]
        case Unary() if not dtype.is_float:
            operand = int(evaluate(e.operand, scalars))
            return _wrap(-operand if e.op == "neg" else ~operand, dtype)
        case Binary() if not dtype.is_float:
            left, right = int(evaluate(e.left, scalars)), int(evaluate(e.right, scalars))
            return _wrap(_ARITHMETIC[e.op](left, right), dtype)
        case Compare():
            return _COMPARISONS[e.op](evaluate(e.left, scalars), evaluate(e.right, scalars))
        case Select():
            return evaluate(e.if_true if evaluate(e.condition, scalars) else e.if_false, scalars)
        case Cast() if not dtype.is_float and not e.operand.type.dtype.is_float:
            value = int(evaluate(e.operand, scalars))
            return value != 0 if dtype.kind == "bool" else _wrap(value, dtype)
        case _:
            raise InternalError(f"the host cannot evaluate a {type(e).__name__} of {dtype}")


def _wrap(value: int, dtype: DType) -> Scalar:
    if dtype.kind == "bool":
        return bool(value & 1)
    return wrap(value, dtype)
