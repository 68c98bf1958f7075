"""The outermost parallel loop becomes a function over a range of its iterations.

    i32 kernel.y(captured..., i64 begin, i64 end)                 the loop over [begin, end); its status
    void kernel.y.chunk(ptr context, i64 begin, i64 end)          called by parallel_for: unpacks the context

The context is on the caller's stack, in 64-bit words: first the status (0, or 1 once a range ran out of memory), then a
word for each captured buffer and value.  If buffers come out of a workspace, a range that allocates takes one more
argument, its part of it.  Three more words have the beginning of the parts, their bytes, and the bits of taken parts
(`parts.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from opgen.codegen.llvm import allocation, memory, parts, signature, streams, tiles
from opgen.codegen.llvm.function import Function, Memory, Room, Threads
from opgen.codegen.llvm.types import Value, sanitised
from opgen.codegen.llvm.writer import Writer
from opgen.loop.nodes import Alloc, For, Load, Prefetch, Store, Var
from opgen.loop.status import OUT_OF_MEMORY
from opgen.loop.walk import distinct_exprs, free_vars, walk

EmitLoop = Callable[[Function, For, str, str], None]
_PARTS = [("parts", "ptr"), ("part_bytes", "i64"), ("taken", "ptr")]
"""The last words of the context of a loop whose ranges allocate out of a workspace."""


@dataclass(frozen=True)
class _Captured:
    """Values that a loop's body uses from its surroundings, in the order of definition."""

    values: tuple[tuple[str, Value], ...]
    buffers: tuple[Memory, ...]
    stored: frozenset[str]
    allocates: bool
    room: Room | None = None
    """Source of its own buffers; None: from the C library, or it has none."""

    @property
    def fails(self) -> bool:
        """Return True if a range may run out of memory."""
        return self.allocates and self.room is None

    @property
    def operands(self) -> list[str]:
        return [f"ptr {m.ref}" for m in self.buffers] + [v.typed for _, v in self.values]


def outline(fn: Function, s: For, start: str, stop: str, emit_loop: EmitLoop) -> None:
    """Emit a parallel loop: its functions, and the call of one of them in place of the loop."""
    assert fn.threads is not None
    captured = _capture(fn, s)
    name = fn.module.symbol(sanitised(s.var))
    _emit_range(fn, s, name, captured, emit_loop)
    _emit_chunk(fn, name, captured)
    status = _emit_call(fn, fn.threads, name, captured, start, stop)
    if captured.fails:
        w = fn.writer
        failed, passed = w.name("failed"), w.name("passed")
        w.line(f"br i1 {w.define('is', f'icmp ne i32 {status}, 0')}, label %{failed}, label %{passed}")
        w.label(failed)
        allocation.leave(fn)
        w.label(passed)


def _capture(fn: Function, s: For) -> _Captured:
    nodes = list(distinct_exprs(s.body))
    inside = list(walk(s.body))
    loaded = {e.buffer for e in nodes if isinstance(e, Load)}
    stored = frozenset(p.buffer for p in inside if isinstance(p, Store))
    used = {e.name for e in nodes if isinstance(e, Var)}
    wanted = loaded | stored | {p.buffer for p in inside if isinstance(p, Prefetch)}
    buffers = tuple(m for name, m in fn.memories.items() if name in wanted)
    for m in buffers:
        used.update(*(free_vars(extent) for extent in m.buffer.shape))
    values = tuple((name, v) for name, v in fn.values.items() if name in used)
    allocates = any(isinstance(p, Alloc) and p.space == "heap" for p in inside)
    return _Captured(values, buffers, stored, allocates, fn.room if allocates else None)


def _emit_range(fn: Function, s: For, name: str, captured: _Captured, emit_loop: EmitLoop) -> None:
    """Emit the loop over [begin, end) as a function of its own, where parallel loops inside run serially."""
    inner = Function(fn.module, fn.evaluate)
    w = inner.writer
    pointers = [w.value(sanitised(m.buffer.name)) for m in captured.buffers]
    scalars = [signature.scalar(inner, variable, v.type) for variable, v in captured.values]
    room = w.value("room") if captured.room is not None else None
    inner.room = None if room is None else Room(room, "null", "0")
    begin, end = w.value("begin"), w.value("end")
    for m, ref in zip(captured.buffers, pointers, strict=True):
        memory.bind(inner, m.buffer, ref, m.alignment, readonly=m.buffer.name not in captured.stored)
    emit_loop(inner, s, begin, end)
    streams.settle(inner)
    tiles.release(inner)
    w.line("ret i32 0")
    fn.loaded |= inner.loaded
    declared = [signature.pointer(inner, inner.memories[m.buffer.name]) for m in captured.buffers]
    declared += [*scalars, *([] if room is None else [f"ptr noalias {room}"]), f"i64 {begin}", f"i64 {end}"]
    header = signature.HEADER.format(name=name, parameters=", ".join(declared))
    fn.module.functions.append(w.text(header))


def _emit_chunk(fn: Function, name: str, captured: _Captured) -> None:
    module, w = fn.module, Writer()
    context, begin, end = w.value("context"), w.value("begin"), w.value("end")
    hints = [(sanitised(m.buffer.name), "ptr") for m in captured.buffers]
    hints += [(sanitised(variable), v.text) for variable, v in captured.values]
    hints += _PARTS if captured.room is not None else []
    words = []
    for k, (hint, text) in enumerate(hints, 1):
        slot = w.define(f"{hint}.word", f"getelementptr i64, ptr {context}, i64 {k}")
        words.append((text, w.define(hint, f"load {text}, ptr {slot}, align 8")))
    part = ""
    if captured.room is not None:
        (_, start), (_, size), (_, taken) = words[-len(_PARTS) :]
        part = parts.take(module, w, taken)
        before = w.define("before", f"mul i64 {part}, {size}")
        words[-len(_PARTS) :] = [("ptr", w.define("room", f"getelementptr i8, ptr {start}, i64 {before}"))]
    operands = ", ".join([*(f"{text} {ref}" for text, ref in words), f"i64 {begin}", f"i64 {end}"])
    status = w.define("status", f"call i32 @{name}({operands})")
    if captured.room is not None:
        parts.give(module, w, taken, part)
    if captured.fails:
        report, done = w.name("report"), w.name("done")
        w.line(f"br i1 {w.define('failed', f'icmp ne i32 {status}, 0')}, label %{report}, label %{done}")
        w.label(report)
        w.line(f"store atomic i64 {OUT_OF_MEMORY}, ptr {context} monotonic, align 8")
        w.line(f"br label %{done}")
        w.label(done)
    w.line("ret void")
    header = f"define internal void @{name}.chunk(ptr {context}, i64 {begin}, i64 {end}) #0"
    module.functions.append(w.text(header))


def _emit_call(fn: Function, threads: Threads, name: str, captured: _Captured, start: str, stop: str) -> str:
    """Call parallel_for where there are threads and at least two iterations, else the loop itself: the status."""
    w = fn.writer
    operands = captured.operands
    passed, alone_operands = operands, operands
    if captured.room is not None:
        taken = w.alloca("taken", f"[{parts.WORDS} x i64], align 8")
        passed = [*operands, f"ptr {captured.room.parts}", f"i64 {captured.room.part_bytes}", f"ptr {taken}"]
        alone_operands = [*operands, f"ptr {captured.room.parts}"]
    context = w.alloca("context", f"[{len(passed) + 1} x i64], align 8")
    shared, alone, joined = w.name("shared"), w.name("alone"), w.name("joined")
    second = w.define("second", f"add i64 {start}, 1")
    several = w.define("several", f"icmp slt i64 {second}, {stop}")
    present = w.define("present", f"icmp ne ptr {threads.parallel_for}, null")
    many = w.define("many", f"icmp sgt i64 {threads.count}, 1")
    able = w.define("able", f"and i1 {present}, {many}")
    w.line(f"br i1 {w.define('fork', f'and i1 {able}, {several}')}, label %{shared}, label %{alone}")
    w.label(shared)
    if captured.room is not None:
        parts.opened(fn.module, w, taken, threads.count)
    for k, operand in enumerate(["i64 0", *passed]):
        slot = w.define("word", f"getelementptr i64, ptr {context}, i64 {k}")
        w.line(f"store {operand}, ptr {slot}, align 8")
    bounds = f"i64 {start}, i64 {stop}"
    w.line(f"call void {threads.parallel_for}(ptr @{name}.chunk, ptr {context}, {bounds}, i64 {threads.count})")
    reported = w.define("reported", f"load atomic i64, ptr {context} monotonic, align 8")
    together = w.define("status", f"trunc i64 {reported} to i32")
    w.line(f"br label %{joined}")
    w.label(alone)
    by_itself = w.define("status", f"call i32 @{name}({', '.join([*alone_operands, bounds])})")
    w.line(f"br label %{joined}")
    w.label(joined)
    return w.define("status", f"phi i32 [ {together}, %{shared} ], [ {by_itself}, %{alone} ]")
