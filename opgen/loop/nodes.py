"""The loop IR: its nodes and their meaning.

A `Kernel` is a function of typed buffers and scalar parameters whose body is a tree of statements over expressions.
The interpreter (`opgen.loop.interpret`) is the definition; this page says the same in words.

Types.  A `Type` is a scalar type and a number of lanes; one lane is a scalar.  Index arithmetic is int64.  Operands
    of a binary operation, comparison, select or call have the same type; only `Cast`, `BitCast`, `Broadcast`,
    `Ramp` and `Shuffle` change one.  There is no arithmetic on float16 or bfloat16: they are loaded, stored, selected,
    shuffled, cast and paired, nothing else.
Integers.  Signed ones are two's complement; arithmetic wraps, of all types modulo 2**bits.  Unsigned ones are ordered,
    divided and converted as numbers from 0 to 2**bits - 1.  `abs` of the least signed integer, and its quotient by -1,
    are that integer.  `floordiv` rounds towards minus infinity and `mod` has the sign of the divisor; dividing by zero
    is undefined (the verifier asks for a proof that it does not happen or a guard): the interpreter refuses it, emitted
    code goes on with some number.  `quot` and `rem` are for elements: they round towards 0, so that the remainder has
    the sign of the dividend, and are 0 where the divisor is.  `shl` and `shr` shift by the second operand; by less than
    0, or by all bits or more, everything is shifted out.  `shr` of a signed integer moves its sign in.  `pow`
    multiplies modulo 2**bits; with an exponent below 0 it is the power rounded towards 0, and 0 of 0.  Index arithmetic
    does not wrap where it counts.  Before a kernel runs, every language checks the call's numbers: no divisor is 0, and
    no subscript, size, loop bound or operand of a comparison or division reaches 2**62, however it is rewritten
    (`opgen.loop.analysis.claims`).  So proofs about mathematical integers hold for int64.
Floats.  IEEE 754, round to nearest even, denormals kept, one rounding for each operation; nothing is contracted,
    reassociated or assumed finite.  `fma(a, b, c)` rounds once.  `min(a, b)` is `a if a <= b or isnan(a) else b`,
    `max(a, b)` is `a if a >= b or isnan(a) else b`: a NaN in either operand is the result, and of equal operands the
    first is taken.  `rem` is exact, with the sign of the dividend.  Of the functions, sqrt, floor, ceil, round (ties to
    even) and abs are exact; exp, log, tanh, erf, pow, sin, cos and atan may differ in their last bits from one platform
    to another, and between interpreter and kernels.
Casts.  Float to float rounds to nearest even; a NaN stays a NaN.  Float to integer truncates, saturates, and takes NaN
    to 0.  Integer to integer wraps.  To bool is `!= 0`; from bool gives 0 or 1.  `BitCast` keeps the bits unchanged,
    those of a NaN too: between integers, float32 and float64 of as many bits.
Order.  Statements run in order.  Expressions have no effects; `and`, `or`, `select` evaluate all their operands (an
    access inside them must be in bounds by itself; an `If` guards, a select does not).
Buffers.  Row-major, dense, `shape` elements a dimension.  Every index must be in bounds on every lane that is not
    masked off; the analysis proves it before anything is emitted.  Buffers never overlap.  An allocated buffer has no
    defined contents before it is stored to.
Vectors.  `Ramp(base, stride, lanes)` is base, base + stride, ...  A load or store whose indices have lanes accesses
    lane by lane (scalar indices are broadcast); stores in lane order.  `mask` (bool, same lanes) turns lanes off: a
    load gives 0 there, a store leaves memory alone, and neither touches the memory.
Loops.  `For` runs `var` over start <= var < stop, none if stop <= start. Bounds are evaluated once. The kinds
    "parallel", "vector", "block.*" and "thread.*" further say that iterations are independent: no iteration writes an
    element that another reads or writes, so any order gives the same result ("thread.*" within the stretches between
    barriers).  "ordered" is serial, and further says that its iterations are steps of a recurrence: each reads results
    of earlier ones, and the loop nests in it are scheduled each by itself. "unroll" is serial. A pass expands "unroll"
    and "vector" before emission, so that an emitter meets only the other kinds. "tile" is serial, and further says that
    the terms of a sum may be added in another order and numbers below 2**-126 taken for 0.  On a CPU with a matrix
    unit, three such loops around `t[m, n] = dot(t[m, n], x[m, k], y[k, n])` are one instruction.  So are two around a
    store that fills or copies a buffer in space "tile".
Spaces.  "global": kernel arguments.  "heap": allocated at run time (a device's memory on a GPU).  "stack": small,
    constant size. "register": constant size, meant for registers, indices constant after unrolling.  "tile":
    constant size, meant for a matrix unit's registers, each a last two dimensions.  "shared": one copy a GPU block.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from opgen.dtypes import BOOL, INT32, INT64, DType

LoopKind = Literal[
    "serial",
    "ordered",
    "parallel",
    "unroll",
    "vector",
    "tile",
    "block.x",
    "block.y",
    "block.z",
    "thread.x",
    "thread.y",
    "thread.z",
]
Space = Literal["global", "heap", "stack", "register", "tile", "shared", "streamed"]
BinaryOp = Literal[
    "add", "sub", "mul", "div", "floordiv", "mod", "quot", "rem", "min", "max", "and", "or", "xor", "shl", "shr"
]  # fmt: skip
CompareOp = Literal["eq", "ne", "lt", "le", "gt", "ge"]
UnaryOp = Literal["neg", "not"]
Function = Literal[
    "fma", "exp", "log", "sqrt", "tanh", "erf", "pow", "sin", "cos", "atan", "floor", "ceil", "round", "abs"
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Type:
    """A scalar type and a number of lanes (1: a scalar)."""

    dtype: DType
    lanes: int = 1

    def __str__(self) -> str:
        return self.dtype.name if self.lanes == 1 else f"{self.dtype.name}x{self.lanes}"


INDEX = Type(INT64)


def _datum(value: int | float | bool) -> int | str:
    return repr(value) if isinstance(value, float) else value


# Expressions --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Const:
    """A literal, the same in every lane.  Integers are Python ints, floats Python floats, bools Python bools.

    Literals are equal if they are the same datum: a NaN equals a NaN, and 0.0 differs from -0.0.
    """

    value: int | float | bool
    type: Type = INDEX

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Const):
            return NotImplemented
        return self.type == other.type and _datum(self.value) == _datum(other.value)

    def __hash__(self) -> int:
        return hash(_datum(self.value))


@dataclass(frozen=True, slots=True)
class Var:
    """A scalar parameter, a loop variable (int64) or the name of a `Let`."""

    name: str
    type: Type = INDEX


@dataclass(frozen=True, slots=True)
class Unary:
    op: UnaryOp
    operand: Expr

    @property
    def type(self) -> Type:
        return self.operand.type


@dataclass(frozen=True, slots=True)
class Binary:
    """`div` is for floats only, `floordiv`, `mod`, `quot`, `shl`, `shr` for integers, `rem` for both; `and`, `or`,
    `xor` are for bools and integers.
    """

    op: BinaryOp
    left: Expr
    right: Expr

    @property
    def type(self) -> Type:
        return self.left.type


@dataclass(frozen=True, slots=True)
class Compare:
    """Comparisons with a NaN are false, except `ne`, which is true."""

    op: CompareOp
    left: Expr
    right: Expr

    @property
    def type(self) -> Type:
        return Type(BOOL, self.left.type.lanes)


@dataclass(frozen=True, slots=True)
class Select:
    """`if_true` where the condition holds, else `if_false`; the condition has as many lanes, or is a scalar."""

    condition: Expr
    if_true: Expr
    if_false: Expr

    @property
    def type(self) -> Type:
        return self.if_true.type


@dataclass(frozen=True, slots=True)
class Cast:
    type: Type
    operand: Expr


@dataclass(frozen=True, slots=True)
class BitCast:
    """The bits of a value as one of another type of as many bits, lane by lane."""

    type: Type
    operand: Expr


@dataclass(frozen=True, slots=True)
class Call:
    """A scalar function, lane by lane; all operands have the type of the result."""

    function: Function
    arguments: tuple[Expr, ...]

    @property
    def type(self) -> Type:
        return self.arguments[0].type


@dataclass(frozen=True, slots=True)
class Broadcast:
    operand: Expr
    lanes: int

    @property
    def type(self) -> Type:
        return Type(self.operand.type.dtype, self.lanes)


@dataclass(frozen=True, slots=True)
class Ramp:
    """base, base + stride, ..., base + (lanes - 1) * stride."""

    base: Expr
    stride: Expr
    lanes: int

    @property
    def type(self) -> Type:
        return Type(self.base.type.dtype, self.lanes)


@dataclass(frozen=True, slots=True)
class Word:
    """Two bfloat16, or four integers of 8 bits, of the same lanes in an int32 each: the bits of the first lowest."""

    parts: tuple[Expr, ...]

    @property
    def type(self) -> Type:
        return Type(INT32, self.parts[0].type.lanes)

    @property
    def name(self) -> str:
        """Return its name in the text: by how many parts it has."""
        return {2: "pair", 4: "quad"}[len(self.parts)]


@dataclass(frozen=True, slots=True)
class Dot:
    """`sum` and the products of the parts of two words.

    A sum of float32 and pairs of bfloat16: `fma(low, low', fma(high, high', sum))`.  This is the instruction that CPUs
    have, and like it may take operands and results below 2**-126 for 0.
    A sum of int32, modulo 2**32, and bytes: those of `left` are without sign, those of `right` signed.
    """

    sum: Expr
    left: Expr
    right: Expr

    @property
    def type(self) -> Type:
        return self.sum.type


@dataclass(frozen=True, slots=True)
class Shuffle:
    """Lanes picked out of two vectors of one type: `order` numbers those of `left` from 0, then those of `right`."""

    left: Expr
    right: Expr
    order: tuple[int, ...]

    @property
    def type(self) -> Type:
        return Type(self.left.type.dtype, len(self.order))


@dataclass(frozen=True, slots=True)
class Load:
    """An element of a buffer, or one a lane if an index has lanes."""

    buffer: str
    indices: tuple[Expr, ...]
    dtype: DType
    mask: Expr | None = None

    @property
    def type(self) -> Type:
        return Type(self.dtype, max((i.type.lanes for i in self.indices), default=1))


Expr: TypeAlias = (
    Const
    | Var
    | Unary
    | Binary
    | Compare
    | Select
    | Cast
    | BitCast
    | Call
    | Word
    | Dot
    | Broadcast
    | Ramp
    | Shuffle
    | Load
)


# Statements ---------------------------------------------------------------------------------------


class _Remembering:
    """Cache of `opgen.loop.walk`'s findings about a statement.  It never changes, so it is computed once."""

    __slots__ = (
        "found_loaded",
        "found_loads",
        "found_mentioned",
        "found_names",
        "found_skeleton",
        "found_stores",
        "found_touched",
    )

    found_loaded: frozenset[str]
    found_mentioned: frozenset[str]
    found_names: tuple[frozenset[str], frozenset[str]]
    found_touched: frozenset[str]

    found_loads: tuple[Load, ...]
    found_skeleton: tuple[Stmt, ...]
    found_stores: tuple[Store, ...]


@dataclass(frozen=True, slots=True)
class Buffer:
    """A dense row-major array.  `shape` is over the kernel's parameters (and enclosing variables for a local one).

    `given`: the dimensions that callers know an argument by, where the kernel sees the same elements in others.
    `streamed` memory is an output's that goes past the caches where an emitter knows how: global in all else.
    """

    name: str
    dtype: DType
    shape: tuple[Expr, ...]
    space: Space = "global"
    given: tuple[Expr, ...] | None = None

    @property
    def outside(self) -> tuple[Expr, ...]:
        """Return the dimensions that callers know."""
        return self.shape if self.given is None else self.given


@dataclass(frozen=True, slots=True)
class Store(_Remembering):
    buffer: str
    indices: tuple[Expr, ...]
    value: Expr
    mask: Expr | None = None


@dataclass(frozen=True, slots=True)
class For(_Remembering):
    var: str
    start: Expr
    stop: Expr
    body: Stmt
    kind: LoopKind = "serial"


@dataclass(frozen=True, slots=True)
class If(_Remembering):
    condition: Expr
    then: Stmt
    otherwise: Stmt | None = None


@dataclass(frozen=True, slots=True)
class Let(_Remembering):
    """A name for a scalar value within `body`."""

    var: Var
    value: Expr
    body: Stmt


@dataclass(frozen=True, slots=True)
class Alloc(_Remembering):
    """Buffers that live while `body` runs: one, or several on the heap, which are never nested directly in each other.

    A kernel may have a thousand intermediates: they are listed together, not nested as deep.
    """

    buffers: tuple[Buffer, ...]
    body: Stmt

    @property
    def buffer(self) -> Buffer:
        """Return the only buffer, as it is in all memory but the heap."""
        (buffer,) = self.buffers
        return buffer

    @property
    def space(self) -> Space:
        return self.buffers[0].space


@dataclass(frozen=True, slots=True)
class Block(_Remembering):
    """Statements in order; never nested directly in a block."""

    statements: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Barrier(_Remembering):
    """All threads of a GPU block arrive before any goes on; shared memory written before is seen after."""


@dataclass(frozen=True, slots=True)
class Check(_Remembering):
    """A condition that must hold; otherwise the kernel ends here and reports `number` and the value.

    It is outside all loops and conditions, before anything is stored to an output: the caller's arguments do not make
    sense, and nothing is half-written.  `value` counts only where the condition does not hold.
    """

    condition: Expr
    number: int
    value: Expr


@dataclass(frozen=True, slots=True)
class Prefetch(_Remembering):
    """A hint that the line of memory around an element will be read.

    It has no effect and reads nothing: the place may be outside the buffer, counted on from its rows.
    """

    buffer: str
    indices: tuple[Expr, ...]


Stmt: TypeAlias = Store | For | If | Let | Alloc | Block | Barrier | Check | Prefetch


@dataclass(frozen=True, slots=True)
class Parameter:
    """A scalar argument of the kernel, and the interval that callers promise for it (integers; None is unbounded)."""

    name: str
    dtype: DType = INT64
    low: int | None = None
    high: int | None = None

    @property
    def var(self) -> Var:
        return Var(self.name, Type(self.dtype))


@dataclass(frozen=True, slots=True)
class Kernel:
    """A function of `inputs` (read only), `outputs` (written, contents before the call undefined) and `parameters`.

    An output that overwrites an operand is read as well (`opgen.passes.in_place`).  `assumptions` are conditions on the
    parameters that every caller guarantees; the analysis may use them.
    """

    name: str
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    parameters: tuple[Parameter, ...]
    body: Stmt
    assumptions: tuple[Expr, ...] = field(default=())

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        return self.inputs + self.outputs

    @property
    def is_bound(self) -> bool:
        """Return True if no size is left open: there are no parameters but floats."""
        return all(p.dtype.is_float for p in self.parameters)
