"""From a scheduled kernel to a callable: looked up in memory, then on disk, else built."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import time
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, SupportsIndex

from opgen.cache import entries as cache
from opgen.compiler import toolchain
from opgen.compiler.keys import code_identity
from opgen.diagnostics import CheckFailed, InternalError
from opgen.locks import BUILD
from opgen.loop import build as b
from opgen.loop import walk
from opgen.loop.nodes import Kernel
from opgen.loop.status import FIRST_CHECK, OK, OUT_OF_MEMORY
from opgen.runtime import threads
from opgen.runtime.kernels.temporaries import load_kernel
from opgen.runtime.native.library import Library
from opgen.runtime.native.words import FIRST_BUFFER, parameter_words

if TYPE_CHECKING:
    from opgen.codegen.llvm.target import Target
    from opgen.runtime.kernels.ran import KernelRun

Words = ctypes.Array[ctypes.c_int64]
Finish = Callable[[Kernel], Kernel]

MEMO_LIMIT = 1024
"""How many kernels stay loaded when nothing else holds them."""


def _raise_for(status: int, name: str, words: Words) -> None:
    if status >= FIRST_CHECK:
        raise CheckFailed(status - FIRST_CHECK, words[0])
    if status == OUT_OF_MEMORY:
        raise MemoryError(f"kernel {name}: not enough memory for its temporary buffers")
    raise InternalError(f"kernel {name} returned status {status}")


def _is_parallel(kernel: Kernel) -> bool:
    return any(s.kind == "parallel" for s in walk.loops_in(kernel.body))


class CompiledKernel:
    """A kernel's machine code, ready to be called.  The code stays loaded as long as this object lives."""

    algorithm: str | None = None
    """The name of its algorithm; None if it computes by its op's definition."""

    def __init__(
        self,
        kernel: Kernel,
        library: Library,
        code_hash: str = "",
        key: str = "",
        symbol: str | None = None,
        parallel: bool | None = None,
        built: bool = True,
    ) -> None:
        """`key` is that of its object code; symbol and parallel loops are found in the kernel unless they are given.
        `built` is True if its code does not come from the cache.

        What stays of the kernel is its interface: a body is many objects, which every full garbage collection visits.
        """
        self.kernel = replace(kernel, body=b.EMPTY)
        self.name = kernel.name
        self.key = key
        self.code_hash = code_hash
        self.built = built
        self.symbol = toolchain.entry_name(kernel) if symbol is None else symbol
        self.address = library.address(self.symbol)
        self.library = library
        self.parallel = _is_parallel(kernel) if parallel is None else parallel
        self._array = ctypes.c_int64 * (FIRST_BUFFER + len(kernel.buffers) + len(kernel.parameters))
        self._function: Callable[[Words], int] = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(self._array))(
            self.address
        )

    def _head(self, count: int | None) -> tuple[int, int]:
        """Words 0 and 1, for `count` threads (None: as many as are set)."""
        wanted = threads.get_num_threads() if count is None else count
        if not self.parallel or wanted <= 1:
            return 0, 1
        return threads.parallel_for().address, wanted

    def words(
        self, addresses: Sequence[int], parameters: Sequence[SupportsIndex | float], count: int | None = None
    ) -> Words:
        """The packed arguments.  Raises InternalError if there are too few or too many."""
        needed = len(self.kernel.buffers)
        if len(addresses) != needed:
            raise InternalError(f"kernel {self.name} has {needed} buffers, given {len(addresses)}")
        return self._array(*self._head(count), *addresses, *parameter_words(self.kernel.parameters, parameters))

    def __call__(
        self, addresses: Sequence[int], parameters: Sequence[SupportsIndex | float], threads: int | None = None
    ) -> None:
        """Run on buffers (inputs, then outputs) and parameters; other Python threads run meanwhile.

        `threads` overrides the number that is set.  Raises MemoryError if temporary buffers cannot be had, CheckFailed
        if a check of the kernel does not hold.
        """
        words = self.words(addresses, parameters, threads)
        status = self._function(words)
        if status != OK:
            _raise_for(status, self.name, words)

    def bind(self, parameters: Sequence[SupportsIndex | float], alone: bool = False) -> BoundKernel:
        """The kernel with its parameters fixed, for many calls in which only the buffers change.

        `alone`: the thread that calls it does all its work.
        """
        return BoundKernel(self, parameters, alone)


class Launchable(ABC):
    """What calls are launched on by way of packed arguments: a kernel, or a program of many."""

    __slots__ = ()

    @property
    @abstractmethod
    def address(self) -> int:
        """Where the code is: a function of the arguments that returns a status."""

    @property
    @abstractmethod
    def first(self) -> int:
        """Which word of the arguments is the first tensor's address; the others' follow."""

    @property
    @abstractmethod
    def generation(self) -> int:
        """The `threads.generation` that the threads in `packed` are of."""

    @abstractmethod
    def packed(self) -> Words:
        """The arguments, new, for the number of threads that is set now; the tensors' addresses are 0."""

    @abstractmethod
    def __call__(self, addresses: list[ctypes.c_int64 | int]) -> None:
        """Run on these tensors, inputs then outputs."""

    @abstractmethod
    def timed(self, op: str, addresses: list[ctypes.c_int64 | int]) -> tuple[float, tuple[KernelRun, ...]]:
        """Run, and return the seconds that it took and the kernels that ran; `op` is the name of what is called."""


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
        """Where the code is."""
        return self._kernel.address

    @property
    def first(self) -> int:
        return FIRST_BUFFER

    @property
    def generation(self) -> int:
        return self._generation

    def packed(self) -> Words:
        """The kernel's arguments, new, for the number of threads that is set now; the buffers' addresses are 0."""
        self._spares()
        return self._kernel.words((0,) * (self._end - FIRST_BUFFER), self._parameters, self._count)

    def _spares(self) -> deque[Words]:
        """Packed arguments that no call is using, for the number of threads that is set now."""
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
        if status != OK:  # the words are not what they were: another call packs its own
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
        specialized = all(p.dtype.is_float for p in kernel.kernel.parameters)
        made = (kernel.symbol, kernel.code_hash, kernel.algorithm, specialized, kernel.built)
        return seconds, (KernelRun(op, *made, threads=words[1], seconds=seconds),)


# Building --------------------------------------------------------------------------------------------------------

_memo: OrderedDict[tuple[str, bool | None], CompiledKernel] = OrderedDict()
"""By the key of the code, and whether parallel loops are shared out (None: if the kernel has some)."""


def _remembered(key: str, parallel: bool | None) -> CompiledKernel | None:
    """The kernel of that key if it is loaded; it becomes the last to be forgotten."""
    found = _memo.get((key, parallel))
    if found is not None:
        with contextlib.suppress(KeyError):  # another thread may just have forgotten it
            _memo.move_to_end((key, parallel))
    return found


def _remember(key: str, parallel: bool | None, compiled: CompiledKernel) -> None:
    _memo[key, parallel] = compiled
    while len(_memo) > MEMO_LIMIT:
        _memo.popitem(last=False)


def _loaded(key: str, kernel: Kernel, code: bytes, parallel: bool | None, built: bool) -> CompiledKernel:
    library = load_kernel(code, toolchain.entry_name(kernel))
    return CompiledKernel(kernel, library, hash_of(code), key, parallel=parallel, built=built)


def hash_of(code: bytes) -> str:
    """The sha256 of object code, by which people tell whether two calls ran the same."""
    return hashlib.sha256(code).hexdigest()


def _from_disk(key: str, kernel: Kernel, parallel: bool | None) -> CompiledKernel | None:
    code = cache.default().load(key)
    if code is None:
        return None
    try:
        return _loaded(key, kernel, code, parallel, built=False)
    except InternalError:  # whatever it is, it is not this kernel's code
        return None


def _build(key: str, kernel: Kernel, target: Target, parallel: bool | None, finish: Finish | None) -> CompiledKernel:
    kernel = kernel if finish is None else finish(kernel)
    code = toolchain.object_code(toolchain.emit(kernel, target), target, kernel.is_bound)
    compiled = _loaded(key, kernel, code, parallel, built=True)
    cache.default().store(key, code)
    return compiled


def kernel_key(kernel: Kernel, target: Target, finished: bool = True) -> str:
    """The key of a kernel's code, in memory and on disk; of one that is not `finished` the passes decide, too."""
    identity = code_identity(target, toolchain.listing(kernel))
    return cache.key_of(identity if finished else {**identity, "passes": toolchain.compiler_fingerprint()})


def compile_kernel(
    kernel: Kernel, target: Target | None = None, alone: bool = False, finish: Finish | None = None
) -> CompiledKernel:
    """The callable of a scheduled kernel, for this machine unless another (compatible) target is given.

    A kernel is built once, whatever number of threads ask for it at once.  `alone`: the thread that calls it is to do
    all its work, parallel loops or not.  `finish` makes it what the emitter takes, and is not called if its code is
    there.
    """
    goal = toolchain.host() if target is None else target
    key, parallel = kernel_key(kernel, goal, finish is None), False if alone else None
    if (found := _remembered(key, parallel)) is not None:
        return found
    with BUILD:
        if (found := _remembered(key, parallel)) is not None:
            return found
        compiled = _from_disk(key, kernel, parallel) or _build(key, kernel, goal, parallel, finish)
        _remember(key, parallel, compiled)
        return compiled


def load_compiled(key: str, interface: Kernel, symbol: str, parallel: bool) -> CompiledKernel | None:
    """The kernel whose object code lies under a key, from its interface alone; None if the code is not there."""
    with BUILD:
        if (found := _remembered(key, parallel)) is not None:
            return found
        code = cache.default().load(key)
        if code is None:
            return None
        try:
            library = load_kernel(code, symbol)
            compiled = CompiledKernel(interface, library, hash_of(code), key, symbol, parallel, built=False)
        except InternalError:  # whatever it is, it is not this kernel's code
            return None
        _remember(key, parallel, compiled)
        return compiled


def forget_kernels() -> None:
    """Drop the kernels held in memory; those on disk stay."""
    with BUILD:
        _memo.clear()
