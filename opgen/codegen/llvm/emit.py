"""A scheduled kernel as the text of an LLVM module.

    i32 @<name>(ptr arguments)      0: done, 1: out of memory (the outputs are then undefined, and nothing is leaked),
                                    2 + k: check k does not hold (nothing was written, but the value that it reports in
                                    place of the first word)

`arguments` points to 64-bit words: the address of parallel_for (0: none) and the number of threads; the address of each
input, then of each output; a word for each parameter (int64; floats as the bits of a float64; ints and bools
sign-extended).  parallel_for is

    void parallel_for(void (*body)(ptr context, i64 begin, i64 end), ptr context, i64 begin, i64 end, i64 threads)

and calls `body` on ranges that together are [begin, end).

Buffers on the heap come from the C library, or out of a workspace, `room`, that the caller provides
(`opgen.codegen.llvm.room` computes its size).  Then three more words follow the parameters: the address of the
workspace (a multiple of 64 bytes), that of the parts of a parallel loop's threads, and the bytes of each part.  Such a
kernel allocates nothing, and its status is 0.

The text is written directly, not through llvmlite's object model: that takes several times as long to build and print;
here names come from the loop variables and buffers, equal instructions are written once, and the same kernel gives the
same bytes.
"""

from __future__ import annotations

from opgen.codegen.llvm import conversions, memory, signature, statements, streams, tiles
from opgen.codegen.llvm.expressions import evaluate
from opgen.codegen.llvm.function import Function, Module, Room, Threads
from opgen.codegen.llvm.target import Target, data_layout
from opgen.codegen.llvm.types import Value, sanitised
from opgen.dtypes import FLOAT64, INT64
from opgen.loop.nodes import Check, Kernel, Type
from opgen.loop.walk import loops_in, skeleton

_ROOM = (("room", "ptr"), ("parts", "ptr"), ("part_bytes", "i64"))
"""The words that describe the caller's workspace."""
_LIBRARY = frozenset(
    [
        "malloc",
        "free",
        "memcpy",
        "memset",
        "memmove",
        "exp",
        "log",
        "tanh",
        "erf",
        "pow",
        "sin",
        "cos",
        "atan",
        "fmod",
        "fma",
        "sqrt",
        "floor",
        "ceil",
        "rint",
        "fabs",
        "main",
    ]
)


def entry_name(kernel: Kernel) -> str:
    """Return the symbol of a kernel's entry; it differs from functions of the C library that the code may call."""
    name = sanitised(kernel.name)
    return f"{name}_" if name.removesuffix("f") in _LIBRARY or name in _LIBRARY else name


def emit(kernel: Kernel, target: Target, room: bool = False) -> str:
    """Return the LLVM IR of a kernel for a target; loops other than serial and parallel are refused (InternalError).

    With `room` its buffers on the heap come out of memory that the caller provides.
    """
    module = Module(entry_name(kernel), target)
    threaded = any(s.kind == "parallel" for s in loops_in(kernel.body))
    work = _emit_work(module, kernel, threaded, room)
    entry = _emit_entry(module, kernel, threaded, room)
    return "\n\n".join(
        [
            _preamble(kernel, target),
            *module.declarations.values(),
            *module.helpers.values(),
            *module.functions,
            work,
            entry,
            f"attributes #0 = {{ {_attributes(target)} }}\n",
        ]
    )


def _preamble(kernel: Kernel, target: Target) -> str:
    head = f"; kernel {entry_name(kernel)} for {target.cpu}"
    return f'{head}\ntarget datalayout = "{data_layout(target)}"\ntarget triple = "{target.triple}"'


def _attributes(target: Target) -> str:
    """Return the attributes of every function; without builtins a loop does not become a call of memcpy or memset."""
    width = f' "prefer-vector-width"="{target.vector_bits}"' if target.is_x86 and target.vector_bits > 256 else ""
    return f'nounwind "no-builtins"{width}'


def _checks(kernel: Kernel) -> bool:
    """Return True if the kernel may end before its end."""
    return any(isinstance(s, Check) for s in skeleton(kernel.body))


def _emit_work(module: Module, kernel: Kernel, threaded: bool, room: bool) -> str:
    """Return the kernel as a function of its buffers and parameters."""
    fn = Function(module, evaluate)
    w = fn.writer
    declared = []
    if threaded:
        fn.threads = Threads(w.value("parallel_for"), w.value("threads"))
        declared += [f"ptr {fn.threads.parallel_for}", f"i64 {fn.threads.count}"]
    rooms: list[str] = []
    if room:
        fn.room = Room(w.value("room"), w.value("parts"), w.value("part_bytes"))
        rooms = [f"ptr noalias {fn.room.top}", f"ptr {fn.room.parts}", f"i64 {fn.room.part_bytes}"]
    if _checks(kernel):
        fn.report = w.value("report")
        declared.append(f"ptr {fn.report}")
    pointers = [w.value(sanitised(b.name)) for b in kernel.buffers]
    scalars = [signature.scalar(fn, p.name, p.var.type, signature.promised(p)) for p in kernel.parameters]
    for k, (b, ref) in enumerate(zip(kernel.buffers, pointers, strict=True)):
        memory.bind(fn, b, ref, b.dtype.bytes, readonly=k < len(kernel.inputs))
    statements.emit(fn, kernel.body)
    streams.settle(fn)
    tiles.release(fn)
    w.line("ret i32 0")
    declared += [signature.pointer(fn, fn.memories[b.name]) for b in kernel.buffers]
    declared += [*scalars, *rooms]
    return fn.writer.text(signature.HEADER.format(name=f"{module.name}.work", parameters=", ".join(declared)))


def _emit_entry(module: Module, kernel: Kernel, threaded: bool, room: bool) -> str:
    """Emit the entry: unpack the words, convert the parameters, call the work."""
    fn = Function(module, evaluate)
    w = fn.writer
    arguments = w.value("arguments")
    operands = []

    def word(k: int, hint: str, text: str) -> str:
        slot = w.define(f"{hint}.word", f"getelementptr i64, ptr {arguments}, i64 {k}")
        return w.define(hint, f"load {text}, ptr {slot}, align 8")

    if threaded:
        operands += [f"ptr {word(0, 'parallel_for', 'ptr')}", f"i64 {word(1, 'threads', 'i64')}"]
    if _checks(kernel):
        operands.append(f"ptr {arguments}")
    for k, b in enumerate(kernel.buffers, 2):
        operands.append(f"ptr {word(k, sanitised(b.name), 'ptr')}")
    for k, p in enumerate(kernel.parameters, 2 + len(kernel.buffers)):
        raw, text = (FLOAT64, "double") if p.dtype.is_float else (INT64, "i64")
        value = Value(word(k, sanitised(p.name), text), Type(raw), text)
        operands.append(conversions.convert(fn, value, p.dtype).typed)
    first = 2 + len(kernel.buffers) + len(kernel.parameters)
    for k, (hint, text) in enumerate(_ROOM if room else (), first):
        operands.append(f"{text} {word(k, hint, text)}")
    status = w.define("status", f"call i32 @{module.name}.work({', '.join(operands)})")
    w.line(f"ret i32 {status}")
    return w.text(f"define i32 @{module.name}(ptr {arguments}) #0")
