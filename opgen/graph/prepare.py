"""What a program takes of constants: those that its kernels read as they are, and what is made of them once."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import partial

import numpy as np

from opgen.diagnostics import InternalError
from opgen.graph.arena import ArenaPool
from opgen.graph.code import LoadedKernel
from opgen.graph.held import Row, Store, array_of
from opgen.graph.kernels import KernelCode, loaded
from opgen.graph.loaded import LoadedProgram
from opgen.graph.nodes import Array, Constant, Data, Graph, Value
from opgen.graph.plan.lives import ALIGNMENT
from opgen.graph.program import Prepared, Program
from opgen.loop.status import OK
from opgen.runtime import threads
from opgen.runtime.address import address
from opgen.runtime.buffers import dtype_of, empty_aligned
from opgen.runtime.run import evaluate


class MissingKernelError(InternalError):
    """A kernel of a program is not in the cache any more."""


def found(code: KernelCode, program: str) -> LoadedKernel:
    """A kernel of a program.  Raises MissingKernelError."""
    kernel = loaded(code)
    if kernel is None:
        raise MissingKernelError(f"a kernel of program '{program}' is gone")
    return kernel


def load(program: Program, weights: Sequence[Array], pool: ArenaPool, store: Store | None = None) -> LoadedProgram:
    """A program ready to run on these constants; `store` is shared by programs of one model.

    Raises MissingKernelError if the code of a kernel is gone.
    """
    kernels = [found(code, program.name) for code in program.kernels]
    return LoadedProgram(program, kernels, table(program, weights, store), pool, lambda: program)


def table(program: Program, constants: Sequence[Array], store: Store | None = None) -> list[Row]:
    """The entry's table: constants, and what is prepared of them.  What is in the store is not made again."""
    shared = Store() if store is None else store
    entry = program.entry
    used = {p.at for x in entry.launches for p in x.places if p.room == "weight"}
    used |= {m.source.at for m in entry.moved if m.source.room == "weight"}
    rows: list[Row] = []
    for number, array in enumerate(constants):
        rows.append((shared.of("in line", [array], partial(_lined_up, array)), 0) if number in used else None)
    for work in program.prepared:
        sources = [constants[number] for number in work.sources]
        held = shared.of(work.kernel.key, sources, partial(prepared, work, sources, program.name))
        rows += [(held, k) for k in range(len(held.made))]
    return rows


def _lined_up(array: Array) -> list[Array]:
    return [_in_line(array)]


def _in_line(array: Array) -> Array:
    """An array that starts on a cache line, as kernels read fastest."""
    if address(array) % ALIGNMENT == 0 or not array.size:
        return array
    found = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = -address(found) % ALIGNMENT
    copy: Array = found[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def constants_for(program: Program, graph: Graph) -> tuple[Constant, ...]:
    """The entry's table as constants, those that no kernel reads empty: what a library keeps in its file of weights."""
    arrays = [array_of(row) for row in table(program, [c.data.array for c in graph.constants])]
    nothing = np.empty(0, np.uint8)
    return tuple(_constant(f"weight {i}", nothing if a is None else a) for i, a in enumerate(arrays))


def _constant(name: str, array: Array) -> Constant:
    dtype = dtype_of(array)
    if dtype is None:
        raise InternalError(f"{name} is of type {array.dtype}, which no kernel reads")
    return Constant(Value(name, dtype, array.shape), Data(array))


def prepared(work: Prepared, given: Sequence[Array], program: str) -> list[Array]:
    """What a kernel makes of constants."""
    kernel = found(work.kernel, program)
    sources = [np.ascontiguousarray(a) for a in given]
    results: list[Array] = [empty_aligned(shape, dtype) for dtype, shape in work.made]
    count = threads.get_num_threads()
    shared = 0 if count <= 1 else threads.parallel_for().address
    words = [shared, count, *(address(a) for a in (*sources, *results))]
    room = work.kernel.room
    pool = ArenaPool()
    if room is not None:
        own, each = evaluate(room.shared, {}), evaluate(room.each, {})
        arena = pool.arena(pool.take(max(1, own + count * each)))
        words += [arena, arena + own, each]
    block = (ctypes.c_int64 * len(words))(*words)
    status = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(kernel.address)(ctypes.addressof(block))
    if status != OK:
        raise MemoryError(f"{program}: not enough memory to prepare constants")
    return results
