"""Kernels made by all processors at once, each once.

Where several kernels have to be built, other processes help (`opgen.graph.worker`); this one builds, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from opgen.graph.kernels import KernelCode, Wanted, kept, loaded, make

Progress: TypeAlias = "Callable[[int, int, str], None]"
"""Told how many kernels are done, of how many, and what is being done."""

DOING = "compiling kernels"


def made(wants: Sequence[Wanted], progress: Progress | None = None) -> Mapping[str, KernelCode]:
    """The kernel for each key that is wanted: from the cache, or built."""
    told = progress or (lambda *_: None)
    unique = {want.key: want for want in wants}
    found = {key: code for key, want in unique.items() if (code := kept(want)) is not None}
    told(len(found), len(unique), DOING)
    for key, want in unique.items():
        if key not in found:
            found[key], content = make(want)
            loaded(found[key], content)
            told(len(found), len(unique), DOING)
    return found
