"""The rules of loop IR, checked: names, types, structure and, on request, bounds.

`verify` is for IR that opgen made: a problem is a bug, an `InternalError`.  `problems` lists them for callers whose
IR a user wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from opgen.diagnostics import InternalError
from opgen.dtypes import BOOL
from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.analysis.lanes import per_lane
from opgen.loop.analysis.scopes import walk_kernel
from opgen.loop.nodes import (
    INDEX,
    Alloc,
    Barrier,
    Binary,
    Block,
    Buffer,
    Check,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    Prefetch,
    Stmt,
    Store,
    Type,
)
from opgen.loop.print import print_expr
from opgen.loop.typecheck import Declarations, access_problems, type_problems
from opgen.loop.walk import declares, expressions, free_vars, loads, loops_in, outermost, parts, touched, walk_expr


@dataclass(frozen=True)
class Problem:
    """A broken rule and the loops, branches and names around the place, outermost first."""

    message: str
    place: str

    def __str__(self) -> str:
        return f"{self.message} (in {self.place})"


def verify(kernel: Kernel, *, bounds: bool = False, before: Kernel | None = None) -> None:
    """Raise `InternalError` with all problems of a kernel, if there are any.

    `before` is a kernel without problems: the parts that both share are not checked again.
    """
    found = problems(kernel, bounds=bounds, before=before)
    if found:
        listed = "".join(f"\n  {p}" for p in found)
        raise InternalError(f"kernel '{kernel.name}' breaks the rules of loop IR:{listed}")


def problems(kernel: Kernel, *, bounds: bool = False, before: Kernel | None = None) -> list[Problem]:
    """Return all problems of a kernel.

    With `bounds`, this includes every access that is not proved in bounds and every division whose divisor is not
    proved nonzero.  These are looked for only in kernels without other problems.
    """
    checker = _Checker(kernel, frozenset() if before is None else _shared(kernel, before))
    found = [*_header(kernel), *_late(kernel), *checker.statement(kernel.body, _declarations(kernel), _Place())]
    if bounds and not found:
        found += _bounds(kernel)
    return list(dict.fromkeys(found))


def _shared(kernel: Kernel, before: Kernel) -> frozenset[int]:
    """Return the identities of the outermost buffers and statements that are as correct as they were before."""
    if (kernel.buffers, kernel.parameters) != (before.buffers, before.parameters):
        return frozenset()
    old, statements = outermost(before.body)
    new, _ = outermost(kernel.body)
    same = {id(o) for o in old} & {id(o) for o in new}
    gone = {o.name for o in old if id(o) not in same}
    added = [o.name for o in new if id(o) not in same]
    kept = (s for s in statements if gone.isdisjoint(touched(s)) and not any(declares(s, name) for name in added))
    return frozenset(same.union(map(id, kept)))


# Header ------------------------------------------------------------------------------------------


def _declarations(kernel: Kernel) -> Declarations:
    names = Declarations({p.name: Type(p.dtype) for p in kernel.parameters})
    return names.allocated(kernel.buffers)


def _header(kernel: Kernel) -> Iterator[Problem]:
    place = f"kernel {kernel.name}"
    declared = [*(p.name for p in kernel.parameters), *(o.name for o in kernel.buffers)]
    for name in dict.fromkeys(n for n in declared if declared.count(n) > 1):
        yield Problem(f"the name '{name}' is declared twice", place)
    yield from (Problem(m, place) for name in [kernel.name, *declared] for m in _name(name))
    for p in kernel.parameters:
        if not p.dtype.is_int and (p.low is not None or p.high is not None):
            yield Problem(f"parameter '{p.name}' is {p.dtype} and has bounds; only integers have", place)
    names = replace(_declarations(kernel), buffers={})
    for buffer in kernel.buffers:
        yield from (Problem(m, place) for m in _shape(buffer, names))
        if buffer.space == "streamed" and buffer in kernel.outputs:
            if any(e.buffer == buffer.name for e in loads(kernel.body)):
                yield Problem(f"the output '{buffer.name}' is streamed, and read", place)
        elif buffer.space != "global":
            yield Problem(f"argument '{buffer.name}' is in {buffer.space} memory, not global", place)
    for a in kernel.assumptions:
        yield from (Problem(m, place) for m in type_problems(a, names))
        if a.type != Type(BOOL):
            yield Problem(f"the assumption '{print_expr(a)}' is {a.type}, not bool", place)


def _late(kernel: Kernel) -> Iterator[Problem]:
    """Checks after which not everything can be as it was: an output is stored to before."""
    outputs = {o.name for o in kernel.outputs}
    written: str | None = None
    for s in _outside_loops(kernel.body):
        if isinstance(s, Check):
            if written is not None:
                yield Problem(f"check {s.number} stands after a store to the output '{written}'", "the body")
        elif isinstance(s, For | Store):
            written = next((name for name in sorted(outputs & touched(s))), written)


def _outside_loops(s: Stmt) -> Iterator[Stmt]:
    """Yield the statements that are in no loop, in program order, loops as wholes."""
    left = [s]
    while left:
        s = left.pop()
        yield s
        if not isinstance(s, For):
            left += reversed(list(parts(s)))


def _name(name: str) -> Iterator[str]:
    if not (name.isascii() and name.isidentifier()):
        yield f"{name!r} is no name"


def _shape(buffer: Buffer, names: Declarations) -> Iterator[str]:
    for size in (*buffer.shape, *(buffer.given or ())):
        yield from type_problems(size, names)
        if size.type != INDEX:
            yield f"the size '{print_expr(size)}' of buffer '{buffer.name}' is {size.type}, not {INDEX}"


# Body --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Place:
    """The surroundings of a statement: titles for messages, and loop kinds; `uneven` names differ between threads."""

    titles: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    uneven: frozenset[str] = frozenset()
    divergent: bool = False

    def __str__(self) -> str:
        return " > ".join(self.titles) or "the body"

    def inside(self, title: str) -> _Place:
        return replace(self, titles=(*self.titles, title))

    def has(self, stem: str) -> bool:
        return any(k.startswith(stem) for k in self.kinds)

    def varies(self, *parts: Expr) -> bool:
        """Return True if threads may find different values of an expression."""
        reads = any(isinstance(n, Load) for e in parts for n in walk_expr(e))
        return self.has("thread") and (reads or any(free_vars(e) & self.uneven for e in parts))


@dataclass(frozen=True)
class _Checker:
    kernel: Kernel
    right: frozenset[int] = frozenset()
    """Identities of objects that were found correct in their places."""

    def statement(self, s: Stmt, names: Declarations, place: _Place) -> Iterator[Problem]:
        if id(s) in self.right:
            return
        if not isinstance(s, Alloc):
            yield from (Problem(m, str(place)) for e in expressions(s) for m in type_problems(e, names))
        match s:
            case Store():
                yield from (Problem(m, str(place)) for m in self._store(s, names))
            case For():
                yield from self._for(s, names, place)
            case If():
                yield from self._if(s, names, place)
            case Let():
                yield from self._let(s, names, place)
            case Alloc():
                yield from self._alloc(s, names, place)
            case Block():
                for part in s.statements:
                    if isinstance(part, Block):
                        yield Problem("a block stands directly in a block", str(place))
                    yield from self.statement(part, names, place)
            case Prefetch():
                yield from (Problem(m, str(place)) for m in self._prefetch(s, names))
            case Barrier():
                yield from (Problem(m, str(place)) for m in self._barrier(place))
            case Check():
                yield from (Problem(m, str(place)) for m in _check(s, place))

    def _store(self, s: Store, names: Declarations) -> Iterator[str]:
        yield from access_problems(s.buffer, s.indices, s.mask, s.value.type.dtype, names)
        if any(s.buffer == i.name for i in self.kernel.inputs):
            yield f"a store to the input '{s.buffer}'"
        lanes = max((i.type.lanes for i in s.indices), default=1)
        if s.value.type.lanes != lanes:
            yield f"{lanes} elements of buffer '{s.buffer}' are stored from {s.value.type.lanes} lanes"

    def _prefetch(self, s: Prefetch, names: Declarations) -> Iterator[str]:
        known = names.buffers.get(s.buffer)
        if known is None or known.space != "global":
            yield f"a prefetch of '{s.buffer}', which is no argument"
        elif len(known.shape) != len(s.indices):
            yield f"{len(s.indices)} indices for the {len(known.shape)} dimensions of buffer '{s.buffer}'"
        yield from (
            f"the index '{print_expr(i)}' of a prefetch is {i.type}, not {INDEX}" for i in s.indices if i.type != INDEX
        )
        if any(isinstance(n, Load) for i in s.indices for n in walk_expr(i)):
            yield "a prefetch reads memory to know where"

    def _declared(self, name: str, names: Declarations, place: _Place) -> Iterator[Problem]:
        if name in names:
            yield Problem(f"the name '{name}' is declared twice", str(place))
        yield from (Problem(m, str(place)) for m in _name(name))

    def _for(self, s: For, names: Declarations, place: _Place) -> Iterator[Problem]:
        yield from self._declared(s.var, names, place)
        for e in (s.start, s.stop):
            if e.type != INDEX:
                yield Problem(f"the bound '{print_expr(e)}' of loop '{s.var}' is {e.type}, not {INDEX}", str(place))
        yield from (Problem(m, str(place)) for m in _nesting(s, place))
        uneven = s.kind.startswith("thread") or place.varies(s.start, s.stop)
        inner = replace(
            place.inside(f"{s.kind} for {s.var}" if s.kind != "serial" else f"for {s.var}"),
            kinds=(*place.kinds, s.kind),
            uneven=place.uneven | {s.var} if uneven else place.uneven,
            divergent=place.divergent or place.varies(s.start, s.stop),
        )
        yield from self.statement(s.body, names.variable(s.var, INDEX), inner)

    def _if(self, s: If, names: Declarations, place: _Place) -> Iterator[Problem]:
        if s.condition.type != Type(BOOL):
            yield Problem(f"the condition '{print_expr(s.condition)}' is {s.condition.type}, not bool", str(place))
        inner = replace(place.inside("if"), divergent=place.divergent or place.varies(s.condition))
        yield from self.statement(s.then, names, inner)
        if s.otherwise is not None:
            yield from self.statement(s.otherwise, names, replace(inner, titles=(*place.titles, "else")))

    def _let(self, s: Let, names: Declarations, place: _Place) -> Iterator[Problem]:
        yield from self._declared(s.var.name, names, place)
        if s.var.type != s.value.type:
            yield Problem(f"'{s.var.name}' is {s.var.type}, its value {s.value.type}", str(place))
        uneven = place.uneven | {s.var.name} if place.varies(s.value) else place.uneven
        yield from self.statement(s.body, names.variable(s.var.name, s.var.type), replace(place, uneven=uneven))

    def _alloc(self, s: Alloc, names: Declarations, place: _Place) -> Iterator[Problem]:
        yield from (Problem(m, str(place)) for m in _side_by_side(s))
        for buffer in s.buffers:
            if id(buffer) in self.right:
                continue
            space = buffer.space
            yield from self._declared(buffer.name, names, place)
            yield from (Problem(m, str(place)) for m in _shape(buffer, names))
            yield from (Problem(m, str(place)) for m in _allocation(buffer, s.body, place))
            if space in ("stack", "register", "tile", "shared") and not all(isinstance(e, Const) for e in buffer.shape):
                yield Problem(f"buffer '{buffer.name}' in {space} memory has no constant size", str(place))
        yield from self.statement(s.body, names.allocated(s.buffers), place)

    def _barrier(self, place: _Place) -> Iterator[str]:
        if not place.has("block") and not place.has("thread"):
            yield "a barrier outside block and thread loops"
        elif place.divergent:
            yield "a barrier that some threads may not reach"


def _check(s: Check, place: _Place) -> Iterator[str]:
    if place.titles:
        yield "a check stands in a loop or a condition"
    if s.condition.type != Type(BOOL) or s.value.type != INDEX:
        yield f"a check is of {s.condition.type} and {s.value.type}, not bool and {INDEX}"
    if s.number < 0:
        yield f"a check has the number {s.number}"


def _nesting(s: For, place: _Place) -> Iterator[str]:
    """Yield the problems with a loop's kind inside the loops around it."""
    stem = s.kind.partition(".")[0]
    if s.kind == "parallel" and "parallel" in place.kinds:
        yield f"the parallel loop '{s.var}' stands in a parallel loop"
    if s.kind == "parallel" and (place.has("block") or place.has("thread")):
        yield f"the parallel loop '{s.var}' stands in a block or thread loop"
    if stem in ("block", "thread") and s.kind in place.kinds:
        yield f"the {s.kind} loop '{s.var}' stands in a {s.kind} loop"
    if stem in ("block", "thread") and "parallel" in place.kinds:
        yield f"the {s.kind} loop '{s.var}' stands in a parallel loop"
    if stem == "block" and place.has("thread"):
        yield f"the {s.kind} loop '{s.var}' stands in a thread loop"


def _side_by_side(s: Alloc) -> Iterator[str]:
    """Check that buffers on the heap that live together are in one `Alloc`, and all others in one each."""
    if len({buffer.name for buffer in s.buffers}) < len(s.buffers):
        yield "a name is declared twice in an allocation"
    if not s.buffers:
        yield "an allocation of nothing"
    elif len(s.buffers) > 1 and any(buffer.space != "heap" for buffer in s.buffers):
        yield "buffers of which not all are on the heap are allocated together"
    elif s.space == "heap" and isinstance(s.body, Alloc) and s.body.space == "heap":
        yield "an allocation on the heap stands directly in another"


def _allocation(buffer: Buffer, body: Stmt, place: _Place) -> Iterator[str]:
    """Yield the problems with a memory space at an allocation."""
    name, space = buffer.name, buffer.space
    if space in ("global", "streamed"):
        yield f"buffer '{name}' is allocated in {space} memory, which is for arguments"
    if space == "shared" and (place.has("thread") or not place.has("block")):
        yield f"buffer '{name}' in shared memory is not allocated between block and thread loops"
    private = space in ("stack", "register", "tile") and not place.has("thread")
    if private and any(part.kind.startswith("thread") for part in loops_in(body)):
        yield f"buffer '{name}' in {space} memory is allocated outside the thread loops that use it"


# Bounds ------------------------------------------------------------------------------------------


def _bounds(kernel: Kernel) -> Iterator[Problem]:
    shapes = {o.name: o.shape for o in kernel.buffers}
    for s, context in walk_kernel(kernel):
        known = {**shapes, **context.shapes}
        place = _described(s)
        for e in expressions(s):
            yield from (Problem(m, place) for m in _expression_bounds(e, context, known))
        if isinstance(s, Store):
            yield from (
                Problem(m, place) for m in _access_bounds(s.buffer, s.indices, s.mask, context, known[s.buffer])
            )


def _described(s: Stmt) -> str:
    match s:
        case Store():
            return f"a store to '{s.buffer}'"
        case For():
            return f"the bounds of loop '{s.var}'"
        case Let():
            return f"the value of '{s.var.name}'"
        case Alloc():
            return f"the shape of '{', '.join(o.name for o in s.buffers)}'"
    return "a condition"


def _expression_bounds(e: Expr, context: Context, shapes: dict[str, tuple[Expr, ...]]) -> Iterator[str]:
    for n in walk_expr(e):
        if isinstance(n, Load):
            yield from _access_bounds(n.buffer, n.indices, n.mask, context, shapes[n.buffer])
        elif isinstance(n, Binary) and n.op in ("floordiv", "mod"):
            inner = context.with_lanes(n.type.lanes)
            if not inner.proves(b.compare("ne", per_lane(n.right), _zero(n.right))):
                yield f"the divisor of '{print_expr(n)}' is not proved to differ from 0"


def _zero(e: Expr) -> Expr:
    return Const(0, Type(e.type.dtype))


def _access_bounds(
    buffer: str, indices: tuple[Expr, ...], mask: Expr | None, context: Context, shape: tuple[Expr, ...]
) -> Iterator[str]:
    lanes = max((i.type.lanes for i in indices), default=1)
    context = context.with_lanes(lanes)
    if mask is not None:
        context = context.with_condition(mask)
    for i, size in zip(indices, shape, strict=True):
        scalar = per_lane(i)
        if not context.proves(b.compare("le", 0, scalar)):
            yield f"the index '{print_expr(i)}' of buffer '{buffer}' is not proved to be at least 0"
        if not context.proves(b.compare("lt", scalar, size)):
            yield f"the index '{print_expr(i)}' of buffer '{buffer}' is not proved to be below {print_expr(size)}"


__all__ = ["Problem", "problems", "verify"]
