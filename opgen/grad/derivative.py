"""The chain rule within one definition: the dependence of its value on each tensor that it reads.

A definition here is elementwise, or one reduction of an elementwise body (`flatten` ensures it).  The adjoint of a
value v carries a seed, the adjoint of the definition's own element.  Each step down towards a read multiplies the seed
by the local derivative.

At a kink, the derivative is that of the side that the forward pass takes: `max(a, b)` is `a` if a >= b.  A `max` or
`min` reduction is its first term, in the order of the reduction, with the extreme value.  `abs` has derivative 0 at 0;
floor, ceil, round, trunc and sign have derivative 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from opgen.diagnostics import Diagnostic, DiagnosticError
from opgen.grad.algebra import ONE, ZERO, add, choose, divide, mul, negate, sub
from opgen.grad.types import Types, may_vary, type_of
from opgen.spec.model.model import (
    Apply,
    BitCast,
    Conditional,
    Convert,
    Expr,
    MultiplyAdd,
    Negate,
    Number,
    Operation,
    Read,
)
from opgen.spec.model.walk import reads


@dataclass(frozen=True)
class Contribution:
    """An addition of `weight` to the adjoint of the tensor read by `read`, at the element read."""

    read: Read
    weight: Expr


@dataclass(frozen=True)
class Surroundings:
    """The context of a derivative: tensors that contribute, types, and bounds.

    `wanted` selects the tensors whose reads contribute.  `types` has the type of every tensor; the adjoint of a value
    has the value's type.  `inside` gives the condition that a read is inside its tensor.
    """

    wanted: Callable[[str], bool]
    types: Types
    inside: Callable[[Read], Expr]


def contributions(value: Expr, seed: Expr, around: Surroundings) -> Iterator[Contribution]:
    """Yield a contribution for each read of a wanted tensor in an elementwise value with adjoint `seed`."""
    if not any(around.wanted(r.tensor) for r in reads(value)):
        return
    match value:
        case Read():
            if around.wanted(value.tensor):
                yield Contribution(value, seed)
            if value.outside is not None:
                for c in contributions(value.outside, seed, around):
                    yield Contribution(c.read, choose(around.inside(value), ZERO, c.weight))
        case Negate():
            yield from contributions(value.operand, negate(seed), around)
        case Convert():
            yield from _converted(value, seed, around)
        case BitCast() | Operation(op="random"):
            return  # random numbers and the bits of a number vary in jumps
        case MultiplyAdd():
            yield from contributions(value.left, mul(seed, value.right), around)
            yield from contributions(value.right, mul(seed, value.left), around)
            yield from contributions(value.added, seed, around)
        case Conditional():
            yield from _either(value.condition, value.if_true, value.if_false, seed, around)
        case Apply():
            yield from contributions(value.argument, mul(seed, _function(value)), around)
        case Operation(op="max") | Operation(op="min"):
            first = Operation(">=" if value.op == "max" else "<=", value.left, value.right)
            yield from _either(first, value.left, value.right, seed, around)
        case Operation():
            left, right = _operation(value, seed)
            yield from contributions(value.left, left, around)
            yield from contributions(value.right, right, around)
        case _:
            raise _refused("this expression cannot be differentiated", value)


def _converted(e: Convert, seed: Expr, around: Surroundings) -> Iterator[Contribution]:
    """Convert the seed back to the operand's type; integers do not vary."""
    source = type_of(e.operand, around.types)
    if source is None or not (may_vary(source) and may_vary(e.to)):
        return
    yield from contributions(e.operand, seed if source == e.to else Convert(source, seed), around)


def _either(condition: Expr, a: Expr, b: Expr, seed: Expr, around: Surroundings) -> Iterator[Contribution]:
    """Yield the contributions of the side that is taken.

    The other side's derivative may be infinite, so it is not multiplied by 0.
    """
    for c in contributions(a, seed, around):
        yield Contribution(c.read, choose(condition, c.weight, ZERO))
    for c in contributions(b, seed, around):
        yield Contribution(c.read, choose(condition, ZERO, c.weight))


def _operation(e: Operation, seed: Expr) -> tuple[Expr, Expr]:
    """Return the seeds of both operands."""
    a, b = e.left, e.right
    match e.op:
        case "+":
            return seed, seed
        case "-":
            return seed, negate(seed)
        case "*":
            return mul(seed, b), mul(seed, a)
        case "/":
            return divide(seed, b), negate(divide(mul(seed, e), b))
        case "pow":
            return _power(e, seed)
        case "atan2":
            square = add(mul(a, a), mul(b, b))
            return mul(seed, divide(b, square)), negate(mul(seed, divide(a, square)))
        case "rem" | "%":
            return seed, divide(mul(seed, sub(e, a)), b)
    raise _refused(f"operator '{e.op}' cannot be differentiated", e)


def _power(e: Operation, seed: Expr) -> tuple[Expr, Expr]:
    """Return the seeds of base and exponent.

    The seed of the base is 0 if the exponent is 0, for any base.  The seed of the exponent is 0 if the base is 0 and
    the exponent is not negative.
    """
    a, b = e.left, e.right
    by_base = mul(mul(seed, b), Operation("pow", a, sub(b, ONE)))
    by_exponent = mul(seed, mul(e, Apply("log", a)))
    if not isinstance(b, Number) or b.value == 0:
        by_base = choose(Operation("==", b, ZERO), ZERO, by_base)
    nothing = Operation("and", Operation("==", a, ZERO), Operation(">=", b, ZERO))
    return by_base, choose(nothing, ZERO, by_exponent)


def _function(e: Apply) -> Expr:
    """Return the derivative of a scalar function at its argument."""
    x = e.argument
    match e.function:
        case "exp":
            return e
        case "log":
            return divide(ONE, x)
        case "sqrt":
            return divide(Number(0.5), e)
        case "tanh":
            return sub(ONE, mul(e, e))
        case "erf":
            return mul(Number(2.0 / math.sqrt(math.pi)), Apply("exp", negate(mul(x, x))))
        case "erfc":
            return mul(Number(-2.0 / math.sqrt(math.pi)), Apply("exp", negate(mul(x, x))))
        case "lgamma":
            return Apply("digamma", x)
        case "digamma":
            raise _refused("function 'digamma' cannot be differentiated: specs have no trigamma", e)
        case "sin":
            return Apply("cos", x)
        case "cos":
            return negate(Apply("sin", x))
        case "abs":
            negative = choose(Operation("<", x, ZERO), Number(-1), ZERO)
            return choose(Operation(">", x, ZERO), ONE, negative)
        case "floor" | "ceil" | "round" | "trunc" | "sign":
            return ZERO
        case _ if e.function in _DERIVATIVES:
            return _DERIVATIVES[e.function](x, e)
    raise _refused(f"function '{e.function}' cannot be differentiated", e)


def _square(x: Expr) -> Expr:
    return mul(x, x)


_DERIVATIVES: dict[str, Callable[[Expr, Expr], Expr]] = {
    "exp2": lambda x, y: mul(Number(math.log(2.0)), y),
    "expm1": lambda x, y: Apply("exp", x),
    "log1p": lambda x, y: divide(ONE, add(ONE, x)),
    "log2": lambda x, y: divide(Number(1.0 / math.log(2.0)), x),
    "rsqrt": lambda x, y: mul(Number(-0.5), divide(y, x)),
    "sigmoid": lambda x, y: mul(y, sub(ONE, y)),
    "tan": lambda x, y: add(ONE, _square(y)),
    "asin": lambda x, y: Apply("rsqrt", mul(sub(ONE, x), add(ONE, x))),
    "acos": lambda x, y: negate(Apply("rsqrt", mul(sub(ONE, x), add(ONE, x)))),
    "atan": lambda x, y: divide(ONE, add(ONE, _square(x))),
    "sinh": lambda x, y: Apply("cosh", x),
    "cosh": lambda x, y: Apply("sinh", x),
    "asinh": lambda x, y: Apply("rsqrt", add(ONE, _square(x))),
    "acosh": lambda x, y: Apply("rsqrt", mul(sub(x, ONE), add(x, ONE))),
    "atanh": lambda x, y: divide(ONE, mul(sub(ONE, x), add(ONE, x))),
}
"""The derivative of each function, from its argument and its value."""


def _refused(message: str, e: Expr) -> DiagnosticError:
    return DiagnosticError([Diagnostic("S062", message, e.span)])
