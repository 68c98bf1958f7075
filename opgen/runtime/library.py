"""Object code, loaded into the process.

ORC is used rather than MCJIT: both load a small object in about 0.2 ms, but of a symbol that cannot be resolved ORC
raises an error where MCJIT ends the process.
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING

from opgen.diagnostics import InternalError
from opgen.locks import BUILD
from opgen.runtime import toolchain
from opgen.runtime.elf import Image

if TYPE_CHECKING:
    from llvmlite.binding.orcjit import LLJIT, ResourceTracker

_serial = itertools.count()
_kept: list[Library] = []


class Library:
    """Loaded code.  The addresses are good for as long as this object lives."""

    def __init__(self, tracker: ResourceTracker | Image) -> None:
        self._tracker = tracker

    def address(self, symbol: str) -> int:
        """Where one of the exported symbols is."""
        return int(self._tracker[symbol])


@functools.lru_cache(maxsize=1)
def _jit() -> LLJIT:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.create_lljit_compiler()


def load_library(code: bytes, *symbols: str) -> Library:
    """Link an object file of this machine into the process; `symbols` are those whose addresses will be asked for.

    Without LLVM it is loaded by `opgen.runtime.elf`.  Raises InternalError if the code is no object file, lacks a
    symbol, or needs one that the process does not have.
    """
    if not toolchain.has_llvm():
        return Library(Image(code))
    with BUILD:
        jit = _jit()
        import llvmlite.binding as llvm

        builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        for symbol in symbols:
            builder.export_symbol(symbol)
        try:
            return Library(builder.link(jit, f"opgen.{next(_serial)}"))
        except RuntimeError as error:
            raise InternalError(f"object code with {', '.join(symbols)} cannot be loaded: {error}") from error


def load_object(code: bytes, symbol: str) -> int:
    """The address of a symbol of an object file that is loaded for the rest of the process's life."""
    library = load_library(code, symbol)
    _kept.append(library)
    return library.address(symbol)
