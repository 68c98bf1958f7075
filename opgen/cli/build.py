"""`opgen build`: specs and models to C and C++ libraries, compiled ahead of time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opgen import files
from opgen.cli.models import DIMS, SHAPES, is_model, kinds_of, read_model
from opgen.cli.options import FOLDER, OVERWRITE, SPECS, spec_files
from opgen.cli.progress import bar
from opgen.diagnostics import UserError, did_you_mean

if TYPE_CHECKING:
    from opgen.bindings.c.build import Options
    from opgen.bindings.c.kernels import Special
    from opgen.bindings.libraries import Built, Java
    from opgen.spec.model.model import Module, OpSpec, Specialization


@click.command("build")
@SPECS
@click.option("-o", "--output", "folder", required=True, type=FOLDER, help="The folder to write to.")
@click.option("--target", "targets", help="Levels of CPUs, with commas: x86-64-v2, x86-64-v3, x86-64-v4, aarch64.")
@click.option("--ops", help="Build only these ops, with commas.")
@click.option("--form", "forms", multiple=True,
              help="Forms of generic ops: [NAME=]OP:INPUT=?,?:..., or a file with one a line.")  # fmt: skip
@click.option("--specialize", "specials", multiple=True,
              help="Calls that get kernels of their own: OP:NAME=VALUE:..., or a file with one a line.")  # fmt: skip
@click.option("--prefix", help="What every name begins with; the spec's name if not given.")
@click.option("--java", is_flag=True, help="Also a Java API: sources and, with a JDK, a jar.")
@click.option("--java-package", "package", help="The package of Java's classes; the prefix if not given.")
@SHAPES
@DIMS
@click.option("--jobs", type=click.IntRange(1, 256), help="How many processes; all processors if not given.")
@OVERWRITE
def command(
    specs: tuple[Path, ...],
    folder: Path,
    targets: str | None,
    ops: str | None,
    forms: tuple[str, ...],
    specials: tuple[str, ...],
    prefix: str | None,
    java: bool,
    package: str | None,
    shapes: tuple[str, ...],
    dims: tuple[str, ...],
    jobs: int | None,
    overwrite: bool,
) -> None:
    """Compiles the ops of each spec file, or a model, into a shared and a static library with a C interface.

    SPECS are files or folders of `.op` files.  Kernels are built for all sizes and types, for several levels of CPUs
    in one library; kernels that were built before come from the cache.  Of a generic op there are the forms that are
    asked for: `--form OP:INPUT=?,?` is that of matrices, `--form NAME=OP:INPUT=?,?` gives it a name of its own, and
    `--form OP` is that of its first example.  Or it is one model in ONNX's format: its library holds the program
    for one combination of sizes, for CPUs like this machine's, and its weights lie in a file.
    """
    if package is not None and not java:
        raise UserError("--java-package is for --java")
    if package is not None:
        _check_package(package)
    from opgen.bindings.libraries import Java

    wanted = Java(package) if java else None
    if any(is_model(path.name) for path in specs):
        unfit = {"--target": targets, "--ops": ops, "--form": forms, "--specialize": specials, "--jobs": jobs}
        _build_model(specs, folder, prefix, shapes, dims, wanted, overwrite, [o for o, v in unfit.items() if v])
        return
    if shapes or dims:
        raise UserError("--shape and --dim are for models")
    from opgen.bindings.c.build import Options

    options = Options(
        targets=tuple(t.strip() for t in targets.split(",")) if targets else (),
        ops=tuple(o.strip() for o in ops.split(",")) if ops else None,
        prefix=prefix,
    )
    if jobs is not None:
        options = replace(options, jobs=jobs)
    ready = list(_ready(spec_files(specs), forms, specials, options))
    if java and package is None:
        for _, module, chosen in ready:
            _check_package(chosen.prefix or module.name)
    for path, module, chosen in ready:
        _build_ops(path, module, folder, chosen, wanted, overwrite)


def _ready(
    paths: list[Path], forms: tuple[str, ...], specials: tuple[str, ...], options: Options
) -> Iterator[tuple[Path, Module, Options]]:
    """Yield the spec files with ops, their ops and build options; unknown ops are refused here."""
    from opgen.bindings.c.build import chosen
    from opgen.cli.built_forms import forms_of_each, with_forms
    from opgen.grad.load import load

    read = [load(path) for path in paths]
    modules = [with_forms(module, texts) for module, texts in zip(read, forms_of_each(read, forms), strict=True)]
    for path, before, module in zip(paths, read, modules, strict=True):
        if not module.ops and not module.generics:
            continue
        if module.ops and module.generics and options.ops is None and module == before:
            click.echo(f"{path}: {len(module.generics)} generic ops are left out: --form asks for some", err=True)
        chosen(module, options.ops)
        found = list(_specials(module, modules, specials))
        yield (
            path,
            module,
            replace(
                options,
                specials=tuple(s for s in found if not isinstance(s, tuple)),
                partial=tuple(s for s in found if isinstance(s, tuple)),
            ),
        )


def _build_ops(path: Path, module: Module, folder: Path, options: Options, java: Java | None, overwrite: bool) -> None:
    """Build the library of a spec file's ops."""
    from opgen.bindings.libraries import build_ops

    begin = time.perf_counter()
    with bar("reading specs") as progress:
        built = build_ops(module, path.name, folder, options, java, overwrite, progress)
    _said(built, time.perf_counter() - begin)


def _check_package(package: str) -> None:
    from opgen.bindings.java.names import check_package

    check_package(package)


def _said(built: Built, seconds: float) -> None:
    """Print the files that were made, and those that were not."""
    for file in built.files:
        click.echo(f"wrote  {file}")
    if built.note is not None:
        click.echo(built.note, err=True)
    click.echo(f"{built.made}, in {seconds:.1f} s")
    _sizes(built.files, (".so", ".a", ".weights", ".jar"))


def _build_model(
    paths: tuple[Path, ...],
    folder: Path,
    prefix: str | None,
    shapes: tuple[str, ...],
    dims: tuple[str, ...],
    java: Java | None,
    overwrite: bool,
    unfit: list[str],
) -> None:
    """Build the library of a model."""
    import opgen
    from opgen.bindings.libraries import build_model
    from opgen.bindings.programs.view import identifier

    if len(paths) > 1:
        raise UserError(f"a model is built alone, given {len(paths)} files")
    if unfit:
        raise UserError(f"{', '.join(unfit)}: not for models")
    (path,) = paths
    begin = time.perf_counter()
    with bar(f"reading {path.name}") as progress:
        model = read_model(str(path))
        graph = opgen.compile(model).stages(kinds_of(model, shapes, dims)).last
        named = prefix or identifier(path.stem).lower()
        built = build_model(graph, path.name, folder, named, java, overwrite, progress)
    _said(built, time.perf_counter() - begin)


def _sizes(written: Iterable[Path], suffixes: tuple[str, ...]) -> None:
    """Print the sizes of files of some kinds."""
    for file in (f for f in written if f.suffix in suffixes):
        click.echo(f"{file.stat().st_size / 1e6:.1f} MB  {file}")


def _specials(
    module: Module, modules: Sequence[Module], texts: tuple[str, ...]
) -> Iterator[Special | tuple[str, Specialization]]:
    """Yield the calls of a module's ops that get kernels of their own; other modules handle those of their ops."""
    known = {name for other in modules for name in _ops(other)}
    for text in texts:
        path = Path(text)
        lines = files.text(path).splitlines() if path.exists() else [text]
        for line in lines:
            call = line.partition("#")[0].strip()
            name = call.partition(":")[0]
            if call and name in _ops(module):
                yield _special(module, call)
            elif call and name not in known:
                hint = did_you_mean(name, known)
                raise UserError(f"--specialize {call}: no such op '{name}'" + (f"; {hint}" if hint else ""))


def _ops(module: Module) -> dict[str, OpSpec]:
    """Return a module's ops by their names and their functions' names."""
    return {o.name: o for o in module.ops} | {o.function_name: o for o in module.ops}


def _special(module: Module, text: str) -> Special | tuple[str, Specialization]:
    """Parse `OP:NAME=VALUE:...`, where a name is a tensor, a vector of sizes, a type variable or an attribute.

    Without any shape, it may also be a dimension, and names that are missing are open.
    """
    from opgen.bindings.c.kernels import Special
    from opgen.cli.arguments import partial_call, read_arguments
    from opgen.spec.model.model import Sizes

    name, *parts = text.split(":")
    op = _ops(module)[name]
    tensors = {t.name for t in op.tensors}
    vectors = {i.name for i in op.inputs if isinstance(i, Sizes)}
    types = {v.name for v in op.type_variables}
    if not any(part.partition("=")[0] in tensors | vectors for part in parts):
        return op.name, partial_call(op, f"--specialize {text}", parts)
    groups: dict[str, list[str]] = {"dtype": [], "shape": [], "sizes": [], "attr": []}
    for part in parts:
        key = part.partition("=")[0]
        kind = "shape" if key in tensors else "sizes" if key in vectors else "dtype" if key in types else "attr"
        groups[kind].append(part)
    found = read_arguments(op, groups["dtype"], groups["shape"], groups["sizes"], groups["attr"])
    return Special(op.name, found.types, found.shapes, found.sizes, found.attrs)
