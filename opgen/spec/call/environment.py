"""Evaluation of the shape language's expressions for one concrete call."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from opgen.diagnostics import InternalError
from opgen.spec.call.whole import LIMIT, EvaluationError, rounded
from opgen.spec.model import model as m

Value: TypeAlias = int | float | bool
AttrStored: TypeAlias = int | float | bool | str | tuple[int, ...] | tuple[float, ...]


@dataclass(frozen=True)
class Environment:
    """Values of one evaluated call.

    `symbols` are dimensions and integer lets.  `attrs` has every attribute: lists are flat and in logical order, an
    absent list is empty.  `shapes` are the inputs' and outputs' shapes in logical order.  `output_shapes` are the
    outputs' shapes in the caller's order.
    """

    op: m.OpSpec
    functions: Mapping[str, m.Function]
    symbols: Mapping[str, int]
    attrs: Mapping[str, AttrStored]
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    output_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def dims(self) -> dict[str, int]:
        """Symbols that are dimensions of inputs."""
        lets = {name for c in self.op.checks if isinstance(c, m.ShapeLet) for name in c.names}
        return {name: value for name, value in self.symbols.items() if name not in lets}

    @property
    def lets(self) -> dict[str, int]:
        """Symbols that are integer lets."""
        dims = self.dims
        return {name: value for name, value in self.symbols.items() if name not in dims}


def evaluate(expr: m.Expr, environment: Environment, indices: Mapping[str, int] | None = None) -> Value:
    """Return the value of an expression of the shape language; integers are exact.

    `indices` are values for indices.  Raises EvaluationError for a division by zero and for an integer beyond int64.
    """
    return _Evaluator(environment, dict(indices or {}), None).value(expr)


def evaluate_int(expr: m.Expr, environment: Environment) -> int:
    """Return the value of an integer expression."""
    value = evaluate(expr, environment)
    if not isinstance(value, int):
        raise InternalError(f"{expr!r} is not an integer")
    return value


_OPERATIONS: dict[str, Callable[[Value, Value], Value]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "min": min,
    "max": max,
    "ceildiv": lambda a, b: -(-a // b),
}


@dataclass
class _Evaluator:
    """Evaluator in an environment or, if `local` is given, in a function, whose parameters and lets it holds."""

    environment: Environment
    indices: Mapping[str, int]
    local: dict[str, Value | str] | None

    def value(self, expr: m.Expr) -> Value:
        found = self._value(expr)
        if isinstance(found, int) and not -LIMIT <= found < LIMIT:
            raise EvaluationError(f"{found} does not fit in 64 bits")
        return found

    def _value(self, expr: m.Expr) -> Value:
        if isinstance(expr, m.Number):
            return expr.value
        if isinstance(expr, m.Symbol):
            return self._symbol(expr.name)
        if isinstance(expr, m.Index):
            return self.indices[expr.name]
        if isinstance(expr, m.AttrValue):
            return self._attr(expr)
        if isinstance(expr, m.EnumIs):
            return self._word(expr.name) == expr.value
        if isinstance(expr, m.Present):
            return self.environment.attrs[expr.attr] != ()
        if isinstance(expr, m.SizeOf):
            return self.environment.shapes[expr.tensor][expr.axis]
        if isinstance(expr, m.Negate):
            return -self.value(expr.operand)
        if isinstance(expr, m.Not):
            return not self.value(expr.operand)
        if isinstance(expr, m.Conditional):
            return self.value(expr.if_true if self.value(expr.condition) else expr.if_false)
        if isinstance(expr, m.FunctionCall):
            return self._call(expr)
        if isinstance(expr, m.Operation):
            return self._operation(expr)
        if isinstance(expr, m.Real):
            return float(self.value(expr.operand))
        if isinstance(expr, m.Whole):
            return rounded(expr.function, self.value(expr.operand))
        raise InternalError(f"{type(expr).__name__} is not of the shape language")

    def _symbol(self, name: str) -> Value:
        found = self.environment.symbols[name] if self.local is None else self.local[name]
        if isinstance(found, str):
            raise InternalError(f"'{name}' is an enumeration")
        return found

    def _word(self, name: str) -> str:
        found = self.environment.attrs[name] if self.local is None else self.local[name]
        if not isinstance(found, str):
            raise InternalError(f"'{name}' is not an enumeration")
        return found

    def _attr(self, expr: m.AttrValue) -> Value:
        value = self.environment.attrs[expr.attr]
        if not expr.element:
            if isinstance(value, str | tuple):
                raise InternalError(f"'{expr.attr}' is not a number")
            return value
        if not isinstance(value, tuple):
            raise InternalError(f"'{expr.attr}' is not a list")
        if not value:
            return 0
        position = 0
        for at, size in zip(expr.element, self.environment.op.attr(expr.attr).shape, strict=True):
            position = position * size + at
        return value[position]

    def _operation(self, expr: m.Operation) -> Value:
        left = self.value(expr.left)
        if expr.op == "and":
            return bool(left and self.value(expr.right))
        if expr.op == "or":
            return bool(left or self.value(expr.right))
        right = self.value(expr.right)
        if expr.op in ("//", "%", "ceildiv", "/") and right == 0:
            raise EvaluationError("division by zero")
        if expr.op == "pow":
            return _power(left, right)
        return _OPERATIONS[expr.op](left, right)

    def _call(self, expr: m.FunctionCall) -> Value:
        function = self.environment.functions[expr.function]
        local: dict[str, Value | str] = {}
        for parameter, argument in zip(function.parameters, expr.arguments, strict=True):
            if not isinstance(argument, m.EnumArgument):
                local[parameter.name] = self.value(argument)
            elif argument.name is not None:
                local[parameter.name] = self._word(argument.name)
            else:
                local[parameter.name] = argument.value or ""
        inner = _Evaluator(self.environment, {}, local)
        for name, value in function.lets:
            local[name] = inner.value(value)
        return inner.value(function.results[expr.result])


def _power(base: Value, exponent: Value) -> Value:
    if isinstance(exponent, int) and exponent < 0:
        raise EvaluationError("a negative exponent")
    if isinstance(base, int) and abs(base) > 1 and exponent > 64:
        raise EvaluationError(f"{base} to the power {exponent} does not fit in 64 bits")
    return base if exponent == 1 else type(base)(base**exponent)
