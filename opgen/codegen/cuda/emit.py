"""CUDA C for a kernel."""

from __future__ import annotations

import math
import re

from opgen.codegen.cuda.code import full_interval
from opgen.codegen.cuda.expressions import ExpressionPrinter, Scope
from opgen.codegen.cuda.helpers import render_helpers
from opgen.codegen.cuda.names import Names
from opgen.codegen.cuda.nest import Nest, analyse
from opgen.codegen.cuda.partition import Context, partition
from opgen.codegen.cuda.program import (
    COMPILE_FLAGS,
    MAX_SHARED_BYTES,
    MAX_THREADS,
    Argument,
    CudaProgram,
    DeviceLimitError,
    Extents,
    Launch,
)
from opgen.codegen.cuda.statements import StatementPrinter
from opgen.codegen.cuda.types import MEMORY_TYPES, TYPEDEFS, VALUE_TYPES, WIDE_TYPES
from opgen.loop import walk as w
from opgen.loop.nodes import Barrier, Buffer, Const, Kernel, Load, Stmt, Store, Var

_MODEST = 2**20


def emit(kernel: Kernel) -> CudaProgram:
    """Emit CUDA C source with the kernel's meaning, and the steps of the host that runs it.

    The source includes nothing and needs no header.  Raises `InternalError` for loops that CUDA cannot run as the loop
    IR defines them (see `nest`), and `DeviceLimitError` for more shared memory than a block can have.
    """
    return _Emitter(kernel).program()


class _Emitter:
    """Collects the device functions of one kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.names = Names()
        self.functions: list[str] = []
        self.helpers: set[str] = set()
        self.inputs = frozenset(buffer.name for buffer in kernel.inputs)

    def program(self) -> CudaProgram:
        context = Context(
            frozenset(p.name for p in self.kernel.parameters), {buffer.name: buffer for buffer in self.kernel.buffers}
        )
        steps = partition(self.kernel.body, context, self._launch)
        code = "\n".join((*render_helpers(self.helpers), *self.functions))
        known = set(re.findall(r"\w+", code)) | WIDE_TYPES
        typedefs = [f"typedef {meaning} {name};" for name, meaning in TYPEDEFS.items() if name in known]
        head = [
            f"// {self.names.fresh(self.kernel.name)}: CUDA C emitted by opgen.  It needs no header.",
            f"// Compile it with {' '.join(COMPILE_FLAGS)}.",
            "",
            *typedefs,
        ]
        return CudaProgram(self.kernel, "\n".join(("\n".join(head) + "\n", code)), steps)

    def _launch(self, body: Stmt, context: Context) -> Launch:
        nest = analyse(body, context.known, context.buffers, self.inputs)
        _check_shared(body)
        arguments = self._arguments(body, context)
        scope = Scope(self.names, dict(context.buffers), self._intervals(), self.helpers)
        lines = StatementPrinter(scope, nest).lines(body)
        name = self.names.fresh(f"{self.kernel.name}_{len(self.functions)}")
        self.functions.append(self._function(name, nest, arguments, lines))
        barriers = any(isinstance(p, Barrier) for p in w.walk(body))
        return Launch(name, nest.grid, nest.block, arguments, barriers)

    def _arguments(self, body: Stmt, context: Context) -> tuple[Argument, ...]:
        """Return the buffers and scalars of a nest: in the kernel's order, then those of enclosing host steps."""
        local = {o.name for o in w.buffers_in(body)}
        touched = {n.buffer for n in w.walk_exprs(body) if isinstance(n, Load)}
        touched |= {p.buffer for p in w.walk(body) if isinstance(p, Store)}
        buffers = [b for b in context.buffers.values() if b.name in touched - local]
        free = {n.name: n.type.dtype for n in w.walk_exprs(body) if isinstance(n, Var)}
        for buffer in buffers:
            for size in buffer.shape[1:]:
                free |= {n.name: n.type.dtype for n in w.walk_expr(size) if isinstance(n, Var)}
        order = [p.name for p in self.kernel.parameters]
        scalars = [n for n in order if n in free] + sorted(n for n in free if n in context.known and n not in order)
        pointers = tuple(Argument(b.name, b.dtype, pointer=True) for b in buffers)
        return pointers + tuple(Argument(n, free[n], pointer=False) for n in scalars)

    def _intervals(self) -> dict[str, tuple[int, int]]:
        """Return the promised intervals of the integer parameters."""
        found: dict[str, tuple[int, int]] = {}
        for p in self.kernel.parameters:
            if p.dtype.is_int:
                low, high = full_interval(p.dtype)
                found[p.name] = (low if p.low is None else p.low, high if p.high is None else p.high)
        return found

    def _function(self, name: str, nest: Nest, arguments: tuple[Argument, ...], lines: list[str]) -> str:
        parameters = ",\n".join(f"    {self._parameter(a)}" for a in arguments)
        body = "\n".join(f"    {line}" if not line.startswith("#") else line for line in lines)
        head = f'extern "C" __global__ void __launch_bounds__({_most_threads(nest.block)})\n{name}('
        launch = f"// Grid {self._extents(nest.grid)}, block {self._extents(nest.block)}."
        return f"{launch}\n{head}\n{parameters}) {{\n{body}\n}}\n"

    def _parameter(self, a: Argument) -> str:
        if not a.pointer:
            return f"const {VALUE_TYPES[a.dtype]} {self.names[a.name]}"
        const = "const " if a.name in self.inputs else ""
        return f"{const}{MEMORY_TYPES[a.dtype]}* __restrict__ {self.names[a.name]}"

    def _extents(self, extents: Extents) -> str:
        """Return extents for a comment: as arithmetic on sizes too small to wrap."""
        modest = {name: (max(low, 0), min(high, _MODEST)) for name, (low, high) in self._intervals().items()}
        printer = ExpressionPrinter(Scope(self.names, {}, modest))
        return f"({', '.join(printer.text(e) for e in extents)})"


def _most_threads(block: Extents) -> int:
    """Return the greatest number of threads of a block: the compiler must leave registers for them."""
    sizes = [int(e.value) for e in block if isinstance(e, Const)]
    return min(MAX_THREADS, max(1, math.prod(sizes))) if len(sizes) == len(block) else MAX_THREADS


def _check_shared(body: Stmt) -> None:
    shared = [o for o in w.buffers_in(body) if o.space == "shared"]
    total = sum(_bytes(buffer) for buffer in shared)
    if total > MAX_SHARED_BYTES:
        names = ", ".join(buffer.name for buffer in shared)
        limit = f"at most {MAX_SHARED_BYTES} are possible"
        raise DeviceLimitError(f"{names}: {total} bytes of shared memory in each block, {limit}")


def _bytes(buffer: Buffer) -> int:
    return math.prod(int(size.value) for size in buffer.shape if isinstance(size, Const)) * buffer.dtype.bytes
