"""Whole libraries in the user's folder: all that is made of a module of ops, or of a model, for all its languages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from opgen.bindings.c import build as c
from opgen.bindings.c.build import Options, Progress, chosen
from opgen.bindings.c.interface import ABI
from opgen.bindings.c.library import check_prefix
from opgen.bindings.cpp.render import render_cpp
from opgen.bindings.java import build as java_of_ops
from opgen.bindings.programs import build as programs
from opgen.bindings.programs import java as java_of_models
from opgen.bindings.publish import output
from opgen.bindings.workplace import write
from opgen.graph.ir.nodes import Graph
from opgen.spec.model.model import Module


@dataclass(frozen=True)
class Java:
    """The wish for a Java API, in a package (None: the library's prefix)."""

    package: str | None = None


@dataclass(frozen=True)
class Built:
    """The files, a description of their source, and a sentence on the files that were not made."""

    files: tuple[Path, ...]
    made: str
    note: str | None = None


def build_ops(
    module: Module,
    source: str,
    folder: Path,
    options: Options,
    java: Java | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Built:
    """Build the C library, the C++ header, and the package files of both for other build systems."""
    name = options.prefix or module.name
    check_prefix(name)
    texts = render_cpp(chosen(module, options.ops), options.prefix, source)
    with output(folder, name, source, overwrite) as out:
        out.require_owned([*_names(name, f"so.{ABI}", java), *texts])
        built = c.build(module, source, out.tree, options, progress)
        files = [*built.files, *(write(out.tree / path, text) for path, text in texts.items())]
        note = None
        if java is not None:
            ops = chosen(module, options.ops)
            more = java_of_ops.build_java(ops, source, out.tree, options.prefix, java.package, progress)
            files, note = [*files, *more.files], more.note
    made = f"{_counted(built.kernels, 'kernel')}, {built.compiled} of them compiled now"
    return Built(out.placed(files), made, note)


def build_model(
    graph: Graph,
    source: str,
    folder: Path,
    prefix: str,
    java: Java | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Built:
    """Build the library of a model's graph."""
    programs.require_prefix(prefix)
    with output(folder, prefix, source, overwrite) as out:
        out.require_owned([*_names(prefix, "so", java), f"share/{prefix}.weights", f"src/{prefix}/{prefix}.c"])
        built = programs.build_program(graph, source, out.tree, prefix, progress)
        files, note = built.files, None
        if java is not None:
            more = java_of_models.build_java(built.view, out.tree, java.package, progress)
            files, note = (*files, *more.files), more.note
    steps, kernels = len(built.program.entry.launches), len(built.program.kernels)
    return Built(out.placed(files), f"{_counted(steps, 'step')} by {_counted(kernels, 'kernel')}", note)


def _names(prefix: str, shared: str, java: Java | None) -> Iterator[str]:
    """Yield the files that every build makes."""
    yield from (f"{prefix}.built", f"include/{prefix}.h", f"include/{prefix}.hpp")
    yield from (f"lib/lib{prefix}.{shared}", f"lib/lib{prefix}.a")
    if java is not None:
        yield from (f"lib/{prefix}.jar", f"lib/lib{prefix}_jni.so")


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
