"""The number of threads that a kernel uses, and the threading runtime.

The number is that of the processors the process may run on, unless OPGEN_NUM_THREADS, OMP_NUM_THREADS or
`set_num_threads` say otherwise.  The runtime is a pool of persistent POSIX threads, which spin some 50 us, then sleep.
OPGEN_THREADING (`openmp`, `pthread`, `serial`) selects another.  OpenMP's runtimes are not the default: their threads
spin for milliseconds before they sleep, and each waits for all others.  On a machine with other work, a model of 25 ms
took a second.  A forked child has a new pool: OpenMP's threads do not survive a fork.  The choice never changes a
result: the iterations of a loop are independent.
"""

from __future__ import annotations

import atexit
import ctypes
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from opgen.cache import entries as cache
from opgen.cache.settings import shown, whole_number
from opgen.compiler import toolchain
from opgen.compiler.keys import code_identity
from opgen.diagnostics import UserError, did_you_mean
from opgen.locks import BUILD, Lock
from opgen.runtime.native import parallel_ir, pool_ir
from opgen.runtime.native.library import Library, load_library
from opgen.runtime.threads import openmp

if TYPE_CHECKING:
    from opgen.codegen.llvm.target import Target

Means = Literal["openmp", "pthread", "serial"]
MAX_THREADS = pool_ir.MAX_THREADS
_MODES: dict[Means, int] = {
    "serial": parallel_ir.SERIAL,
    "openmp": parallel_ir.OPENMP,
    "pthread": parallel_ir.PTHREAD,
}


class ThreadingError(UserError, ValueError):
    """A number of threads, or a threading runtime, that is not available."""


class Workers:
    """The pool of a loaded parallel loop."""

    def __init__(self, library: Library) -> None:
        self.memory = pool_ir.Pool.from_address(library.address(pool_ir.POOL))
        self._prepare = ctypes.CFUNCTYPE(None, ctypes.c_int32)(library.address(pool_ir.PREPARE))
        self._dismiss = ctypes.CFUNCTYPE(None)(library.address(pool_ir.DISMISS))

    def prepare(self) -> None:
        """Reset it to a pool without workers, whatever its state."""
        self._prepare(available_cpus())

    def dismiss(self) -> None:
        """End the workers, which finish their current piece; a loop that runs afterwards has none."""
        self._dismiss()


@dataclass(frozen=True)
class ParallelFor:
    """The loaded parallel loop: its address (word 0 of a kernel's arguments; 0: none), the runtime, and its library."""

    address: int
    means: Means
    openmp: openmp.OpenMP | None = None
    table: ctypes.Array[ctypes.c_int64] | None = None
    pool: Workers | None = None
    library: Library | None = None


_count: int | None = None
GENERATION = ctypes.c_int64(0)
"""`generation`, where machine code can read it."""
_HELD = 1 << 62
"""The bit of GENERATION that is set while launchers are held back."""
_generation_lock = Lock()
_parallel: ParallelFor | None = None
_forked = False


# The number of threads -------------------------------------------------------------------------------------------


def available_cpus() -> int:
    """Return the number of processors that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _checked(value: int, source: str) -> int:
    if not 1 <= value <= MAX_THREADS:
        given = value if value.bit_length() < 64 else f"an integer of {value.bit_length()} bits"
        raise ThreadingError(f"{source}: expected a number of threads from 1 to {MAX_THREADS}, given {given}")
    return value


def _from_environment() -> int:
    if text := os.environ.get("OPGEN_NUM_THREADS", "").strip():
        count = whole_number(text)
        if count is None:
            raise ThreadingError(
                f"OPGEN_NUM_THREADS: expected a number of threads from 1 to {MAX_THREADS}, given {shown(text)}"
            )
        return _checked(count, "OPGEN_NUM_THREADS")
    first = whole_number(os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip())
    if first:
        return min(first, MAX_THREADS)
    return min(available_cpus(), MAX_THREADS)


def get_num_threads() -> int:
    """Return the number of threads that a kernel is given."""
    global _count
    if _count is None:
        _count = _from_environment()
    return _count


def set_num_threads(n: int) -> None:
    """Give kernels `n` threads (1 to 1024) from now on, in this process."""
    global _count
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise ThreadingError(f"set_num_threads: expected an integer, given {n!r}")
    _count = _checked(n.__index__(), "set_num_threads")
    with _generation_lock:
        GENERATION.value += 1


def generation() -> int:
    """Return a number that changes whenever `set_num_threads` is called: earlier preparations are then out of date."""
    return GENERATION.value & ~_HELD


def differ(held: bool) -> None:
    """Make GENERATION differ from the value of every launcher, or undo that."""
    with _generation_lock:
        GENERATION.value = GENERATION.value | _HELD if held else GENERATION.value & ~_HELD


# The means -------------------------------------------------------------------------------------------------------


def _pthread_functions() -> tuple[int, ...] | None:
    """Return the addresses of `PTHREAD_FUNCTIONS`, and a key for a word of each thread's; None if unavailable."""
    key = ctypes.c_uint32()
    try:
        process = ctypes.CDLL(None)
        functions = [getattr(process, f"pthread_{name}") for name in pool_ir.PTHREAD_FUNCTIONS]
        failed = process.pthread_key_create(ctypes.byref(key), None)
    except (OSError, AttributeError, TypeError):
        return None
    addresses = [ctypes.cast(f, ctypes.c_void_p).value or 0 for f in functions]
    return None if failed or 0 in addresses else (*addresses, key.value)


def requested() -> Means | None:
    """Return the runtime that OPGEN_THREADING requests, or None if it is not set."""
    text = os.environ.get("OPGEN_THREADING", "").strip()
    if not text:
        return None
    for means in _MODES:
        if text == means:
            return means
    hint = did_you_mean(text, _MODES)
    raise ThreadingError(
        f"OPGEN_THREADING: expected openmp, pthread or serial, given {text!r}" + (f"; {hint}" if hint else "")
    )


def _choose() -> tuple[Means, openmp.OpenMP | None, tuple[int, ...] | None]:
    asked = requested()
    if asked == "serial":
        return "serial", None, None
    pthread = _pthread_functions()
    runtime = openmp.find() if asked == "openmp" else None
    if asked == "openmp" and runtime is None:
        raise ThreadingError("OPGEN_THREADING=openmp, but no OpenMP runtime (libgomp, libomp, libiomp5) can be loaded")
    if runtime is not None and pthread is not None and not _forked:
        return "openmp", runtime, pthread
    return ("pthread" if pthread is not None else "serial"), runtime, pthread


def object_code(ir: str, target: Target | None = None) -> bytes:
    """Return the object code of LLVM IR, for this machine unless a target is given, kept in the cache."""
    target = toolchain.host() if target is None else target
    key = cache.key_of(code_identity(target, ir))
    store = cache.default()
    code = store.load(key)
    if code is None:
        code = toolchain.object_code(ir, target)
        store.store(key, code)
    return code


def _load() -> ParallelFor:
    means, runtime, pthread = _choose()
    if means == "serial":
        return ParallelFor(0, means, runtime)
    library = load_library(object_code(parallel_ir.text()), *parallel_ir.SYMBOLS)
    table = (ctypes.c_int64 * pool_ir.TABLE_WORDS).from_address(library.address(pool_ir.TABLE))
    table[1:3] = list(runtime.functions) if runtime is not None else [0, 0]
    table[pool_ir.FIRST_FUNCTION :] = list(pthread or [0] * (pool_ir.TABLE_WORDS - pool_ir.FIRST_FUNCTION))
    table[0] = _MODES[means]
    pool = Workers(library)
    if pthread is not None:
        pool.prepare()
        atexit.register(pool.dismiss)
    return ParallelFor(library.address(parallel_ir.FUNCTION), means, runtime, table, pool, library)


def parallel_for() -> ParallelFor:
    """Return the parallel loop, loaded on first use (and built on a machine's first use)."""
    global _parallel
    if _parallel is None:
        with BUILD:
            if _parallel is None:
                _parallel = _load()
    return _parallel


def means() -> Means:
    """Return the runtime that runs loops in parallel now."""
    loaded = parallel_for()
    if loaded.table is None:
        return loaded.means
    mode = loaded.table[0]
    return next(name for name, number in _MODES.items() if number == mode)


def _after_fork() -> None:
    """Leave OpenMP and the workers alone in a forked child; the address that kernels hold stays good."""
    global _forked
    _forked = True
    if _parallel is not None and _parallel.table is not None and _parallel.pool is not None:
        _parallel.table[0] = parallel_ir.PTHREAD if _parallel.table[pool_ir.FIRST_FUNCTION] else parallel_ir.SERIAL
        if _parallel.table[pool_ir.FIRST_FUNCTION]:
            _parallel.pool.prepare()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
