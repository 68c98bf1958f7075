"""Statements of loop IR as the text of one Python function.

A thread loop with a barrier in it becomes a generator that yields at each barrier; `threads` runs the threads of a
block up to their next one, and raises if only some of them arrive.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field

from opgen.diagnostics import InternalError
from opgen.loop.interpreter.expressions import Code, ExpressionWriter, Names
from opgen.loop.nodes import (
    Alloc,
    Barrier,
    Binary,
    Block,
    Call,
    Check,
    Expr,
    For,
    If,
    Let,
    Load,
    Prefetch,
    Stmt,
    Store,
)
from opgen.loop.walk import expressions, walk, walk_expr

Thread = Generator[None, None, None]
_NESTED_LOOPS = 15  # CPython allows 20 loops in one another
_UNORDERED = ("parallel", "vector", "block", "thread")


def threads(started: Iterable[Thread]) -> Thread:
    """Run threads barrier by barrier; yields once for each barrier that all of them reach."""
    running = list(started)
    while running:
        waiting = [t for t in running if next(t, _DONE) is not _DONE]
        if waiting and len(waiting) != len(running):
            raise InternalError(f"only {len(waiting)} of {len(running)} threads reach a barrier")
        running = waiting
        if running:
            yield


_DONE = object()


def finish(thread: Thread) -> None:
    """Run a thread to its end; it waits at no barrier outside itself."""
    for _ in thread:
        pass


@dataclass(frozen=True)
class Order:
    """The order in which iterations that are said to be independent are run."""

    generator: random.Random | None

    def __call__(self, start: int, stop: int) -> Sequence[int]:
        if self.generator is None:
            return range(start, stop)
        shuffled = list(range(start, stop))
        self.generator.shuffle(shuffled)
        return shuffled


@dataclass
class StatementWriter:
    """Writes statements as lines of Python; `counting` adds the counts of `Counters`."""

    counting: bool
    expressions: ExpressionWriter = field(default_factory=ExpressionWriter)
    lines: list[str] = field(default_factory=list)
    made: int = 0

    def fresh(self, stem: str) -> str:
        self.made += 1
        return f"{stem}_{self.made}"

    def emit(self, depth: int, line: str) -> None:
        self.lines.append(" " * depth + line)

    def write(self, s: Stmt, names: Names, depth: int, loops: int = 0, in_thread: bool = False) -> None:
        """Write the lines of a statement, indented by `depth`, inside `loops` Python loops of its function."""
        if self.counting:
            self._count(s, depth)
        match s:
            case Store():
                self._store(s, names, depth)
            case For():
                self._for(s, names, depth, loops, in_thread)
            case If():
                self.emit(depth, f"if {self.expressions.text(s.condition, names)}:")
                self.write(s.then, names, depth + 1, loops, in_thread)
                if s.otherwise is not None:
                    self.emit(depth, "else:")
                    self.write(s.otherwise, names, depth + 1, loops, in_thread)
            case Let():
                value = self.expressions.write(s.value, names)
                name = self.fresh("value")
                self.emit(depth, f"{name} = {value.text}")
                inner = names.variable(s.var.name, Code(name, value.low, value.high))
                self.write(s.body, inner, depth, loops, in_thread)
            case Alloc():
                self._alloc(s, names, depth, loops, in_thread)
            case Block():
                self.emit(depth, "pass")
                for part in s.statements:
                    self.write(part, names, depth, loops, in_thread)
            case Prefetch():
                self.emit(depth, "pass")
            case Check():
                self.emit(depth, f"if not {self.expressions.text(s.condition, names)}:")
                self.emit(depth + 1, f"raise CheckFailed({s.number}, {self.expressions.text(s.value, names)})")
            case Barrier():
                self.emit(depth, "yield" if in_thread else "pass")

    def _store(self, s: Store, names: Names, depth: int) -> None:
        text = self.expressions.text
        buffer, value = names.buffers[s.buffer], text(s.value, names)
        inside = ", ".join(text(i, names) for i in s.indices)
        mask = None if s.mask is None else text(s.mask, names)
        if s.value.type.lanes > 1:
            self.emit(depth, f"{buffer}_store_lanes({value}, ({inside},), {s.value.type.lanes}, {mask})")
            return
        guard = "" if mask is None else f"if {mask}: "
        self.emit(depth, f"{guard}{buffer}_store({value}{', ' if inside else ''}{inside})")

    def _alloc(self, s: Alloc, names: Names, depth: int, loops: int, in_thread: bool) -> None:
        for buffer in s.buffers:
            name = self.fresh("buffer")
            sizes = "".join(f"{self.expressions.text(e, names)}, " for e in buffer.shape)
            if self.counting:
                self.emit(depth, f"counters.allocated += prod(({sizes}))")
            title, dtype = self.expressions.constant(buffer.name), self.expressions.constant(buffer.dtype)
            self.emit(depth, f"{name} = Memory({title}, {dtype}, ({sizes}))")
            self.bind(name, depth)
            names = names.buffer(buffer.name, name)
        self.write(s.body, names, depth, loops, in_thread)

    def bind(self, name: str, depth: int) -> None:
        """Names for the accessors of a buffer."""
        for method in ("load", "store", "load_lanes", "store_lanes"):
            self.emit(depth, f"{name}_{method} = {name}.{method}")

    # Loops ----------------------------------------------------------------------------------------

    def _for(self, s: For, names: Names, depth: int, loops: int, in_thread: bool) -> None:
        start, stop = (self.expressions.write(e, names) for e in (s.start, s.stop))
        var = self.fresh("i")
        kind = s.kind.partition(".")[0]
        over = f"{'order' if kind in _UNORDERED else 'range'}({start.text}, {stop.text})"
        inner = names.variable(s.var, Code(var, start.low, max(start.low, stop.high - 1)))
        has_barrier = any(isinstance(part, Barrier) for part in walk(s.body))
        if kind == "thread" and has_barrier:
            body = self.fresh("thread")
            self.emit(depth, f"def {body}({var}):")
            self._iteration(s, inner, depth + 1, 0, True)
            run = f"threads([{body}({var}) for {var} in {over}])"
            self.emit(depth, f"yield from {run}" if in_thread else f"finish({run})")
        elif loops == _NESTED_LOOPS:
            part = self.fresh("part")
            self.emit(depth, f"def {part}():")
            self.emit(depth + 1, f"for {var} in {over}:")
            self._iteration(s, inner, depth + 2, 1, in_thread)
            self.emit(depth, f"yield from {part}()" if in_thread and has_barrier else f"{part}()")
        else:
            self.emit(depth, f"for {var} in {over}:")
            self._iteration(s, inner, depth + 1, loops + 1, in_thread)

    def _iteration(self, s: For, names: Names, depth: int, loops: int, in_thread: bool) -> None:
        if self.counting:
            self.emit(depth, "counters.iterations += 1")
        self.write(s.body, names, depth, loops, in_thread)

    # Counting -------------------------------------------------------------------------------------

    def _count(self, s: Stmt, depth: int) -> None:
        nodes = [n for e in expressions(s) for n in walk_expr(e)]
        loads = sum(n.type.lanes for n in nodes if isinstance(n, Load))
        multiply_adds = sum(n.type.lanes for n in nodes if _is_multiply_add(n))
        if loads:
            self.emit(depth, f"counters.loads += {loads}")
        if multiply_adds:
            self.emit(depth, f"counters.multiply_adds += {multiply_adds}")
        if isinstance(s, Store):
            self.emit(depth, f"counters.stores += {s.value.type.lanes}")


def _is_multiply_add(e: Expr) -> bool:
    """Return True for an fma, or an addition of a product outside index arithmetic."""
    if isinstance(e, Call):
        return e.function == "fma"
    if not isinstance(e, Binary) or e.op != "add" or e.type.dtype.name == "int64":
        return False
    return any(isinstance(o, Binary) and o.op == "mul" for o in (e.left, e.right))
