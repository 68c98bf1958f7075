"""The host's part of a kernel: its work around the loop nests, and the statements that become device functions.

A statement with block or thread loops in it is descended into, down to the outermost such loop, which is a nest.  A
maximal run of statements without any is one function for one thread.  The host allocates memory of the space "heap", so
its allocation and the statements around it stay on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from opgen.codegen.cuda.nest import holds_bound, is_bound
from opgen.codegen.cuda.program import Choose, Define, Demand, Launch, Repeat, Step, Workspace
from opgen.diagnostics import InternalError
from opgen.loop import build as b
from opgen.loop import walk as w
from opgen.loop.nodes import Alloc, Block, Buffer, Check, Expr, For, If, Let, Load, Stmt, Var


@dataclass(frozen=True, slots=True)
class Context:
    """Surroundings of a statement on the host: variables with their values known there, and workspaces."""

    known: frozenset[str]
    buffers: dict[str, Buffer]
    lets: tuple[Let, ...] = ()
    """Definitions of floating values, which the device functions repeat for themselves."""

    def knowing(self, name: str) -> Context:
        return Context(self.known | {name}, self.buffers, self.lets)

    def holding(self, buffers: Iterable[Buffer]) -> Context:
        return Context(self.known, self.buffers | {buffer.name: buffer for buffer in buffers}, self.lets)

    def defining(self, let: Let) -> Context:
        return Context(self.known, self.buffers, (*self.lets, let))

    def wrap(self, s: Stmt) -> Stmt:
        """Return the statement within those definitions that it uses."""
        for let in reversed(self.lets):
            used = {n.name for n in w.walk_exprs(s) if isinstance(n, Var)}
            if let.var.name in used:
                s = Let(let.var, let.value, s)
        return s


MakeLaunch = Callable[[Stmt, Context], Launch]


def partition(s: Stmt, context: Context, launch: MakeLaunch) -> tuple[Step, ...]:
    """Return the steps of a statement; `launch` makes a device function of a nest."""
    if not _is_hosts(s):
        return () if b.is_empty(s) else (launch(context.wrap(s), context),)
    match s:
        case Block():
            return tuple(step for run in _runs(s) for step in partition(run, context, launch))
        case Alloc():
            for buffer in s.buffers:
                _require_known(buffer.shape, f"the size of {buffer.name}")
            return (Workspace(s.buffers, partition(s.body, context.holding(s.buffers), launch)),)
        case For():
            _require_known((s.start, s.stop), f"the bounds of loop {s.var}")
            return (Repeat(s.var, s.start, s.stop, partition(s.body, context.knowing(s.var), launch)),)
        case If():
            _require_known((s.condition,), "a condition around block or thread loops")
            then = partition(s.then, context, launch)
            otherwise = partition(s.otherwise, context, launch) if s.otherwise is not None else ()
            return (Choose(s.condition, then, otherwise),)
        case Let():
            _require_known((s.value,), f"the value of {s.var.name}")
            if s.var.type.dtype.is_float:
                return partition(s.body, context.defining(s), launch)
            return (Define(s.var, s.value, partition(s.body, context.knowing(s.var.name), launch)),)
        case Check():
            return (Demand(s),)
        case _:
            raise InternalError(f"{type(s).__name__} cannot run on the host")


def _is_hosts(s: Stmt) -> bool:
    """Return True if a statement runs on the host, with launches inside it."""
    if isinstance(s, Alloc) and s.space == "heap":
        return True
    if is_bound(s) or isinstance(s, Alloc):
        return False
    return holds_bound(s) or _holds_hosts(s)


def _holds_hosts(s: Stmt) -> bool:
    """Return True if a statement contains work for the host: memory of the space "heap", or a check."""
    return any(isinstance(p, Check) or (isinstance(p, Alloc) and p.space == "heap") for p in w.walk(s))


def _runs(s: Block) -> list[Stmt]:
    """Return the statements, with neighbours joined that one thread can do in one function."""
    runs: list[Stmt] = []
    joining = False
    for p in s.statements:
        single = not holds_bound(p) and not _holds_hosts(p)
        if single and joining:
            runs[-1] = b.block((runs[-1], p))
        else:
            runs.append(p)
        joining = single
    return runs


def _require_known(expressions: tuple[Expr, ...], what: str) -> None:
    if any(isinstance(n, Load) for e in expressions for n in w.walk_expr(e)):
        raise InternalError(f"{what} reads memory, and the host needs it before a launch")
