"""The C library of a module and the C++ API over it, in one folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from opgen.bindings.c.build import Built, Options, Progress, build, chosen
from opgen.bindings.cpp.render import render_cpp
from opgen.bindings.files import update
from opgen.spec.model import Module


def build_libraries(
    module: Module, source: str, folder: Path, options: Options, progress: Progress | None = None
) -> Built:
    """Build the C library, then write the C++ header and what other build systems need to find both."""
    texts = render_cpp(chosen(module, options.ops), options.prefix, source)
    built = build(module, source, folder, options, progress)
    for name, text in texts.items():
        update(folder / name, text)
    return replace(built, files=(*built.files, *(folder / name for name in texts)))
