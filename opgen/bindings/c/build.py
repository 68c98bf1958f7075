"""From a spec to a C library, in a folder of its own (`publish.py` moves it to the user's).

DIR/include/NAME.h           the interface
DIR/lib/libNAME.so.ABI       the shared library; libNAME.so points to it
DIR/lib/libNAME.a            the static library
DIR/lib/ARCHITECTURE/...     the same for other architectures, or their kernels' objects where no compiler is found
DIR/src/NAME/*.c             the glue, to be read
"""

from __future__ import annotations

import multiprocessing
import platform
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from opgen.bindings.c.compile import Compiled, compile_task
from opgen.bindings.c.header import header_view
from opgen.bindings.c.interface import ABI
from opgen.bindings.c.kernels import (
    TILED,
    X86_LEVELS,
    Bound,
    Special,
    Task,
    levels,
    partly_bound,
    serving,
    specialised,
    task,
)
from opgen.bindings.c.library import LibraryView, library_view
from opgen.bindings.c.link import Tools, archive, compile_sources, link_shared
from opgen.bindings.c.parallel import loop_object
from opgen.bindings.c.render import KernelTable, render_header, render_kernels, render_sources
from opgen.bindings.workplace import write
from opgen.codegen.llvm.target import Target
from opgen.diagnostics import UserError, did_you_mean
from opgen.loop.nodes import Kernel
from opgen.runtime.threads import available_cpus
from opgen.spec.model.model import Module, OpSpec, Specialization

Progress = Callable[[int, int, str], None]
"""Called with the number of kernels that are done, the number of all, and a description of the current one."""


@dataclass(frozen=True)
class Options:
    """Options of a build: `prefix` begins every name (None: the module's name); `ops` None means all."""

    targets: tuple[str, ...] = ()
    ops: tuple[str, ...] | None = None
    prefix: str | None = None
    specials: tuple[Special, ...] = ()
    partial: tuple[tuple[str, Specialization], ...] = ()
    jobs: int = field(default_factory=available_cpus)


@dataclass(frozen=True)
class Built:
    """Results of a build: the paths, the number of kernels and of those that were compiled now."""

    files: tuple[Path, ...]
    kernels: int
    compiled: int


def host_targets() -> tuple[str, ...]:
    """Return all levels of this machine's architecture."""
    return X86_LEVELS if platform.machine() == "x86_64" else ("aarch64",)


def build(module: Module, source: str, folder: Path, options: Options, progress: Progress | None = None) -> Built:
    """Build a module's library into a folder."""
    return _Build(chosen(module, options.ops), source, folder, options, progress or (lambda *_: None)).run()


def chosen(module: Module, names: tuple[str, ...] | None) -> Module:
    """Return the module with some of its ops only, by their names or their functions' names."""
    generics = {n for g in module.generics for n in (g.name, g.function_name)}
    if names is None:
        if module.generics and not module.ops:
            named = _GENERIC.format(name=module.generics[0].name)
            raise UserError(f"all ops of '{module.name}' are generic: {named}")
        return module
    known = {o.name: o for o in module.ops} | {o.function_name: o for o in module.ops}
    for name in names:
        if name in generics and name not in known:
            raise UserError(f"'{name}' is generic: {_GENERIC.format(name=name)}")
        if name not in known:
            hint = did_you_mean(name, known) or f"there is {', '.join(o.name for o in module.ops)}"
            raise UserError(f"no such op '{name}'; {hint}")
    wanted = {known[n].name for n in names}
    return replace(module, ops=tuple(o for o in module.ops if o.name in wanted))


_GENERIC = "a library has forms of fixed ranks (say which with --form, such as --form {name}:INPUT=?,?)"


def public_names(module: Module, prefix: str) -> list[str]:
    """Return every symbol of the library."""
    return [f.name for f in header_view(module, prefix, "").interface.functions]


def _symbol(task: Task | None) -> str | None:
    return None if task is None else task.symbol


class _Build:
    def __init__(self, module: Module, source: str, folder: Path, options: Options, progress: Progress) -> None:
        self.module = module
        self.folder = folder
        self.options = options
        self.progress = progress
        self.prefix = options.prefix or module.name
        self.source = source
        self.view: LibraryView = library_view(module, self.prefix, source)
        self.specials = self._specials()

    def _specials(self) -> list[Bound]:
        """Return calls bound completely, then those bound in part, then the spec's own: the first match is run."""
        kernels, first = self.view.kernels, {o.op.name: o.first for o in self.view.ops}
        found = [specialised(self.module, kernels, first, s) for s in self.options.specials]
        declared = [(o, s) for o in self.module.ops for s in (*self._partial(o), *o.specializations)]
        for op, s in declared:
            found += partly_bound(op, kernels, first[op.name], s)
        return list({(b.number, b.values): b for b in found}.values())

    def _partial(self, op: OpSpec) -> list[Specialization]:
        return [s for name, s in self.options.partial if name == op.name]

    def run(self) -> Built:
        wanted = levels(self.options.targets or host_targets())
        tasks = {(a, level, i): self._task(a, level, kernel, wanted) for a, level, i, kernel in self._all(wanted)}
        unique = list(dict.fromkeys(t for t in tasks.values()))
        compiled = self._compile(unique)
        files = [self._write("include", f"{self.prefix}.h", render_header(self.module, self.prefix, self.source))]
        for architecture, names in wanted.items():
            table = self._table(architecture, names, tasks, compiled)
            symbols = dict.fromkeys(t.symbol for (a, _, _), t in tasks.items() if a == architecture)
            loop, code = loop_object(self.prefix, architecture, Target.from_name(names[0]))
            objects = {loop: code, **{s: compiled[s].code for s in symbols}}
            files += self._library(architecture, table, objects)
        return Built(tuple(files), len(compiled), sum(not c.cached for c in compiled.values()))

    # Kernels --------------------------------------------------------------------------------------

    def _all(self, wanted: Mapping[str, Sequence[str]]) -> list[tuple[str, str, int, Kernel]]:
        """Return every kernel for every level; specialised ones are numbered after the general ones."""
        general = len(self.view.kernels)
        kernels = [v.lowered.kernel for v in self.view.kernels] + [b.kernel for b in self.specials]
        return [
            (a, level, i, k)
            for a, names in wanted.items()
            for level in names
            for i, k in enumerate(kernels)
            if i < general or self.specials[i - general].whole or level in TILED
        ]

    def _task(self, architecture: str, level: str, kernel: Kernel, wanted: Mapping[str, Sequence[str]]) -> Task:
        return task(kernel, serving(kernel, level, wanted[architecture]), self.prefix)

    def _compile(self, tasks: Sequence[Task]) -> dict[str, Compiled]:
        found: dict[str, Compiled] = {}
        self.progress(0, len(tasks), "compiling kernels")
        if self.options.jobs <= 1:
            results = map(compile_task, tasks)
            for done in results:
                found[done.symbol] = done
                self.progress(len(found), len(tasks), "compiling kernels")
            return found
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(self.options.jobs, mp_context=context) as pool:
            for done in pool.map(compile_task, tasks, chunksize=4):
                found[done.symbol] = done
                self.progress(len(found), len(tasks), "compiling kernels")
        return found

    def _table(
        self,
        architecture: str,
        names: Sequence[str],
        tasks: Mapping[tuple[str, str, int], Task],
        compiled: Mapping[str, Compiled],
    ) -> KernelTable:
        count = len(self.view.kernels) + len(self.specials)
        return KernelTable(
            levels=tuple(names),
            symbols=tuple(tuple(_symbol(tasks.get((architecture, n, i))) for n in names) for i in range(count)),
            rooms={s: c.room for s, c in compiled.items() if c.room},
            smalls={s: c.small for s, c in compiled.items() if c.small},
            specials=tuple((b.number, b.values) for b in self.specials),
        )

    # Files ----------------------------------------------------------------------------------------

    def _write(self, where: str, name: str, text: str) -> Path:
        return write(self.folder / where / name, text)

    def _library(self, architecture: str, table: KernelTable, objects: Mapping[str, bytes]) -> list[Path]:
        """Return the libraries of one architecture; only objects if it has no compiler."""
        own = architecture == platform.machine()
        tools = Tools.host() if own else Tools.cross(architecture)
        place = self.folder / "lib" if own else self.folder / "lib" / f"{architecture}-linux-gnu"
        place.mkdir(parents=True, exist_ok=True)
        if tools is None:
            return self._objects(place / "objects", objects)
        src = f"src/{self.prefix}" if own else f"src/{self.prefix}-{architecture}"
        texts = {**render_sources(self.view, self.module, table), "kernels.c": render_kernels(self.view, table)}
        paths = [self._write(src, f"{self.prefix}{'_' if n[0] != '.' else ''}{n}", t) for n, t in texts.items()]
        header = self.folder / "include" / f"{self.prefix}.h"
        self._write(src, header.name, header.read_text(encoding="utf-8"))
        self.progress(0, 0, f"linking for {architecture}")
        with tempfile.TemporaryDirectory(prefix="opgen-link-") as work:
            return self._link(tools, [p for p in paths if p.suffix == ".c"], objects, Path(work), place)

    def _link(
        self, tools: Tools, sources: Sequence[Path], objects: Mapping[str, bytes], work: Path, place: Path
    ) -> list[Path]:
        paths = compile_sources(tools, [s.resolve() for s in sources], work, self.options.jobs)
        paths += self._objects(work, objects)
        shared, static = self._libraries
        link_shared(tools, paths, public_names(self.module, self.prefix), place / shared)
        archive(tools, paths, place / static)
        link = place / f"lib{self.prefix}.so"
        link.unlink(missing_ok=True)
        link.symlink_to(shared)
        return [place / shared, link, place / static]

    @property
    def _libraries(self) -> tuple[str, str]:
        """Return the names of the shared and the static library."""
        return f"lib{self.prefix}.so.{ABI}", f"lib{self.prefix}.a"

    def _objects(self, folder: Path, objects: Mapping[str, bytes]) -> list[Path]:
        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for name, code in objects.items():
            paths.append(folder / f"{name}.o")
            paths[-1].write_bytes(code)
        return paths
