"""Search for an OpenMP runtime: one that the process has already loaded, else one that the system has.

Only its C interface is used: `GOMP_parallel`, which GNU's, LLVM's and Intel's runtimes all offer.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_NAMES = (
    "libgomp.so.1",
    "libomp.so.5",
    "libomp.so",
    "libiomp5.so",
    "libomp.dylib",
    "libiomp5.dylib",
    "libgomp.1.dylib",
)
_LOADED = re.compile(r"lib(gomp|iomp5|omp)[-.\w]*\.(so|dylib)[.\d]*")
_FUNCTIONS = ("GOMP_parallel", "omp_get_thread_num")


@dataclass(frozen=True)
class OpenMP:
    """A loaded runtime: the name it was opened by, and the addresses of `_FUNCTIONS` in their order."""

    name: str
    functions: tuple[int, int]


def loaded(maps: Path = Path("/proc/self/maps")) -> Iterator[str]:
    """Yield the OpenMP runtimes that the process has mapped (on Linux; elsewhere none is seen)."""
    try:
        lines = maps.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return
    paths = {line.split(maxsplit=5)[5]: None for line in lines if line.count("/") and "omp" in line}
    for path in paths:
        if _LOADED.fullmatch(os.path.basename(path)):
            yield path


def _searched() -> Iterator[str]:
    """Yield the results of the platform's own search (it starts processes, so it comes last)."""
    from ctypes.util import find_library  # slow to import, and seldom needed

    for name in ("gomp", "omp", "iomp5"):
        if found := find_library(name):
            yield found


def _open(name: str) -> OpenMP | None:
    try:
        library = ctypes.CDLL(name)
        gomp, number = (ctypes.cast(getattr(library, f), ctypes.c_void_p).value for f in _FUNCTIONS)
    except (OSError, AttributeError):
        return None
    return None if gomp is None or number is None else OpenMP(name, (gomp, number))


def _candidates() -> Iterator[str]:
    yield from loaded()
    yield from _NAMES
    yield from _searched()


def find() -> OpenMP | None:
    """Return a usable OpenMP runtime, or None."""
    return next((runtime for name in _candidates() if (runtime := _open(name)) is not None), None)
