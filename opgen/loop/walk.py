"""Visiting and rewriting loop IR.  A rewrite that changes nothing returns the same object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

from opgen.loop import build as b
from opgen.loop.nodes import (
    Alloc,
    Barrier,
    Binary,
    BitCast,
    Block,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Check,
    Compare,
    Const,
    Dot,
    Expr,
    For,
    If,
    Let,
    Load,
    Prefetch,
    Ramp,
    Select,
    Shuffle,
    Stmt,
    Store,
    Unary,
    Var,
    Word,
)

ExprFn = Callable[[Expr], Expr]
StmtFn = Callable[[Stmt], Stmt]


def _of_load(e: Load) -> tuple[Expr, ...]:
    return e.indices if e.mask is None else (*e.indices, e.mask)


def _none(_: object) -> tuple[()]:
    return ()


_BOTH = attrgetter("left", "right")


def _single(e: Unary | Cast | BitCast | Broadcast) -> tuple[Expr, ...]:
    return (e.operand,)


_OPERANDS: Mapping[type, Callable[..., tuple[Expr, ...]]] = {
    Binary: _BOTH,
    Compare: _BOTH,
    Shuffle: _BOTH,
    Const: _none,
    Var: _none,
    Load: _of_load,
    Ramp: attrgetter("base", "stride"),
    Call: attrgetter("arguments"),
    Unary: _single,
    Cast: _single,
    BitCast: _single,
    Broadcast: _single,
    Select: attrgetter("condition", "if_true", "if_false"),
    Word: attrgetter("parts"),
    Dot: attrgetter("sum", "left", "right"),
}
"""By the kind of node: most of the compiler's time is spent in walks, and a table is faster than a `match`."""
_LEAVES = (Const, Var)
"""Without operands, as two of three nodes are."""


def operands(e: Expr) -> tuple[Expr, ...]:
    """Return the direct subexpressions, the mask of a load last."""
    return _OPERANDS[type(e)](e)


def with_operands(e: Expr, new: tuple[Expr, ...]) -> Expr:
    """Return the same node over other subexpressions (in the order of `operands`)."""
    match e:
        case Binary():
            return e if new[0] is e.left and new[1] is e.right else Binary(e.op, new[0], new[1])
        case Const() | Var():
            return e
        case Ramp():
            return e if new[0] is e.base and new[1] is e.stride else Ramp(new[0], new[1], e.lanes)
        case Compare():
            return e if new[0] is e.left and new[1] is e.right else Compare(e.op, new[0], new[1])
    if _same(operands(e), new):
        return e
    match e:
        case Load():
            masked = e.mask is not None
            return Load(e.buffer, new[:-1] if masked else new, e.dtype, new[-1] if masked else None)
        case Call():
            return Call(e.function, new)
        case Unary():
            return Unary(e.op, new[0])
        case Cast():
            return Cast(e.type, new[0])
        case BitCast():
            return BitCast(e.type, new[0])
        case Broadcast():
            return Broadcast(new[0], e.lanes)
        case Select():
            return Select(new[0], new[1], new[2])
        case Word():
            return Word(new)
        case Dot():
            return Dot(new[0], new[1], new[2])
        case Shuffle():
            return Shuffle(new[0], new[1], e.order)


def _same(old: Sequence[object], new: Sequence[object]) -> bool:
    """Return True if two sequences are of the same objects."""
    if len(old) != len(new):
        return False
    for x, y in zip(old, new, strict=True):  # noqa: SIM110 - several times as fast as `all` of a generator
        if x is not y:
            return False
    return True


def map_expr(fn: ExprFn, e: Expr) -> Expr:
    """Apply `fn` to every node of an expression, innermost first."""
    if isinstance(e, _LEAVES):
        return fn(e)
    return fn(with_operands(e, tuple([map_expr(fn, o) for o in operands(e)])))


def _shared_map(fn: ExprFn) -> ExprFn:
    """`map_expr` for all expressions of a statement: its copies share nodes, and each node is rewritten once."""
    made: dict[int, Expr] = {}

    def mapped(e: Expr) -> Expr:
        new = made.get(id(e))
        if new is None:
            over = e if isinstance(e, _LEAVES) else with_operands(e, tuple([mapped(o) for o in operands(e)]))
            new = made[id(e)] = fn(over)
        return new

    return mapped


def expressions(s: Stmt) -> tuple[Expr, ...]:
    """Return the expressions directly in a statement (not in its parts)."""
    match s:
        case Store():
            own = (*s.indices, s.value)
            return own if s.mask is None else (*own, s.mask)
        case For():
            return (s.start, s.stop)
        case If():
            return (s.condition,)
        case Let():
            return (s.value,)
        case Alloc():
            return s.buffers[0].shape if len(s.buffers) == 1 else tuple([e for o in s.buffers for e in o.shape])
        case Prefetch():
            return s.indices
        case Check():
            return (s.condition, s.value)
        case Block() | Barrier():
            return ()


def with_expressions(s: Stmt, new: tuple[Expr, ...]) -> Stmt:
    """Return the same statement with other direct expressions (in the order of `expressions`)."""
    if _same(expressions(s), new):
        return s
    match s:
        case Store():
            n = len(s.indices)
            return Store(s.buffer, new[:n], new[n], new[n + 1] if s.mask is not None else None)
        case For():
            return For(s.var, new[0], new[1], s.body, s.kind)
        case If():
            return If(new[0], s.then, s.otherwise)
        case Let():
            return Let(s.var, new[0], s.body)
        case Alloc():
            rest = iter(new)
            shaped = [Buffer(o.name, o.dtype, tuple([next(rest) for _ in o.shape]), o.space) for o in s.buffers]
            return Alloc(tuple(shaped), s.body)
        case Prefetch():
            return Prefetch(s.buffer, new)
        case Check():
            return Check(new[0], s.number, new[1])
        case Block() | Barrier():
            return s


def _body(s: For | Let | Alloc) -> tuple[Stmt]:
    return (s.body,)


def _branches(s: If) -> tuple[Stmt, ...]:
    return (s.then,) if s.otherwise is None else (s.then, s.otherwise)


_PARTS: Mapping[type, Callable[..., tuple[Stmt, ...]]] = {
    Store: _none,
    For: _body,
    Block: attrgetter("statements"),
    If: _branches,
    Let: _body,
    Alloc: _body,
    Barrier: _none,
    Check: _none,
    Prefetch: _none,
}


def parts(s: Stmt) -> tuple[Stmt, ...]:
    """Return the direct substatements."""
    return _PARTS[type(s)](s)


def with_parts(s: Stmt, new: tuple[Stmt, ...]) -> Stmt:
    """Return the same statement over other substatements; blocks are flattened."""
    if _same(parts(s), new):
        return s
    match s:
        case Store() | Barrier() | Check() | Prefetch():
            return s
        case For():
            return For(s.var, s.start, s.stop, new[0], s.kind)
        case Let():
            return Let(s.var, s.value, new[0])
        case Alloc():
            if isinstance(new[0], Alloc):
                return b.alloc(s.buffers, new[0])
            return Alloc(s.buffers, new[0])  # the same buffers: what is known of them is kept by their identity
        case If():
            return If(s.condition, new[0], new[1] if len(new) > 1 else None)
        case Block():
            return b.block(new)


def map_stmt(s: Stmt, *, expr: ExprFn | None = None, stmt: StmtFn | None = None) -> Stmt:
    """Rewrite a statement innermost first: `expr` on every expression node, then `stmt` on every statement.

    Both see a node only, not its place.
    """
    mapped = None if expr is None else _shared_map(expr)

    def visit(s: Stmt) -> Stmt:
        new = with_parts(s, tuple([visit(p) for p in parts(s)]))
        if mapped is not None:
            new = with_expressions(new, tuple([mapped(e) for e in expressions(new)]))
        return new if stmt is None else stmt(new)

    return visit(s)


def walk_expr(e: Expr) -> Iterator[Expr]:
    """Yield every node of an expression, outermost first."""
    return _nodes([e])


def reads_memory(e: Expr) -> bool:
    """Return True if an expression loads anything."""
    return any(isinstance(n, Load) for n in walk_expr(e))


def _nodes(left: list[Expr]) -> Iterator[Expr]:
    """Yield every node of some expressions, the last expression first."""
    while left:
        e = left.pop()
        yield e
        if not isinstance(e, _LEAVES):
            left += _OPERANDS[type(e)](e)[::-1]


def walk(s: Stmt) -> Iterator[Stmt]:
    """Yield every statement in a statement, outermost first, in program order."""
    left = [s]
    while left:
        s = left.pop()
        yield s
        if not isinstance(s, Store):
            left += _PARTS[type(s)](s)[::-1]


def walk_exprs(s: Stmt) -> Iterator[Expr]:
    """Yield every expression node in a statement."""
    for part in walk(s):
        yield from _nodes(list(expressions(part)[::-1]))


def distinct_exprs(s: Stmt) -> Iterator[Expr]:
    """Yield every expression node in a statement, those in several places once."""
    return distinct_in(map(expressions, walk(s)))


def distinct_in(groups: Iterable[tuple[Expr, ...]]) -> Iterator[Expr]:
    """Yield every node of some expressions, those in several places once."""
    seen: set[int] = set()
    for group in groups:
        left = list(group)
        while left:
            e = left.pop()
            if id(e) in seen:
                continue
            seen.add(id(e))
            yield e
            if not isinstance(e, _LEAVES):
                left += _OPERANDS[type(e)](e)


def substitute_expr(e: Expr, values: Mapping[str, Expr]) -> Expr:
    """Replace variables by expressions (no capture is possible: expressions bind nothing)."""
    return map_expr(lambda n: values.get(n.name, n) if isinstance(n, Var) else n, e)


def substitute(s: Stmt, values: Mapping[str, Expr]) -> Stmt:
    """Replace free variables by expressions.  Names are unique along a path, so nothing is captured."""
    return map_stmt(s, expr=lambda n: values.get(n.name, n) if isinstance(n, Var) else n)


def free_vars(e: Expr) -> frozenset[str]:
    """Return the names of the variables in an expression."""
    found: set[str] = set()
    left = [e]
    while left:
        e = left.pop()
        if isinstance(e, Var):
            found.add(e.name)
        elif not isinstance(e, Const):
            left += _OPERANDS[type(e)](e)
    return frozenset(found)


# Contents of a statement -------------------------------------------------------------------------
#
# Steps and passes share all unchanged parts of a statement, so these are kept in the statements (`_Remembering`).
# A statement never holds itself there: such a cycle would outlive its last use.


def skeleton(s: Stmt) -> tuple[Stmt, ...]:
    """Return every statement in a statement but stores and blocks, outermost first, in program order."""
    if isinstance(s, Store):
        return ()
    try:
        inside = s.found_skeleton
    except AttributeError:
        inside = tuple([q for p in parts(s) for q in skeleton(p)])
        object.__setattr__(s, "found_skeleton", inside)
    return inside if isinstance(s, Block) else (s, *inside)


def loops_in(s: Stmt) -> Iterator[For]:
    """Yield the loops in a statement, outermost first, in program order."""
    return (p for p in skeleton(s) if isinstance(p, For))


def allocs_in(s: Stmt) -> Iterator[Alloc]:
    """Yield the allocations in a statement, outermost first, in program order."""
    return (p for p in skeleton(s) if isinstance(p, Alloc))


def buffers_in(s: Stmt) -> Iterator[Buffer]:
    """Yield the local buffers in a statement, outermost first, in program order."""
    return (buffer for p in allocs_in(s) for buffer in p.buffers)


def outermost(s: Stmt) -> tuple[tuple[Buffer, ...], tuple[Stmt, ...]]:
    """Return the buffers on the heap around the statements of a kernel's body, and these."""
    buffers: tuple[Buffer, ...] = ()
    if isinstance(s, Alloc) and s.space == "heap":
        buffers, s = s.buffers, s.body
    return buffers, s.statements if isinstance(s, Block) else (s,)


def holds_loop(s: Stmt, name: str) -> bool:
    """Return True if a statement is, or contains, a loop of that name."""
    while isinstance(s, Alloc):
        s = s.body
    if isinstance(s, Block):
        return any(not isinstance(p, Store) and holds_loop(p, name) for p in s.statements)
    return not isinstance(s, Store) and name in _names(s)[0]


def declares(s: Stmt, name: str) -> bool:
    """Return True if a loop, value or buffer in a statement has that name."""
    while isinstance(s, Alloc):
        if any(buffer.name == name for buffer in s.buffers):
            return True
        s = s.body
    if isinstance(s, Block):
        return any(declares(p, name) for p in s.statements)
    return not isinstance(s, Store) and name in _names(s)[1]


def declared_in(s: Stmt) -> frozenset[str]:
    """Return the names of the loops, values and buffers in a statement."""
    return frozenset() if isinstance(s, Store) else _names(s)[1]


def _names(s: Stmt) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of the loops in a statement, and of all that it declares."""
    try:
        return s.found_names
    except AttributeError:
        loops: set[str] = set()
        others: set[str] = set()
        for p in skeleton(s):
            match p:
                case For():
                    loops.add(p.var)
                case Let():
                    others.add(p.var.name)
                case Alloc():
                    others.update([buffer.name for buffer in p.buffers])
        found = frozenset(loops), frozenset(loops | others)
        object.__setattr__(s, "found_names", found)
        return found


def loads(s: Stmt) -> tuple[Load, ...]:
    """Return the loads in a statement, in program order, each as often as it occurs."""
    try:
        return s.found_loads
    except AttributeError:
        own = [e for e in _nodes(list(expressions(s)[::-1])) if isinstance(e, Load)]
        found = tuple(own + [e for p in parts(s) for e in loads(p)])
        object.__setattr__(s, "found_loads", found)
        return found


def loaded_buffers(s: Stmt) -> frozenset[str]:
    """Return the buffers that are read in a statement, except those whose elements only update themselves.

    A sum that nobody uses is read to be added to.
    """
    try:
        return s.found_loaded
    except AttributeError:
        own = {e.buffer for e in _nodes(list(expressions(s))) if isinstance(e, Load)}
        own -= {s.buffer} if isinstance(s, Store) else set()
        found = frozenset(own.union(*[loaded_buffers(p) for p in parts(s)]))
        object.__setattr__(s, "found_loaded", found)
        return found


def touched(s: Stmt) -> frozenset[str]:
    """Return the buffers that are read, written or prefetched in a statement."""
    try:
        return s.found_touched
    except AttributeError:
        own = {s.buffer} if isinstance(s, Store | Prefetch) else set()
        own.update([e.buffer for e in _nodes(list(expressions(s))) if isinstance(e, Load)])
        found = frozenset(own.union(*[touched(p) for p in parts(s)]))
        object.__setattr__(s, "found_touched", found)
        return found


def mentioned(s: Stmt) -> frozenset[str]:
    """Return the names that a statement declares, and the buffers that it touches."""
    try:
        return s.found_mentioned
    except AttributeError:
        found = touched(s) | declared_in(s)
        object.__setattr__(s, "found_mentioned", found)
        return found


def stores(s: Stmt) -> tuple[Store, ...]:
    """Return the stores in a statement, in program order."""
    if isinstance(s, Store):
        return (s,)
    try:
        return s.found_stores
    except AttributeError:
        found = tuple([q for p in parts(s) for q in stores(p)])
        object.__setattr__(s, "found_stores", found)
        return found
