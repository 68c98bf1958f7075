"""Kernels in the process, each once, by the key of its object code."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from opgen.locks import BUILD
from opgen.runtime.library import Library, load_library

LOADED = 1024
"""How many kernels stay loaded when no program holds them."""


@dataclass(frozen=True)
class LoadedKernel:
    """A kernel's address, good for as long as this object lives."""

    address: int
    library: Library


_loaded: OrderedDict[str, LoadedKernel] = OrderedDict()
"""By the key of the code, those used last at the end."""


def loaded_code(key: str, symbol: str, code: bytes) -> LoadedKernel:
    """A kernel in the process, loaded if it is not there yet."""
    with BUILD:
        found = remembered(key)
        if found is None:
            library = load_library(code, symbol)
            found = _loaded[key] = LoadedKernel(library.address(symbol), library)
            while len(_loaded) > LOADED:
                _loaded.popitem(last=False)
        return found


def remembered(key: str) -> LoadedKernel | None:
    """A kernel that is in the process; None if it is not."""
    with BUILD:
        found = _loaded.get(key)
        if found is not None:
            _loaded.move_to_end(key)
        return found
