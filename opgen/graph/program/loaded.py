"""A program in the process, ready to run: its kernels and entry loaded, its weights in place."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from opgen.diagnostics import CheckFailed, InternalError, UserError
from opgen.graph.program.arena import ArenaPool, arena_code
from opgen.graph.program.arena_ir import FIRST_TENSOR, NO_ARENA, RECORD_WORDS
from opgen.graph.program.runnable import ENTRY, NodeStep, Runnable
from opgen.graph.program.weights import Row, array_of
from opgen.loop.status import FIRST_CHECK, OK, OUT_OF_MEMORY
from opgen.runtime import threads
from opgen.runtime.kernels.kernel import Launchable, Words
from opgen.runtime.kernels.loaded import LoadedKernel
from opgen.runtime.memory.address import address
from opgen.runtime.native.library import load_library

if TYPE_CHECKING:
    from opgen.graph.program.clock import ClockedEntry
    from opgen.graph.program.program import Program
    from opgen.runtime.kernels.ran import KernelRun

_TRIES = 100
"""Number of attempts of a run to take an arena that other runs may take first."""


class StepFailed(CheckFailed):
    """A failed check of the kernel of a node, by the node's number."""

    def __init__(self, node: int, number: int, value: int) -> None:
        super().__init__(number, value)
        self.node = node


class LoadedProgram:
    """A program with the arguments of its entry: the addresses of its kernels and weights."""

    def __init__(
        self,
        runnable: Runnable,
        steps: Sequence[NodeStep],
        kernels: Sequence[LoadedKernel],
        rows: Sequence[Row],
        pool: ArenaPool,
        program: Callable[[], Program],
    ) -> None:
        """Load the entry; `program` returns the full program on demand."""
        self.runnable = runnable
        self.steps = tuple(steps)
        self.pool = pool
        self.rows = tuple(rows)
        self.codes = tuple(kernels)
        self._made_of = program
        self._library = load_library(runnable.code, ENTRY, owner=runnable.name)
        self._clocked: ClockedEntry | None = None
        self._records: dict[int, Words] = {}
        self._kernel_table = _table(k.address for k in self.codes)
        self._weight_table = _table(0 if a is None else address(a) for a in map(array_of, self.rows))

    @property
    def kernels(self) -> int:
        """Return the number of different kernels that it runs."""
        return len(self.codes)

    @property
    def program(self) -> Program:
        """Return the full program."""
        return self._made_of()

    @property
    def tables(self) -> tuple[int, int]:
        """Return the addresses of the entry's tables of kernels and of weights, valid while this object is alive."""
        return ctypes.addressof(self._kernel_table), ctypes.addressof(self._weight_table)

    def clocked(self) -> ClockedEntry:
        """Return the entry with a clock, made on first use.  Raises NoCompilerError if LLVM is missing."""
        if self._clocked is None:
            from opgen.graph.program.clock import ClockedEntry

            program = self.program
            self._clocked = ClockedEntry(program.name, program.entry, len(program.inputs) + len(program.outputs))
        return self._clocked

    def bind(self) -> BoundProgram:
        """Return the program as a target of launches."""
        return BoundProgram(self)

    def record(self, count: int) -> Words:
        """Return the record of runs with this number of threads (`opgen.graph.program.arena_ir`).

        It stays at its address, because runs may read it.
        """
        record = self._records.get(count)
        if record is None:
            entry = self._library.address(ENTRY)
            words = (entry, *self.tables, self.pool.address, self.runnable.arena_bytes(count))
            record = self._records.setdefault(count, (ctypes.c_int64 * RECORD_WORDS)(*words))
        return record


class BoundProgram(Launchable):
    """A program that is launched like a kernel.  Many threads may call it at once: each run has an arena."""

    __slots__ = ("_count", "_generation", "_program", "_record", "_run")

    def __init__(self, program: LoadedProgram) -> None:
        self._program = program
        self._generation = -1
        self._settle()

    def _settle(self) -> None:
        """Adopt the current number of threads."""
        if self._generation != threads.generation():
            self._generation = threads.generation()
            self._count = threads.get_num_threads()
            self._record = self._program.record(self._count)

    @property
    def first(self) -> int:
        return FIRST_TENSOR

    @property
    def address(self) -> int:
        return arena_code().run

    @property
    def generation(self) -> int:
        return self._generation

    def packed(self) -> Words:
        self._settle()
        program = self._program.runnable
        count = len(program.inputs) + len(program.outputs)
        parallel = threads.parallel_for().address if self._count > 1 else 0
        return (ctypes.c_int64 * (FIRST_TENSOR + count))(parallel, self._count, ctypes.addressof(self._record))

    def reserve(self) -> None:
        self._settle()
        self._program.pool.grow(int(self._record[RECORD_WORDS - 1]))

    def __call__(self, addresses: Sequence[ctypes.c_int64 | int]) -> None:
        """Run on the inputs' and outputs' memory.  Raises MemoryError if memory for an arena does not suffice."""
        words = self.packed()
        words[FIRST_TENSOR:] = list(addresses)
        needed = int(self._record[RECORD_WORDS - 1])
        function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(self.address)
        for _ in range(_TRIES):
            status = function(ctypes.addressof(words))
            if status != NO_ARENA:
                break
            self._program.pool.grow(needed)
        if status == NO_ARENA:
            raise MemoryError("too many runs at once")
        if status != OK:
            self._raise_for(status, words[FIRST_TENSOR])

    def timed(self, op: str, addresses: Sequence[ctypes.c_int64 | int]) -> tuple[float, tuple[KernelRun, ...]]:
        """Run, and return the seconds that it took and the kernels that ran; they have no times without a compiler."""
        self._settle()
        try:
            clocked = self._program.clocked()
        except UserError:  # the model can no longer be read, or LLVM is not installed
            begin = time.perf_counter()
            self(addresses)
            return time.perf_counter() - begin, self._kernel_runs([None] * len(self._program.steps))
        pool, count = self._program.pool, self._count
        slot = pool.take(int(self._record[RECORD_WORDS - 1]))
        if slot < 0:
            raise MemoryError("too many runs at once")
        try:
            parallel = threads.parallel_for().address if count > 1 else 0
            run = clocked.run(addresses, self._program.tables, pool.arena(slot), parallel, count)
        finally:
            pool.give(slot)
        if run.status != OK:
            self._raise_for(run.status, run.reported)
        return run.whole, self._kernel_runs(run.steps)

    def _kernel_runs(self, seconds: Sequence[float | None]) -> tuple[KernelRun, ...]:
        from opgen.runtime.kernels.loaded import hash_of
        from opgen.runtime.kernels.ran import KernelRun

        codes = self._program.codes
        hashes = [hash_of(kernel.code) for kernel in codes]
        found = []
        for step, taken in zip(self._program.steps, seconds, strict=True):
            kernel = codes[step.kernel]
            made = (kernel.symbol, hashes[step.kernel], kernel.origin.algorithm, kernel.origin.specialized)
            count = self._count if step.shared else 1
            found.append(KernelRun(step.op, *made, kernel.built, count, taken, step.node))
        return tuple(found)

    def _raise_for(self, result: int, reported: int) -> None:
        from opgen.graph.program.program_ir import failure_of

        step, status = failure_of(result)
        program = self._program.runnable
        node = program.nodes[step]
        if status >= FIRST_CHECK:
            raise StepFailed(node, status - FIRST_CHECK, reported)
        if status == OUT_OF_MEMORY:
            raise MemoryError(f"node {node} of '{program.name}' has no memory for temporary results")
        raise InternalError(f"the kernel of node {node} of '{program.name}' returned status {status}")


def _table(addresses: Iterable[int]) -> ctypes.Array[ctypes.c_int64]:
    found = list(addresses)
    return (ctypes.c_int64 * max(1, len(found)))(*found)
