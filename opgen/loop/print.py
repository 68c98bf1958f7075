"""Loop IR as text.  Nothing is lost: `parse_kernel(print_kernel(k)) == k`.

A name whose type is not the one its declaration gives (broken IR) shows it: `(x: float32)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from opgen.diagnostics import InternalError
from opgen.dtypes import DType
from opgen.loop.nodes import (
    INDEX,
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
    Kernel,
    Let,
    Load,
    Parameter,
    Prefetch,
    Ramp,
    Select,
    Shuffle,
    Stmt,
    Store,
    Type,
    Unary,
    Var,
    Word,
)
from opgen.loop.syntax import ATOM, BIT_CAST, LEVELS, PRECEDENCE, SUFFIX_OF, TOKENS, is_plain_name

INDENT = "    "


@dataclass(frozen=True)
class _Scope:
    """The declared types of names; `strict` shows a type where a use differs from its declaration."""

    variables: dict[str, Type] = field(default_factory=dict)
    buffers: dict[str, DType] = field(default_factory=dict)
    strict: bool = False

    def variable(self, name: str, type: Type) -> _Scope:
        return replace(self, variables={**self.variables, name: type})

    def buffer(self, buffer: Buffer) -> _Scope:
        return replace(self, buffers={**self.buffers, buffer.name: buffer.dtype})


def print_kernel(kernel: Kernel) -> str:
    """Return a kernel as text, with a newline at its end."""
    scope = _Scope(
        {p.name: Type(p.dtype) for p in kernel.parameters}, {b.name: b.dtype for b in kernel.buffers}, strict=True
    )
    header = [_buffer(b, scope, "global") for b in kernel.inputs]
    header += [_parameter(p) for p in kernel.parameters]
    results = [_buffer(b, scope, "global") for b in kernel.outputs]
    lines = [f"kernel {_name(kernel.name)}{_group(header)} -> {_group(results)}:"]
    lines += [f"{INDENT}assume {_expr(a, scope)}" for a in kernel.assumptions]
    lines += [INDENT + line for line in _sequence(kernel.body, scope)]
    return "\n".join(lines) + "\n"


def print_stmt(stmt: Stmt) -> str:
    """Return a statement as lines of text, without a newline at the end."""
    return "\n".join(_sequence(stmt, _Scope()))


def print_expr(expr: Expr) -> str:
    """Return an expression on one line."""
    return _expr(expr, _Scope())


def _group(rows: list[str]) -> str:
    if not rows:
        return "()"
    return "(\n" + "".join(f"{INDENT}{row},\n" for row in rows) + ")"


def _parameter(p: Parameter) -> str:
    text = f"{_name(p.name)}: {p.dtype}"
    if p.low is None and p.high is None:
        return text
    low = "-inf" if p.low is None else str(p.low)
    high = "inf" if p.high is None else str(p.high)
    return f"{text} in [{low}, {high}]"


def _buffer(buffer: Buffer, scope: _Scope, usual_space: str = "") -> str:
    shape = ", ".join(_expr(e, scope) for e in buffer.shape)
    text = f"{_name(buffer.name)}: {buffer.dtype}[{shape}]"
    if buffer.given is not None:
        text += f" as [{', '.join(_expr(e, scope) for e in buffer.given)}]"
    return text if buffer.space == usual_space else f"{text} {buffer.space}"


def _name(name: str) -> str:
    if is_plain_name(name):
        return name
    if not name or "`" in name or "\n" in name or "\r" in name:
        raise InternalError(f"{name!r} cannot be a name in loop IR")
    return f"`{name}`"


# Statements ---------------------------------------------------------------------------------------


def _sequence(s: Stmt, scope: _Scope) -> Iterator[str]:
    """Yield the lines of a statement that fills a suite: the whole of a kernel's, loop's or branch's body."""
    if s == Block(()):
        yield "pass"
    elif isinstance(s, Block) and len(s.statements) > 1:
        for part in s.statements[:-1]:
            yield from _statement(part, scope, last=False)
        yield from _statement(s.statements[-1], scope, last=True)
    else:
        yield from _statement(s, scope, last=True)


def _statement(s: Stmt, scope: _Scope, last: bool) -> Iterator[str]:
    """Yield one statement of a suite; `let` and `alloc` govern the rest of it if they are the last."""
    match s:
        case Store():
            yield f"{_access(s.buffer, s.indices, s.mask, scope)} = {_expr(s.value, scope)}"
        case Barrier():
            yield "barrier"
        case Check():
            yield f"check {_expr(s.condition, scope)} else {s.number}: {_expr(s.value, scope)}"
        case Prefetch():
            yield f"prefetch {_access(s.buffer, s.indices, None, scope)}"
        case For():
            kind = "" if s.kind == "serial" else f"{s.kind} "
            yield f"{kind}for {_name(s.var)} in {_expr(s.start, scope)} .. {_expr(s.stop, scope)}:"
            yield from _suite(s.body, scope.variable(s.var, INDEX))
        case If():
            yield f"if {_expr(s.condition, scope)}:"
            yield from _suite(s.then, scope)
            if s.otherwise is not None:
                yield "else:"
                yield from _suite(s.otherwise, scope)
        case Let():
            head = f"let {_name(s.var.name)}: {s.var.type} = {_expr(s.value, scope)}"
            yield from _scoped(head, s.body, scope.variable(s.var.name, s.var.type), last)
        case Alloc():
            yield from _allocated(s, scope, last)
        case Block():
            yield "block:"
            yield from _block(s, scope)


def _scoped(head: str, body: Stmt, scope: _Scope, last: bool) -> Iterator[str]:
    if last:
        yield head
        yield from _sequence(body, scope)
    else:
        yield f"{head}:"
        yield from _suite(body, scope)


def _allocated(s: Alloc, scope: _Scope, last: bool) -> Iterator[str]:
    """Yield a line for each buffer, each in the scope of those before."""
    indent = ""
    for buffer in s.buffers:
        yield f"{indent}alloc {_buffer(buffer, scope)}{'' if last else ':'}"
        indent, last = indent if last else INDENT, True
        scope = scope.buffer(buffer)
    yield from (indent + line for line in _sequence(s.body, scope))


def _suite(body: Stmt, scope: _Scope) -> Iterator[str]:
    return (INDENT + line for line in _sequence(body, scope))


def _block(s: Block, scope: _Scope) -> Iterator[str]:
    """Print the suite of a block inside a block, or of one that `_sequence` cannot tell from its only statement."""
    if not s.statements:
        yield f"{INDENT}pass"
    for number, part in enumerate(s.statements, 1):
        yield from (INDENT + line for line in _statement(part, scope, last=number == len(s.statements)))


# Expressions --------------------------------------------------------------------------------------


def _precedence(e: Expr) -> int:
    match e:
        case Binary() if e.op in PRECEDENCE:
            return PRECEDENCE[e.op]
        case Compare() | Unary():
            return PRECEDENCE[e.op]
        case Const() if _const(e).startswith("-"):
            return PRECEDENCE["neg"]
    return ATOM


def _at(e: Expr, least: int, scope: _Scope) -> str:
    """Return the text of an expression in a place where only operators of at least that level need no parentheses."""
    text = _expr(e, scope)
    return text if _precedence(e) >= least else f"({text})"


def _expr(e: Expr, scope: _Scope) -> str:
    match e:
        case Const():
            return _const(e)
        case Var():
            return _typed(e.name, str(e.type), scope.strict and scope.variables.get(e.name) != e.type)
        case Unary():
            return _unary(e, scope)
        case Binary() | Compare() if e.op in TOKENS:
            level = PRECEDENCE[e.op]
            left = _at(e.left, level if LEVELS[level].kind == "binary" else level + 1, scope)
            return f"{left} {TOKENS[e.op]} {_at(e.right, level + 1, scope)}"
        case Binary() | Compare():
            return _call(e.op, (e.left, e.right), scope)
        case Select():
            return _call("select", (e.condition, e.if_true, e.if_false), scope)
        case Cast():
            return _call(str(e.type), (e.operand,), scope)
        case BitCast():
            return _call(f"{BIT_CAST}{e.type}", (e.operand,), scope)
        case Call():
            return _call(e.function, e.arguments, scope)
        case Word():
            return _call(e.name, e.parts, scope)
        case Dot():
            return _call("dot", (e.sum, e.left, e.right), scope)
        case Broadcast():
            return f"broadcast({_expr(e.operand, scope)}, {e.lanes})"
        case Ramp():
            return f"ramp({_expr(e.base, scope)}, {_expr(e.stride, scope)}, {e.lanes})"
        case Shuffle():
            picked = ", ".join(map(str, e.order))
            return f"shuffle({_expr(e.left, scope)}, {_expr(e.right, scope)}, {picked})"
        case Load():
            differs = scope.strict and scope.buffers.get(e.buffer) != e.dtype
            return _access(e.buffer, e.indices, e.mask, scope, e.dtype if differs else None)


def _unary(e: Unary, scope: _Scope) -> str:
    if e.op == "not":
        return f"not {_at(e.operand, PRECEDENCE['not'], scope)}"
    operand = _at(e.operand, PRECEDENCE["neg"], scope)
    plain = isinstance(e.operand, Const) and not operand.startswith("-")  # `-1` is a constant
    return f"-({operand})" if plain else f"-{operand}"


def _call(function: str, arguments: tuple[Expr, ...], scope: _Scope) -> str:
    return f"{function}({', '.join(_expr(a, scope) for a in arguments)})"


def _typed(name: str, type: str, shown: bool) -> str:
    return f"({_name(name)}: {type})" if shown else _name(name)


def _access(
    buffer: str, indices: tuple[Expr, ...], mask: Expr | None, scope: _Scope, dtype: DType | None = None
) -> str:
    inside = ", ".join(_expr(i, scope) for i in indices)
    if mask is not None:
        inside = f"{inside} if {_expr(mask, scope)}".lstrip()
    return f"{_typed(buffer, str(dtype), dtype is not None)}[{inside}]"


def _const(e: Const) -> str:
    dtype, lanes = e.type.dtype, e.type.lanes
    if dtype.kind == "bool":
        word = "true" if e.value else "false"
        return word if lanes == 1 else f"{word}_x{lanes}"
    if dtype.kind == "int":
        text = str(int(e.value))
        if e.type == INDEX:
            return text
    else:
        text = repr(float(e.value))
        if text[-1] in "fn":  # inf, nan
            text += "_"
    return f"{text}{SUFFIX_OF[dtype.name]}" + (f"x{lanes}" if lanes > 1 else "")
