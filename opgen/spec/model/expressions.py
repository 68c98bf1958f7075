"""The expressions of a resolved model: one family for shapes (integers, conditions) and mathematics (compute types).

Integers of the shape language are mathematical integers within int64; `//` and `%` round towards minus infinity.

Meaning of the mathematics.

    * Arithmetic is done in the compute type of the operands (`DType.compute`): an element of a half or bfloat16
      tensor is widened to float32 when read.  `let` tensors hold the compute type; an output is rounded once, when
      written.  Integers are computed in their own type, also their sums, modulo 2**bits.
    * A reduction runs over its indices in the order written, the last fastest, left to right in that order; `sum`
      starts from 0, `prod` from 1, `max` from -inf (the least integer), `min` from +inf (the greatest).
    * A term of a reduction that reads outside a tensor is left out of the reduction, unless the read says
      `else value`.  That holds even if the other factors are infinite or NaN.  A read outside a tensor that is in no
      reduction must say `else value` or be proved to stay inside.
    * Updates of a tensor (`Scatter`) are made one after the other in the compute type, each with one rounding.
    * A branch that is not taken has no effect: the other side of an `if`, the right of `and` and `or` if the left
      decides, the `else` of a read that is inside.  A read in it does not leave out a term, and a derivative in it
      does not contribute to a gradient.
    * `sum` of a product adds with one rounding a term (a fused multiply-add) if the type is floating.
    * `max`, `min` propagate NaN; of equal values the first counts.
    * An order is stable in both directions: of equal values (0 and -0 are equal) the one with the smaller index is
      first.  NaN is above all numbers, and equal to NaN.
    * If a sum runs over indices of constants only, terms with a factor 0 from a constant are left out.
      Products of elements of constants are exact, and rounded once to the compute type.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, TypeAlias

from opgen.diagnostics import Span


@dataclass(frozen=True, slots=True)
class Number:
    """A literal: an int, a float or a bool.  In mathematics, an int literal takes the type of its context."""

    value: int | float | bool
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Symbol:
    """A dimension, an integer `let`, a parameter or `let` of a function."""

    name: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Index:
    """An index variable of a definition or a reduction; an integer, 0 <= index < its extent."""

    name: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AttrValue:
    """A scalar attribute, or one element of a list attribute.

    `element` is the position in *logical* order (of the layout's first value), with one number for each dimension of
    the list: `strides.H` is (1,) and `explicit_paddings.W[0]` is (2, 0) for a layout whose first value is NHWC. An
    element of an absent list reads 0.
    """

    attr: str
    element: tuple[int, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class EnumIs:
    """The condition that an enumerated attribute (or enumerated function parameter) has a value."""

    name: str
    value: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Present:
    """The condition that a list attribute that may be empty is given."""

    attr: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SizeOf:
    """The size the caller gave a broadcast dimension of an input (1, or the dimension's size); `axis` is logical."""

    tensor: str
    axis: int
    span: Span | None = field(default=None, compare=False, repr=False)


Operator = Literal[
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "and",
    "or",
    "min",
    "max",
    "ceildiv",
    "pow",
    "rem",
    "atan2",
    "bit_and",
    "bit_or",
    "bit_xor",
    "shift_left",
    "shift_right",
    "random",
]


@dataclass(frozen=True, slots=True)
class Operation:
    """A binary operation.

    The integers of the shape language have all operators except `/`, `rem`, `atan2`, bits, shifts and `random`;
    elements have all except `ceildiv`.  On integer elements, `/` and `rem` round towards 0, `//` (integers only) and
    `%` round down, and division by 0 gives 0.  Bits and shifts are for integers; a shift by a negative number, or by
    all bits, gives 0.  `random` is a float64 in [0, 1), determined by a float64 seed and an int64
    (`opgen.lower.chance`).
    """

    op: Operator
    left: Expr
    right: Expr
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Negate:
    operand: Expr
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Not:
    operand: Expr
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Conditional:
    condition: Expr
    if_true: Expr
    if_false: Expr
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """Result number `result` of a call of a shape function; enumerated arguments are `EnumArgument`s."""

    function: str
    arguments: tuple[Expr | EnumArgument, ...]
    result: int = 0
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Real:
    """An integer of shapes as the nearest float64, inside a `Whole` or a requirement."""

    operand: Expr
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Whole:
    """An integer of shapes from float64 arithmetic: rounded down, up, to the nearest (ties to even), or towards 0.

    A call is refused if the value is not finite, or beyond int64.
    """

    function: Literal["floor", "ceil", "round", "trunc"]
    operand: Expr
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class EnumArgument:
    """An enumerated attribute (or parameter) handed to a function, or a value of one."""

    name: str | None
    value: str | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


ScalarFunction = Literal[
    "exp", "log", "sqrt", "tanh", "erf", "sin", "cos", "floor", "ceil", "round", "abs", "trunc", "sign", "erfc",
    "exp2", "expm1", "log1p", "log2", "rsqrt", "sigmoid", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh",
    "acosh", "atanh", "lgamma", "digamma", "isnan", "isinf", "bit_not",
]  # fmt: skip
PREDICATES = frozenset({"isnan", "isinf"})
"""The scalar functions with a condition as result; all others return the type of their argument."""


@dataclass(frozen=True, slots=True)
class Apply:
    """A scalar function of mathematics."""

    function: ScalarFunction
    argument: Expr
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class MultiplyAdd:
    """`left * right + added` of floats, rounded once (to the type that they are computed in)."""

    left: Expr
    right: Expr
    added: Expr
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Convert:
    """A cast to a scalar type, or to (the compute type of) a type variable.

    `float(x)` in a spec casts to the op's first type variable.
    """

    to: str
    operand: Expr
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class BitCast:
    """The bits of an element as a scalar type, or type variable, of as many bits; storage-only types are excluded."""

    to: str
    operand: Expr
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Read:
    """An element of an input or of a `let` tensor, in logical dimension order.

    `outside` is its value if an index is outside the tensor; for None, see the meaning of reductions above.  Along a
    broadcast dimension of size 1 every index reads element 0.
    """

    tensor: str
    indices: tuple[Expr, ...]
    outside: Expr | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Constant:
    """Numbers that the mathematics read by indices; `values` are in row-major order."""

    name: str
    shape: tuple[int, ...]
    values: tuple[Fraction, ...]

    def at(self, position: tuple[int, ...]) -> Fraction:
        """Return the number at a position."""
        place = 0
        for size, index in zip(self.shape, position, strict=True):
            place = place * size + index
        return self.values[place]


@dataclass(frozen=True, slots=True)
class Element:
    """An element of a constant, which takes the type of its context; the indices are proved to be inside."""

    constant: Constant
    indices: tuple[Expr, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class IndexRange:
    """An index and its extent, an expression of the shape language."""

    name: str
    extent: Expr


ReductionKind = Literal["sum", "prod", "max", "min", "ascending", "descending", "set"]


@dataclass(frozen=True, slots=True)
class Reduce:
    """A reduction of `body` over all `indices` for which `condition` holds (None: for all).

    "ascending" and "descending" have one index and a `place`.  They give the value of the index (an int64) at this
    place, counted from 0, if the indices are sorted by `body`.  They give -1 if there are fewer indices.
    """

    kind: ReductionKind
    indices: tuple[IndexRange, ...]
    body: Expr
    span: Span | None = field(default=None, compare=False, repr=False)
    condition: Expr | None = None
    place: Expr | None = None


@dataclass(frozen=True, slots=True)
class Scatter(Reduce):
    """The value of a whole definition whose elements are updated at computed places.

    An element at place p is initially `start`, over the definition's indices.  The updates follow for all `indices`, in
    the order of a reduction, if `condition` holds and `at` is p (one subscript for each dimension of the tensor).  Each
    combines the element with `body` by `kind`; "set" replaces it by `body`.

    A subscript made of elements is inside (`opgen.lower.elements`); an update at any other subscript outside is left
    out.  No index has the name of one of the definition's.
    """

    at: tuple[Expr, ...] = ()
    start: Expr = Number(0)


Expr: TypeAlias = (
    Number
    | Symbol
    | Index
    | AttrValue
    | EnumIs
    | Present
    | SizeOf
    | Operation
    | Negate
    | Not
    | Conditional
    | FunctionCall
    | Real
    | Whole
    | Apply
    | MultiplyAdd
    | Convert
    | BitCast
    | Read
    | Element
    | Reduce
)
