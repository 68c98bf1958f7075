"""Constants of a program: those that its kernels read directly, and tensors prepared from constants once."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from opgen.diagnostics import InternalError
from opgen.graph.ir.nodes import Array, Constant, Data, Graph, Value
from opgen.graph.kernels.kernels import KernelCode, loaded
from opgen.graph.kernels.parallel_build import Progress
from opgen.graph.plan.lives import ALIGNMENT
from opgen.graph.program.arena import ArenaPool
from opgen.graph.program.loaded import LoadedProgram
from opgen.graph.program.program import Openings, Prepared, Program, program, steps_of
from opgen.graph.program.runnable import NodeStep
from opgen.graph.program.weights import Row, Store, array_of
from opgen.loop.status import OK
from opgen.runtime import threads
from opgen.runtime.kernels.loaded import LoadedKernel, holding
from opgen.runtime.kernels.run import evaluate
from opgen.runtime.memory.address import address
from opgen.runtime.memory.buffers import dtype_of, empty_aligned


class MissingKernelError(InternalError):
    """A kernel of a program that has gone from the cache."""


@dataclass(frozen=True)
class Complete:
    """A program with its steps and loaded kernels, and the kernels that prepare constants for it."""

    program: Program
    steps: tuple[NodeStep, ...]
    kernels: tuple[LoadedKernel, ...]
    preparing: tuple[LoadedKernel, ...]


def complete(graph: Graph, openings: Openings | None = None, progress: Progress | None = None) -> Complete:
    """Return the program of a graph and its kernels.

    It is rebuilt if the cache has the program, but no longer all of its kernels.
    """
    with holding():
        try:
            return with_kernels(program(graph, openings, progress), graph)
        except MissingKernelError:
            return with_kernels(program(graph, openings, progress, anew=True), graph)


def with_kernels(made: Program, graph: Graph) -> Complete:
    """Return the program of a graph and its kernels.

    Raises MissingKernelError if the code of one is neither here nor in the cache.
    """
    kernels = tuple(_found(code, made.name) for code in made.kernels)
    preparing = tuple(_found(work.kernel, made.name) for work in made.prepared)
    return Complete(made, steps_of(graph, made), kernels, preparing)


def _found(code: KernelCode, name: str) -> LoadedKernel:
    kernel = loaded(code)
    if kernel is None:
        raise MissingKernelError(f"a kernel of program '{name}' is gone")
    return kernel


def load(made: Complete, weights: Sequence[Array], pool: ArenaPool, store: Store | None = None) -> LoadedProgram:
    """Return a program ready to run on these constants; programs of one model share `store`."""
    rows = table(made, weights, store)
    return LoadedProgram(made.program, made.steps, made.kernels, rows, pool, lambda: made.program)


def table(made: Complete, constants: Sequence[Array], store: Store | None = None) -> list[Row]:
    """Return the entry's table: constants, and tensors prepared from them.  Those in the store are not made again."""
    shared = Store() if store is None else store
    entry = made.program.entry
    used = {p.at for x in entry.launches for p in x.places if p.room == "weight"}
    used |= {m.source.at for m in entry.moved if m.source.room == "weight"}
    rows: list[Row] = []
    for number, array in enumerate(constants):
        rows.append((shared.of("in line", [array], partial(_lined_up, array)), 0) if number in used else None)
    for work, kernel in zip(made.program.prepared, made.preparing, strict=True):
        sources = [constants[number] for number in work.sources]
        held = shared.of(work.kernel.key, sources, partial(prepared, work, kernel, sources, made.program.name))
        rows += [(held, k) for k in range(len(held.made))]
    return rows


def _lined_up(array: Array) -> list[Array]:
    return [_in_line(array)]


def _in_line(array: Array) -> Array:
    """Return an array that starts on a cache line, because kernels read it fastest."""
    if address(array) % ALIGNMENT == 0 or not array.size:
        return array
    found = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = -address(found) % ALIGNMENT
    copy: Array = found[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def constants_for(made: Complete, graph: Graph) -> tuple[Constant, ...]:
    """Return the entry's table as constants, for a library's file of weights; those that no kernel reads are empty."""
    arrays = [array_of(row) for row in table(made, [c.data.array for c in graph.constants])]
    nothing = np.empty(0, np.uint8)
    return tuple(_constant(f"weight {i}", nothing if a is None else a) for i, a in enumerate(arrays))


def _constant(name: str, array: Array) -> Constant:
    dtype = dtype_of(array)
    if dtype is None:
        raise InternalError(f"{name} is of type {array.dtype}, which no kernel reads")
    return Constant(Value(name, dtype, array.shape), Data(array))


def prepared(work: Prepared, kernel: LoadedKernel, given: Sequence[Array], name: str) -> list[Array]:
    """Return the tensors that a kernel makes from constants."""
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
        raise MemoryError(f"{name}: not enough memory to prepare constants")
    return results
