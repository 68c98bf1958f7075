"""Object code, loaded into the process.

Object files for x86-64 are loaded by `opgen.runtime.native.elf`: in 0.1 ms, into 6 KiB for a small kernel, all freed
later.  Others are loaded by LLVM's ORC, which takes 0.2 ms and 44 KiB, and keeps 10 of them for each library that was
ever loaded.  (MCJIT ends the process for a symbol that cannot be resolved, where ORC raises an error.)
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from opgen.compiler import toolchain
from opgen.diagnostics import InternalError
from opgen.locks import BUILD
from opgen.runtime.native.elf import Image

if TYPE_CHECKING:
    from llvmlite.binding.orcjit import LLJIT, ResourceTracker

_serial = itertools.count()
_kept: list[Library] = []


class Library:
    """Loaded code.  The addresses are good for as long as this object lives."""

    def __init__(self, tracker: ResourceTracker | Image) -> None:
        self._tracker = tracker

    def address(self, symbol: str) -> int:
        """Return the address of one of the exported symbols."""
        return int(self._tracker[symbol])


@functools.lru_cache(maxsize=1)
def _jit() -> LLJIT:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.create_lljit_compiler()


def load_library(code: bytes, *symbols: str, given: Mapping[str, int] | None = None, owner: str = "") -> Library:
    """Link an object file of this machine into the process; `symbols` are those whose addresses will be read.

    The functions that it calls are resolved in the process, except those `given` by their addresses.  A profiler shows
    its functions under the name of their `owner`, such as an op (`opgen.runtime.native.perf_map`).

    Raises InternalError if the code is not an object file, lacks a symbol, or needs one that the process does not have.
    """
    try:
        library = Library(Image(code, symbols, given or {}))
    except InternalError:
        if not toolchain.has_llvm():
            raise
        library = _linked(code, symbols, given or {})
    if os.environ.get("OPGEN_PERF"):
        from opgen.runtime.native import perf_map

        perf_map.note(code, symbols[0], library.address(symbols[0]), owner)
    return library


def _linked(code: bytes, symbols: Sequence[str], given: Mapping[str, int]) -> Library:
    """Return code that LLVM loads."""
    with BUILD:
        jit = _jit()
        import llvmlite.binding as llvm

        builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        for name, address in given.items():
            builder.import_symbol(name, address)
        for symbol in symbols:
            builder.export_symbol(symbol)
        try:
            return Library(builder.link(jit, f"opgen.{next(_serial)}"))
        except RuntimeError as error:
            raise InternalError(f"object code with {', '.join(symbols)} cannot be loaded: {error}") from error


def load_object(code: bytes, symbol: str) -> int:
    """Return the address of a symbol of an object file that is loaded for the rest of the process's life."""
    library = load_library(code, symbol)
    _kept.append(library)
    return library.address(symbol)
