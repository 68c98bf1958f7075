"""Loading of kernels' code, with an allocator for temporary buffers that keeps large blocks."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping

from opgen.locks import BUILD
from opgen.runtime import threads
from opgen.runtime.memory import temporaries_ir
from opgen.runtime.memory.available import available
from opgen.runtime.native.library import Library, load_library


def load_kernel(code: bytes, symbol: str, owner: str = "") -> Library:
    """Load the object code of a kernel.  Raises InternalError as `load_library` does."""
    return load_library(code, symbol, given=_functions(), owner=owner)


def _functions() -> Mapping[str, int]:
    """Return the addresses that kernels call for malloc and free."""
    with BUILD:
        library = _library()
        return {"malloc": library.address(temporaries_ir.TAKE), "free": library.address(temporaries_ir.GIVE)}


@functools.cache
def _library() -> Library:
    """Return the allocator's code, built on a machine's first use."""
    names = (temporaries_ir.TAKE, temporaries_ir.GIVE, temporaries_ir.MOST)
    library = load_library(threads.object_code(temporaries_ir.IR), *names)
    most = ctypes.c_int64.from_address(library.address(temporaries_ir.MOST))
    most.value = min(temporaries_ir.KEPT, available() // temporaries_ir.SHARE)
    return library
