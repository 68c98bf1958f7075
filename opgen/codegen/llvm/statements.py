"""Statements of the loop IR as blocks of LLVM instructions."""

from __future__ import annotations

from opgen.codegen.llvm import allocation, memory, parallel, stores, streams, tiles
from opgen.codegen.llvm.affine import atom, materialise, poly
from opgen.codegen.llvm.function import Function
from opgen.codegen.llvm.types import Value, sanitised, wrapped
from opgen.codegen.llvm.writer import Multiple
from opgen.diagnostics import InternalError
from opgen.dtypes import INT64
from opgen.loop.nodes import INDEX, Alloc, Barrier, Block, Check, For, If, Let, Prefetch, Stmt, Store, Type
from opgen.loop.status import FIRST_CHECK

FOLDED = 2
"""Scale up to which an address scales an element's number at no cost, for every element type."""


def emit(fn: Function, s: Stmt) -> None:
    """Emit a statement at the end of the function."""
    held = fn.tiles
    if held is None or isinstance(s, Block):
        _emit(fn, s)
    elif not isinstance(s, For) or not tiles.emit(fn, s):
        held.forget()
        _emit(fn, s)
        held.forget()


def _emit(fn: Function, s: Stmt) -> None:
    match s:
        case Store() if streams.suits(fn, s):
            streams.store(fn, [s])
        case Store():
            stores.store(fn, s)
        case Block():
            for part in streams.runs(fn, s.statements):
                if isinstance(part, list):
                    streams.store(fn, part)
                else:
                    emit(fn, part)
        case For():
            _for(fn, s)
        case If():
            _if(fn, s)
        case Let():
            _let(fn, s)
        case Alloc():
            _alloc(fn, s)
        case Prefetch():
            memory.prefetch(fn, s)
        case Check():
            _check(fn, s)
        case Barrier():
            raise InternalError("a barrier reached the CPU emitter")


def _for(fn: Function, s: For) -> None:
    if s.kind not in ("serial", "ordered", "parallel", "tile"):
        raise InternalError(f"a loop of kind {s.kind} reached the CPU emitter")
    start, stop = materialise(fn, poly(fn, s.start)), materialise(fn, poly(fn, s.stop))
    if s.kind == "parallel" and fn.threads is not None:
        parallel.outline(fn, s, start, stop, loop)
    else:
        loop(fn, s, start, stop)


def loop(fn: Function, s: For, start: str, stop: str) -> None:
    """Emit a serial loop over [start, stop), tested at the end of each iteration."""
    w = fn.writer
    constant = not start.startswith("%") and not stop.startswith("%")
    if constant and int(start) >= int(stop):
        return
    name = sanitised(s.var)
    body, done = w.name(f"{name}.body"), w.name(f"{name}.done")
    enter = f"label %{body}"
    if not constant:
        enter = f"i1 {w.pure(f'{name}.any', f'icmp slt i64 {start}, {stop}')}, label %{body}, label %{done}"
    before = w.block
    with w.loop() as around:
        w.line(f"br {enter}")
        w.label(body)
        ref = w.value(name)
        phi = w.reserve()
        fn.values[s.var] = Value(ref, Type(INT64), "i64")
        fn.move()
        emit(fn, s.body)
        fn.move()
        del fn.values[s.var]
    # Below `stop` an increment cannot overflow.
    following = w.define(f"{name}.next", f"add nsw i64 {ref}, 1")
    more = w.define(f"{name}.more", f"icmp slt i64 {following}, {stop}")
    steps = [m for m in around.multiples if _steps(m, ref, start)] if not around.inner else []
    ahead = [w.define(f"{m.value[1:]}.next", f"add i64 {m.value}, {m.factor}") for m in steps]
    w.fill(
        phi,
        f"{ref} = phi i64 [ {start}, %{before} ], [ {following}, %{w.block} ]",
        *(
            f"{m.value} = phi i64 [ {wrapped(int(start) * m.factor, 64)}, %{before} ], [ {n}, %{w.block} ]"
            for m, n in zip(steps, ahead, strict=True)
        ),
    )
    for m in steps:
        w.fill(m.line)
    w.line(f"br i1 {more}, label %{body}, label %{done}")
    w.label(done)


def _steps(m: Multiple, variable: str, start: str) -> bool:
    """Return True if a multiple of an innermost loop's variable is better added up; addresses include small ones."""
    return m.of == variable and m.factor > FOLDED and not start.startswith("%")


def _if(fn: Function, s: If) -> None:
    condition = fn.value(s.condition)
    if condition.type.lanes != 1 or condition.type.dtype.kind != "bool":
        raise InternalError(f"a condition of type {condition.type}")
    w = fn.writer
    then, done = w.name("then"), w.name("endif")
    otherwise = done if s.otherwise is None else w.name("else")
    w.line(f"br i1 {condition.ref}, label %{then}, label %{otherwise}")
    for label, side in ((then, s.then), (otherwise, s.otherwise)):
        if side is not None:
            w.label(label)
            with w.scope():
                emit(fn, side)
            fn.move()  # they may be made of values that stand in this branch
            w.line(f"br label %{done}")
    w.label(done)


def _check(fn: Function, s: Check) -> None:
    """Emit a check: where the condition does not hold, the function reports the value to the caller and returns."""
    if fn.report is None:
        raise InternalError("a check where there is nobody to report to")
    w = fn.writer
    condition, value = fn.value(s.condition), fn.value(s.value)
    failed, passed = w.name("refused"), w.name("passed")
    w.line(f"br i1 {condition.ref}, label %{passed}, label %{failed}")
    w.label(failed)
    w.line(f"store {value.typed}, ptr {fn.report}, align 8")
    allocation.leave(fn, FIRST_CHECK + s.number)
    w.label(passed)


def _let(fn: Function, s: Let) -> None:
    """Emit a `let`; indices keep their structure under a name, so that addresses made from them share terms."""
    if s.var.type == INDEX:
        value = poly(fn, s.value)
        fn.polys[s.var.name] = value
        if not memory.changes(fn, s.value):
            fn.named[s.var.name] = s.value
        ref = materialise(fn, value)
        fn.values[s.var.name] = Value(ref, INDEX, "i64")
        if not ref.startswith("%"):
            fn.polys[s.var.name] = atom(ref)
    else:
        fn.values[s.var.name] = fn.value(s.value)
    fn.move()
    emit(fn, s.body)
    fn.move()
    del fn.values[s.var.name]
    fn.polys.pop(s.var.name, None)
    fn.named.pop(s.var.name, None)


def _alloc(fn: Function, s: Alloc) -> None:
    if s.space == "tile" and (found := tiles.plan(fn, s)) is not None:
        tiles.enter(fn, found)
        emit(fn, s.body)
        tiles.leave(fn, found)
        return
    if s.space not in ("heap", "stack", "register", "tile"):
        raise InternalError(f"an allocation in space {s.space} reached the CPU emitter")
    held = len(fn.live)
    for buffers in allocation.blocks(fn, s):
        if s.space != "heap":
            pointers = [allocation.reserve(fn, buffer) for buffer in buffers]
        elif len(buffers) > 1:
            pointers = allocation.acquire_together(fn, buffers)
        else:
            pointers = [allocation.acquire(fn, buffer) for buffer in buffers]
        for buffer, pointer in zip(buffers, pointers, strict=True):
            memory.bind(fn, buffer, pointer, allocation.ALIGNMENT, readonly=False)
    emit(fn, s.body)
    for buffer in s.buffers:
        del fn.memories[buffer.name]
    while len(fn.live) > held:
        allocation.release(fn)
