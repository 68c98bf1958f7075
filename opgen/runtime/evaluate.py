"""The value of an expression of the shape language in a checked call."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from opgen.diagnostics import InternalError
from opgen.runtime.operator import Call
from opgen.spec.model import (
    AttrValue,
    Conditional,
    EnumArgument,
    EnumIs,
    Expr,
    FunctionCall,
    Module,
    Negate,
    Not,
    Number,
    Operation,
    OpSpec,
    Present,
    ShapeLet,
    SizeOf,
    Symbol,
)

Scalar = int | float | bool

_OPERATIONS: dict[str, Callable[[Scalar, Scalar], Scalar]] = {
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
    "pow": operator.pow,
    "ceildiv": lambda a, b: -(-a // b),
}


@dataclass(frozen=True, slots=True)
class Evaluator:
    """Evaluates for one call; `symbols` and `words` are the call's, or a function's own within it."""

    module: Module
    op: OpSpec
    call: Call
    symbols: Mapping[str, Scalar]
    words: Mapping[str, str]

    @staticmethod
    def of(module: Module, op: OpSpec, call: Call) -> Evaluator:
        return Evaluator(module, op, call, call.integers, call.words)

    def value(self, e: Expr) -> Scalar:
        """The value of an expression."""
        match e:
            case Number():
                return e.value
            case Symbol():
                return self.symbols[e.name]
            case AttrValue():
                return self._attribute(e)
            case EnumIs():
                return self.words[e.name] == e.value
            case Present():
                return bool(self.call.attributes[e.attr])
            case SizeOf():
                return self._size(e)
            case Operation():
                return self._operation(e)
            case Negate():
                return -self.value(e.operand)
            case Not():
                return not self.value(e.operand)
            case Conditional():
                return self.value(e.if_true if self.value(e.condition) else e.if_false)
            case FunctionCall():
                return self._function(e)
        raise InternalError(f"{type(e).__name__} is no expression of the shape language")

    def results(self, let: ShapeLet) -> tuple[Scalar, ...]:
        """The values of named integers: of an expression, or of all results of a function."""
        if isinstance(let.value, FunctionCall) and len(let.names) > 1:
            return tuple(self.value(replace(let.value, result=i)) for i in range(len(let.names)))
        return (self.value(let.value),)

    def _operation(self, e: Operation) -> Scalar:
        if e.op == "and":
            return self.value(e.left) and self.value(e.right)
        if e.op == "or":
            return self.value(e.left) or self.value(e.right)
        return _OPERATIONS[e.op](self.value(e.left), self.value(e.right))

    def _attribute(self, e: AttrValue) -> Scalar:
        """A scalar attribute or an element of a list, which the call holds flat and in the caller's order."""
        value = self.call.attributes[e.attr]
        if not isinstance(value, tuple):
            return value
        attr = self.op.attr(e.attr)
        first = e.element[0]
        if attr.layout is not None:
            first = self.call.words[attr.layout].index(self.op.attr(attr.layout).values[0][first])
        width = attr.shape[1] if len(attr.shape) > 1 else 1
        position = first * width + (e.element[1] if len(e.element) > 1 else 0)
        return value[position] if value else 0

    def _size(self, e: SizeOf) -> int:
        tensor = next(t for t in self.op.tensors if t.name == e.tensor)
        if e.tensor not in self.call.tensors:  # a call of sizes alone: nothing is stretched
            return int(self.value(tensor.dims[e.axis].size))
        axis = e.axis
        if tensor.layout is not None:
            axis = self.call.words[tensor.layout].index(self.op.attr(tensor.layout).values[0][axis])
        return int(self.call.tensors[e.tensor].shape[axis])

    def _function(self, e: FunctionCall) -> Scalar:
        function = self.module.function(e.function)
        symbols: dict[str, Scalar] = {}
        words: dict[str, str] = {}
        for parameter, argument in zip(function.parameters, e.arguments, strict=True):
            if isinstance(argument, EnumArgument):
                given = argument.value if argument.name is None else self.words[argument.name]
                words[parameter.name] = given or ""
            else:
                symbols[parameter.name] = self.value(argument)
        inner = Evaluator(self.module, self.op, self.call, symbols, words)
        for name, value in function.lets:
            symbols[name] = inner.value(value)
        return inner.value(function.results[e.result])
