"""Type rules for the operands of an expression."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from opgen.dtypes import BFLOAT16, BOOL, FLOAT32, INT8, INT32, INT64, UINT8, DType
from opgen.loop.nodes import (
    INDEX,
    Binary,
    BitCast,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    Const,
    Dot,
    Expr,
    Load,
    Ramp,
    Select,
    Shuffle,
    Type,
    Unary,
    Var,
    Word,
)
from opgen.loop.print import print_expr
from opgen.loop.syntax import FUNCTIONS
from opgen.loop.walk import operands

_KINDS = {
    **dict.fromkeys(("add", "sub", "mul", "min", "max"), ("int", "float")),
    "div": ("float",),
    **dict.fromkeys(("floordiv", "mod", "quot", "shl", "shr"), ("int",)),
    "rem": ("int", "float"),
    **dict.fromkeys(("and", "or", "xor"), ("bool", "int")),
    "neg": ("int", "float"),
    "not": ("bool",),
    **dict.fromkeys(FUNCTIONS, ("float",)),
    "abs": ("int", "float"),
    "pow": ("int", "float"),
}
"""The kinds of types each operation takes."""


@dataclass(frozen=True)
class Declarations:
    """The names in scope, and the expressions already checked here or in an enclosing scope.

    Statements that unrolling makes share most of their parts.
    """

    variables: Mapping[str, Type] = field(default_factory=dict)
    buffers: Mapping[str, Buffer] = field(default_factory=dict)
    scopes: tuple[object, ...] = (None,)
    """A mark for each scope, the innermost last."""
    right: dict[int, tuple[Expr, int, object]] = field(default_factory=dict)
    """By identity: an expression, and the depth and mark of the scope in which it was correct."""

    def variable(self, name: str, type: Type) -> Declarations:
        return replace(self, variables={**self.variables, name: type}, scopes=(*self.scopes, object()))

    def allocated(self, buffers: Iterable[Buffer]) -> Declarations:
        return replace(self, buffers=dict(self.buffers) | {o.name: o for o in buffers}, scopes=(*self.scopes, object()))

    def __contains__(self, name: str) -> bool:
        return name in self.variables or name in self.buffers

    def known(self, e: Expr) -> bool:
        """Return True if this very object was checked in a scope that is still open."""
        found = self.right.get(id(e))
        return found is not None and found[1] < len(self.scopes) and self.scopes[found[1]] is found[2]

    def keep(self, e: Expr) -> None:
        """Remember that an expression is correct here."""
        self.right[id(e)] = (e, len(self.scopes) - 1, self.scopes[-1])


def type_problems(e: Expr, names: Declarations) -> Iterator[str]:
    """Yield the problems with the types and names of an expression, innermost first."""
    if names.known(e):
        return
    wrong = False
    for o in operands(e):
        for problem in type_problems(o, names):
            wrong = True
            yield problem
    for problem in _own_problems(e, names):
        wrong = True
        yield problem
    if not wrong:
        names.keep(e)


def _own_problems(e: Expr, names: Declarations) -> Iterator[str]:
    """Yield the problems of an expression whose operands are correct."""
    match e:
        case Const():
            yield from _const(e)
        case Var():
            declared = names.variables.get(e.name)
            if declared is None:
                yield f"there is no variable '{e.name}' here"
            elif declared != e.type:
                yield f"variable '{e.name}' is {declared}, used as {e.type}"
        case Unary():
            yield from _operation(e.op, (e.operand,), e)
        case Binary():
            yield from _operation(e.op, (e.left, e.right), e)
        case Compare():
            yield from _same((e.left, e.right), e)
            yield from _narrow(e.left.type.dtype, e)
        case Select():
            yield from _select(e)
        case Cast():
            if e.type.lanes != e.operand.type.lanes:
                yield f"'{print_expr(e)}' changes the number of lanes from {e.operand.type.lanes}"
        case BitCast():
            yield from _bit_cast(e)
        case Call():
            yield from _call(e)
        case Word():
            yield from _same(e.parts, e)
            of = e.parts[0].type.dtype
            wanted = (BFLOAT16,) if e.name == "pair" else (INT8, UINT8)
            if of not in wanted:
                yield f"'{print_expr(e)}' is a {e.name} of {of}, not of {' or '.join(map(str, wanted))}"
        case Dot():
            lanes = e.sum.type.lanes
            total = INT32 if e.sum.type.dtype == INT32 else FLOAT32
            expected = (Type(total, lanes), Type(INT32, lanes), Type(INT32, lanes))
            if (e.sum.type, e.left.type, e.right.type) != expected:
                yield f"'{print_expr(e)}' takes {', '.join(map(str, expected))}"
        case Broadcast():
            yield from _lanes(e.lanes, (e.operand,), e)
        case Ramp():
            yield from _lanes(e.lanes, (e.base, e.stride), e)
            yield from _same((e.base, e.stride), e)
            if not e.base.type.dtype.is_int:
                yield f"'{print_expr(e)}' is a ramp of {e.base.type.dtype}, not of integers"
        case Shuffle():
            yield from _shuffle(e)
        case Load():
            yield from access_problems(e.buffer, e.indices, e.mask, e.dtype, names)


def _const(e: Const) -> Iterator[str]:
    dtype = e.type.dtype
    wanted = {"bool": bool, "int": int, "float": float}[dtype.kind]
    if type(e.value) is not wanted:
        yield f"the constant {e.value!r} is no {dtype}"
    elif dtype.is_int and not dtype.least <= e.value <= dtype.greatest:
        yield f"the constant {e.value} does not fit {dtype}"
    if e.type.lanes < 1:
        yield f"a constant of {e.type.lanes} lanes"


def _same(of: tuple[Expr, ...], e: Expr) -> Iterator[str]:
    types = [o.type for o in of]
    if any(t != types[0] for t in types):
        yield f"'{print_expr(e)}' combines {' and '.join(dict.fromkeys(map(str, types)))}"


def _narrow(dtype: DType, e: Expr) -> Iterator[str]:
    if dtype.compute != dtype.name:
        yield f"'{print_expr(e)}' is arithmetic on {dtype}; cast to {dtype.compute} first"


def _operation(op: str, of: tuple[Expr, ...], e: Expr) -> Iterator[str]:
    yield from _same(of, e)
    dtype = of[0].type.dtype
    if dtype.kind not in _KINDS[op]:
        yield f"'{print_expr(e)}': {op} is not for {dtype}"
    yield from _narrow(dtype, e)


def _select(e: Select) -> Iterator[str]:
    yield from _same((e.if_true, e.if_false), e)
    condition = e.condition.type
    if condition.dtype != BOOL or condition.lanes not in (1, e.type.lanes):
        yield f"the condition of '{print_expr(e)}' is {condition}, not {Type(BOOL, e.type.lanes)}"


def _call(e: Call) -> Iterator[str]:
    wanted = FUNCTIONS[e.function][1]
    if len(e.arguments) != wanted:
        yield f"'{print_expr(e)}' has {len(e.arguments)} arguments; {e.function} takes {wanted}"
    else:
        yield from _operation(e.function, e.arguments, e)


def _bit_cast(e: BitCast) -> Iterator[str]:
    source, target = e.operand.type, e.type
    if source.lanes != target.lanes:
        yield f"'{print_expr(e)}' changes the number of lanes from {source.lanes}"
    if source.dtype.bits != target.dtype.bits:
        yield f"'{print_expr(e)}' takes {target.dtype.bits} bits from the {source.dtype.bits} of {source.dtype}"
    for dtype in dict.fromkeys((source.dtype, target.dtype)):
        if dtype == BOOL or dtype.is_stored:
            yield f"'{print_expr(e)}': bit_cast is not for {dtype}"


def _lanes(lanes: int, of: tuple[Expr, ...], e: Expr) -> Iterator[str]:
    if lanes < 2:
        yield f"'{print_expr(e)}' has {lanes} lanes; a vector has at least 2"
    if any(o.type.lanes != 1 for o in of):
        yield f"'{print_expr(e)}' makes a vector of vectors"


def _shuffle(e: Shuffle) -> Iterator[str]:
    yield from _same((e.left, e.right), e)
    if e.left.type.lanes < 2 or len(e.order) < 2:
        yield f"'{print_expr(e)}' picks {len(e.order)} of {e.left.type.lanes} lanes; a vector has at least 2"
    elif not all(0 <= lane < 2 * e.left.type.lanes for lane in e.order):
        yield f"'{print_expr(e)}' picks a lane that two vectors of {e.left.type.lanes} do not have"


def access_problems(
    buffer: str, indices: tuple[Expr, ...], mask: Expr | None, dtype: DType, names: Declarations
) -> Iterator[str]:
    """Yield the problems with the types of a load, or of a store of an element of type `dtype`."""
    declared = names.buffers.get(buffer)
    if declared is None:
        yield f"there is no buffer '{buffer}' here"
        return
    if declared.dtype != dtype:
        yield f"buffer '{buffer}' holds {declared.dtype}, accessed as {dtype}"
    if len(indices) != len(declared.shape):
        yield f"buffer '{buffer}' has {len(declared.shape)} dimensions, accessed by {len(indices)} indices"
    lanes = max((i.type.lanes for i in indices), default=1)
    for i in indices:
        if i.type.dtype != INT64:
            yield f"the index '{print_expr(i)}' of buffer '{buffer}' is {i.type}, not {INDEX}"
        elif i.type.lanes not in (1, lanes):
            yield f"the index '{print_expr(i)}' of buffer '{buffer}' has {i.type.lanes} lanes, others {lanes}"
    if mask is not None and mask.type != Type(BOOL, lanes):
        yield f"the mask of an access to buffer '{buffer}' is {mask.type}, not {Type(BOOL, lanes)}"
