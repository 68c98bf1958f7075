"""Loop IR statements as C statements, for the body of one device function."""

from __future__ import annotations

from opgen.codegen.cuda.code import UNARY, Interval, full_interval
from opgen.codegen.cuda.expressions import ExpressionPrinter, Scope
from opgen.codegen.cuda.nest import Nest, is_bound, is_shared
from opgen.codegen.cuda.program import MAX_BLOCK, MAX_GRID
from opgen.codegen.cuda.types import MEMORY_TYPES, VALUE_TYPES
from opgen.diagnostics import InternalError
from opgen.dtypes import BOOL, INT64
from opgen.loop import walk as w
from opgen.loop.nodes import (
    Alloc,
    Barrier,
    Block,
    Buffer,
    Check,
    Const,
    Expr,
    For,
    If,
    Let,
    Load,
    Prefetch,
    Stmt,
    Store,
)

_INDENT = "    "
_BUILTINS = {"block": "blockIdx", "thread": "threadIdx"}


class StatementPrinter:
    """Prints the body of a nest as lines of C."""

    def __init__(self, scope: Scope, nest: Nest) -> None:
        self.scope = scope
        self.nest = nest
        self.expressions = ExpressionPrinter(scope)
        self._open: tuple[str, ...] = ()
        """The kinds of the bound loops around the statement at hand."""
        self._temporaries: dict[str, str] = {}

    def lines(self, s: Stmt) -> list[str]:
        """Return the C lines of a statement.  Names that it declares live until the enclosing brace."""
        match s:
            case Store():
                return self._store(s)
            case For():
                return self._bound(s) if is_bound(s) else self._loop(s)
            case If():
                return self._if(s)
            case Let():
                return self._let(s)
            case Alloc():
                return self._alloc(s)
            case Block():
                return [line for p in s.statements for line in self._in_sequence(p)]
            case Prefetch():
                return []
            case Check():
                raise InternalError("a check reached a device function")
            case Barrier():
                return ["__syncthreads();"]

    def _in_sequence(self, s: Stmt) -> list[str]:
        declares = isinstance(s, Let | Alloc) or is_bound(s)
        return ["{", *_indented(self.lines(s)), "}"] if declares else self.lines(s)

    def _loop(self, s: For) -> list[str]:
        printer = self.expressions
        start, stop = printer.code(s.start), printer.code(s.stop)
        self._remember(s.var, start.interval, stop.interval)
        name = self.scope.names[s.var]
        head = f"i64 {name} = {start.text}"
        limit = stop.text
        if any(isinstance(n, Load) for n in w.walk_expr(s.stop)):
            limit = self._temporary(f"{name}_stop")
            head = f"{head}, {limit} = {stop.text}"
        pragma = ["#pragma unroll"] if s.kind == "unroll" else []
        return [*pragma, f"for ({head}; {name} < {limit}; ++{name}) {{", *_indented(self.lines(s.body)), "}"]

    def _bound(self, s: For) -> list[str]:
        """Return the loop's variable from the block's or thread's index, and a guard where the launch may be wider."""
        group, axis = s.kind.split(".")
        start, stop = self.expressions.code(s.start), self.expressions.code(s.stop)
        self._remember(s.var, start.interval, stop.interval)
        if start.text == "0":
            low, high = self.scope.intervals[s.var]
            limit = (MAX_GRID if group == "block" else MAX_BLOCK)["xyz".index(axis)]
            self.scope.intervals[s.var] = low, min(high, limit - 1)
        here = f"(i64){_BUILTINS[group]}.{axis}"
        value = here if start.text == "0" else f"{start.at(UNARY)} + {here}"
        name = self.scope.names[s.var]
        outer, self._open = self._open, (*self._open, s.kind)
        body = self.lines(s.body)
        self._open = outer
        if self.nest.needs_guard(s):
            body = [f"if ({name} < {stop.text}) {{", *_indented(body), "}"]
        return [f"const i64 {name} = {value};", *body]

    def _remember(self, var: str, start: Interval | None, stop: Interval | None) -> None:
        low = start[0] if start else full_interval(INT64)[0]
        high = stop[1] - 1 if stop else full_interval(INT64)[1] - 1
        self.scope.intervals[var] = low, max(low, high)

    def _if(self, s: If) -> list[str]:
        lines = [f"if ({self.expressions.text(s.condition)}) {{", *_indented(self.lines(s.then))]
        if s.otherwise is not None:
            lines += ["} else {", *_indented(self.lines(s.otherwise))]
        return [*lines, "}"]

    def _let(self, s: Let) -> list[str]:
        value, dtype = self.expressions.code(s.value), s.var.type.dtype
        if value.interval and dtype.is_int:
            self.scope.intervals[s.var.name] = value.interval
        else:
            self.scope.intervals.pop(s.var.name, None)
        name = self.scope.names[s.var.name]
        return [f"const {VALUE_TYPES[dtype]} {name} = {value.text};", *self.lines(s.body)]

    def _alloc(self, s: Alloc) -> list[str]:
        buffer = s.buffer
        self.scope.buffers[buffer.name] = buffer
        self.scope.arrays.add(buffer.name)
        shared = "__shared__ " if buffer.space == "shared" else ""
        name = self.scope.names[buffer.name]
        return [f"{shared}{MEMORY_TYPES[buffer.dtype]} {name}{_dimensions(buffer)};", *self.lines(s.body)]

    def _store(self, s: Store) -> list[str]:
        lanes = max(e.type.lanes for e in (*s.indices, s.value))
        lines = self._store_scalar(s) if lanes == 1 else self._store_vector(s, lanes)
        missing = [k for k in self.nest.wide_threads if k not in self._open]
        if not missing or not is_shared(self.scope.buffers[s.buffer]):
            return lines
        first = " && ".join(f"threadIdx.{k[-1]} == 0" for k in missing)
        return [f"if ({first}) {{", *_indented(lines), "}"]

    def _store_scalar(self, s: Store) -> list[str]:
        target = self.expressions.element(s.buffer, s.indices)
        line = f"{target} = {self._memory_value(s, self.expressions.text(s.value))};"
        if s.mask is None:
            return [line]
        return [f"if ({self.expressions.text(s.mask)}) {{", _INDENT + line, "}"]

    def _store_vector(self, s: Store, lanes: int) -> list[str]:
        """Store a vector: every lane is evaluated before the first is stored; stores are in lane order."""
        if any(_reads(e, s.buffer) for e in s.indices):
            raise InternalError(f"the indices of a vector store to {s.buffer} load from it")
        held: list[str] = []
        writes: list[str] = []
        for lane in range(lanes):
            value = self._hold(s.value, lane, "lane", held)
            write = f"{self.expressions.element(s.buffer, s.indices, lane)} = {self._memory_value(s, value)};"
            if s.mask is None:
                writes.append(write)
            else:
                mask = self._hold(s.mask, lane, "on", held)
                writes.append(f"if ({mask}) {write}")
        return ["{", *_indented(held + writes), "}"]

    def _hold(self, e: Expr, lane: int, wish: str, held: list[str]) -> str:
        """Return a constant with the value of an expression in a lane."""
        name = self._temporary(f"{wish}{lane}")
        held.append(f"const {VALUE_TYPES[e.type.dtype]} {name} = {self.expressions.text(e, lane)};")
        return name

    def _temporary(self, wish: str) -> str:
        """Return an identifier for a value that lives within one statement; the next statement may use it again."""
        if wish not in self._temporaries:
            self._temporaries[wish] = self.scope.names.fresh(wish)
        return self._temporaries[wish]

    @staticmethod
    def _memory_value(s: Store, value: str) -> str:
        return f"({value}) ? 1 : 0" if s.value.type.dtype == BOOL else value


def _reads(e: Expr, buffer: str) -> bool:
    return any(isinstance(n, Load) and n.buffer == buffer for n in w.walk_expr(e))


def _indented(lines: list[str]) -> list[str]:
    return [line if line.startswith("#") else _INDENT + line for line in lines]


def _dimensions(buffer: Buffer) -> str:
    """Return the C array dimensions of a buffer of constant shape; C has no empty arrays."""
    sizes = [max(1, int(size.value)) for size in buffer.shape if isinstance(size, Const)]
    return "".join(f"[{size}]" for size in sizes or [1])
