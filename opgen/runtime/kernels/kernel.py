"""Callable kernels: loaded from an artifact, which is in the process, in the cache, or built."""

from __future__ import annotations

import contextlib
import ctypes
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, SupportsIndex

from opgen.cache import pickled
from opgen.compiler import toolchain
from opgen.compiler.object import ObjectCode
from opgen.diagnostics import CheckFailed, InternalError
from opgen.locks import BUILD
from opgen.loop import build as b
from opgen.loop.nodes import Kernel
from opgen.loop.status import FIRST_CHECK, OK, OUT_OF_MEMORY
from opgen.runtime import threads
from opgen.runtime.kernels.loaded import LoadedKernel, Origin, loaded_code, remembered
from opgen.runtime.native.words import FIRST_BUFFER, parameter_words

if TYPE_CHECKING:
    from opgen.codegen.llvm.target import Target
    from opgen.compiler.artifact import Artifact
    from opgen.runtime.kernels.ran import KernelRun

Words = ctypes.Array[ctypes.c_int64]


def _raise_for(status: int, name: str, words: Words) -> None:
    if status >= FIRST_CHECK:
        raise CheckFailed(status - FIRST_CHECK, words[0])
    if status == OUT_OF_MEMORY:
        raise MemoryError(f"kernel {name}: not enough memory for its temporary buffers")
    raise InternalError(f"kernel {name} returned status {status}")


class CompiledKernel:
    """A kernel's machine code, ready to be called.  The code stays loaded as long as this object lives."""

    def __init__(
        self,
        kernel: Kernel,
        loaded: LoadedKernel,
        key: str = "",
        alone: bool = False,
        algorithm: str | None = None,
    ) -> None:
        """Wrap a loaded kernel; `key` is that of its object code.

        `alone`: the calling thread does all its work.  `algorithm` is the name of its algorithm; None if it computes by
        its op's definition.  Only the kernel's interface is kept: a body is many objects, which every full garbage
        collection visits.
        """
        self.kernel = replace(kernel, body=b.EMPTY)
        self.name = kernel.name
        self.key = key
        self.loaded = loaded
        self.algorithm = algorithm
        self.address = loaded.address
        self.parallel = loaded.parallel and not alone
        self._array = ctypes.c_int64 * (FIRST_BUFFER + len(kernel.buffers) + len(kernel.parameters))
        self._function: Callable[[Words], int] = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(self._array))(
            self.address
        )

    def _head(self, count: int | None) -> tuple[int, int]:
        """Return words 0 and 1, for `count` threads (None: the current number)."""
        wanted = threads.get_num_threads() if count is None else count
        if not self.parallel or wanted <= 1:
            return 0, 1
        return threads.parallel_for().address, wanted

    def words(
        self, addresses: Sequence[int], parameters: Sequence[SupportsIndex | float], count: int | None = None
    ) -> Words:
        """Return the packed arguments.  Raises InternalError if their number is wrong."""
        needed = len(self.kernel.buffers)
        if len(addresses) != needed:
            raise InternalError(f"kernel {self.name} has {needed} buffers, given {len(addresses)}")
        return self._array(*self._head(count), *addresses, *parameter_words(self.kernel.parameters, parameters))

    def __call__(
        self, addresses: Sequence[int], parameters: Sequence[SupportsIndex | float], threads: int | None = None
    ) -> None:
        """Run on buffers (inputs, then outputs) and parameters; other Python threads run meanwhile.

        `threads` overrides the current number.  Raises MemoryError if temporary buffers cannot be allocated,
        CheckFailed if a check of the kernel fails.
        """
        words = self.words(addresses, parameters, threads)
        status = self._function(words)
        if status != OK:
            _raise_for(status, self.name, words)

    def bind(self, parameters: Sequence[SupportsIndex | float], alone: bool = False) -> BoundKernel:
        """Return the kernel with its parameters fixed, for many calls in which only the buffers change.

        `alone`: the calling thread does all its work.
        """
        return BoundKernel(self, parameters, alone)


class Launchable(ABC):
    """Base of everything that calls launch through packed arguments: a kernel, or a program of many."""

    __slots__ = ()

    @property
    @abstractmethod
    def address(self) -> int:
        """The address of the code: a function of the arguments that returns a status."""

    @property
    @abstractmethod
    def first(self) -> int:
        """The index of the arguments' word with the first tensor's address; the others' follow."""

    @property
    @abstractmethod
    def generation(self) -> int:
        """The `threads.generation` of the threads in `packed`."""

    @abstractmethod
    def packed(self) -> Words:
        """Return new arguments, for the current number of threads; the tensors' addresses are 0."""

    @abstractmethod
    def reserve(self) -> None:
        """Take the memory that runs share, if there is none yet: taken in a thread, it would outlast its owner."""

    @abstractmethod
    def __call__(self, addresses: list[ctypes.c_int64 | int]) -> None:
        """Run on these tensors, inputs then outputs."""

    @abstractmethod
    def timed(self, op: str, addresses: list[ctypes.c_int64 | int]) -> tuple[float, tuple[KernelRun, ...]]:
        """Run, and return the seconds that it took and the kernels that ran; `op` is the name of the op or model."""


class BoundKernel(Launchable):
    """A kernel whose arguments are packed but for the buffers' addresses.  Many threads may call it at once."""

    __slots__ = ("_count", "_end", "_function", "_generation", "_kernel", "_parameters", "_spare")

    def __init__(self, kernel: CompiledKernel, parameters: Sequence[SupportsIndex | float], alone: bool) -> None:
        self._kernel = kernel
        self._count = 1 if alone else None
        self._parameters = tuple(parameters)
        self._function = kernel._function
        self._end = FIRST_BUFFER + len(kernel.kernel.buffers)
        self._generation = threads.generation()
        self._spare: deque[Words] = deque()

    @property
    def address(self) -> int:
        """The address of the code."""
        return self._kernel.address

    @property
    def first(self) -> int:
        return FIRST_BUFFER

    @property
    def generation(self) -> int:
        return self._generation

    @property
    def specialized(self) -> bool:
        """True if the kernel is for certain sizes."""
        return all(p.dtype.is_float for p in self._kernel.kernel.parameters)

    def reserve(self) -> None:
        """Take nothing: a kernel's memory is its own for each run."""

    def packed(self) -> Words:
        """Return the kernel's arguments, new, for the current number of threads; the buffers' addresses are 0."""
        self._spares()
        return self._kernel.words((0,) * (self._end - FIRST_BUFFER), self._parameters, self._count)

    def _spares(self) -> deque[Words]:
        """Return packed arguments that no call is using, for the current number of threads."""
        if self._generation != threads.generation():
            self._generation = threads.generation()
            self._spare = deque()
        return self._spare

    def __call__(self, addresses: list[ctypes.c_int64 | int]) -> None:
        """Run on these buffers: as many as the kernel has, inputs then outputs (ValueError otherwise)."""
        spares = self._spares()
        try:
            words = spares.pop()
        except IndexError:
            words = self.packed()
        words[FIRST_BUFFER : self._end] = addresses
        status = self._function(words)
        if status != OK:  # the words have changed: the next call packs new ones
            _raise_for(status, self._kernel.name, words)
        spares.append(words)

    def timed(self, op: str, addresses: list[ctypes.c_int64 | int]) -> tuple[float, tuple[KernelRun, ...]]:
        from opgen.runtime.kernels.ran import KernelRun

        kernel, words = self._kernel, self.packed()
        words[FIRST_BUFFER : self._end] = addresses
        begin = time.perf_counter()
        status = self._function(words)
        seconds = time.perf_counter() - begin
        if status != OK:
            _raise_for(status, kernel.name, words)
        loaded = kernel.loaded
        made = (loaded.symbol, loaded.code_hash, kernel.algorithm, self.specialized, loaded.built)
        return seconds, (KernelRun(op, *made, threads=words[1], seconds=seconds),)


# Loading ---------------------------------------------------------------------------------------------------------


def load(made: Artifact, alone: bool | None = None) -> CompiledKernel:
    """Return the callable of an artifact: in the process already, from the cache, or built.

    A kernel is built once, however many threads request it at once.  `alone`: the calling thread does all its work,
    parallel loops or not (None: if it is short).
    """
    if made.request.memory == "caller":
        raise InternalError(f"kernel {made.loop.name} takes memory that only a program gives it")
    with BUILD:
        found = remembered(made.key) or _loaded(made)
        short = made.is_short if alone is None else alone
        return CompiledKernel(made.loop, found, made.key, short, made.algorithm)


def _loaded(made: Artifact) -> LoadedKernel:
    kept = made.kept()
    if kept is not None:
        with contextlib.suppress(InternalError):  # the entry is not this kernel's code
            return _in_process(made.key, kept)
    return _in_process(made.key, made.build(), built=True)


def _in_process(key: str, found: ObjectCode, built: bool = False) -> LoadedKernel:
    return loaded_code(key, found.symbol, found.code, Origin(), built, found.parallel)


def load_kept(key: str, interface: Kernel, alone: bool, algorithm: str | None) -> CompiledKernel | None:
    """Return the kernel whose object code is kept under a key, from its interface; None without the code."""
    with BUILD:
        found = remembered(key)
        if found is None:
            kept = pickled.take(key, ObjectCode)
            if kept is None:
                return None
            try:
                found = _in_process(key, kept)
            except InternalError:  # the entry is not this kernel's code
                return None
        return CompiledKernel(interface, found, key, alone, algorithm)


def compile_kernel(kernel: Kernel, target: Target | None = None, alone: bool = False) -> CompiledKernel:
    """Return the callable of a legal kernel, for this machine unless another (compatible) target is given."""
    with BUILD:
        from opgen.compiler.make import artifact
        from opgen.compiler.request import Compilation

        goal = toolchain.host() if target is None else target
        return load(artifact(Compilation(kernel, goal, schedule="finished")), alone)
