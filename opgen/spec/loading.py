"""Loading of spec files: reading, imports, and flattening to one self-contained text."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from opgen import files
from opgen.diagnostics import Diagnostic, DiagnosticError, Source, Span, did_you_mean
from opgen.spec.model import model as m
from opgen.spec.module import check
from opgen.spec.shipped import located
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.format import normalise
from opgen.spec.syntax.limits import FILE_BYTES, FILES, IMPORT_DEPTH
from opgen.spec.syntax.parse import parse
from opgen.spec.syntax.printer import print_file
from opgen.spec.syntax.report import Report

SUFFIX = ".op"
"""The suffix of an imported file: a spec cannot make opgen read any other file on the machine."""

PathLike: TypeAlias = "str | os.PathLike[str]"


def load(paths: PathLike | Iterable[PathLike]) -> m.Module:
    """Return the module of a spec file, or of several merged; imports are relative to the importing file.

    A name without a file, given or imported, means the spec shipped with opgen (`nn_ops.op`, `onnx/gather.op`).

    Raises DiagnosticError with every mistake found in any of the files.
    """
    given = [Path(paths)] if isinstance(paths, str | os.PathLike) else [Path(p) for p in paths]
    return _module(_Loader().files(given), given[0].stem if given else "empty", len(given))


def load_text(text: str, name: str = "<text>", base: PathLike | None = None) -> m.Module:
    """Return the module of a text; `base` is the folder for imports (None: imports are refused)."""
    loader = _Loader()
    loader.add_text(Source(name, normalise(text)), None if base is None else Path(base))
    return _module(loader, Path(name).stem, 1)


def flatten(paths: PathLike | Iterable[PathLike]) -> str:
    """Return one spec text with all imports inlined; it loads to the same ops as the files do."""
    given = [Path(paths)] if isinstance(paths, str | os.PathLike) else [Path(p) for p in paths]
    loader = _Loader().files(given)
    loader.report.raise_if_any()
    items = [i for file in loader.loaded for i in file.items if not isinstance(i, s.ImportDecl)]
    doc = loader.roots[0].doc if len(loader.roots) == 1 else None
    source = loader.roots[0].source if loader.roots else Source("empty", "")
    return print_file(s.File(source, doc, tuple(items)))


def imported(paths: Iterable[PathLike]) -> set[Path]:
    """Return the files that some of these import, links followed; an unreadable file imports nothing."""
    return {path for given in paths for path in _Loader().files([Path(given)]).imported}


def _module(loader: _Loader, name: str, wanted: int) -> m.Module:
    report = loader.report
    if len(loader.roots) < wanted or len(report):
        report.raise_if_any()
    docs = [f.doc.value for f in loader.roots if f.doc is not None]
    try:
        module = check(report, name, "\n\n".join(docs), loader.loaded)
    except RecursionError:
        source = loader.roots[0].source
        raise DiagnosticError([Diagnostic("S003", "this nests too deeply", Span(source, 1, 1, 1, 2))]) from None
    report.raise_if_any()
    return replace(module, digest=_digest(f.source.text for f in loader.loaded))


def _digest(texts: Iterable[str]) -> str:
    """Return the sha256 of texts in their order."""
    found = hashlib.sha256()
    for text in texts:
        found.update(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
    return found.hexdigest()


class _Loader:
    """Reader of files and their imports, each once; `loaded` has imported files before those that import them."""

    def __init__(self) -> None:
        self.report = Report()
        self.loaded: list[s.File] = []
        self.roots: list[s.File] = []
        self.imported: set[Path] = set()
        self._done: dict[Path, s.File | None] = {}
        self._chain: list[Path] = []

    def files(self, paths: Sequence[Path]) -> _Loader:
        for path in paths:
            file = self._file(path, str(path), None)
            if file is not None:
                self.roots.append(file)
        return self

    def add_text(self, source: Source, base: Path | None) -> None:
        file = self._parsed(source, base)
        if file is not None:
            self.roots.append(file)

    def _file(self, path: Path, shown: str, importer: Span | None) -> s.File | None:
        try:
            path = located(path, shown)
            real = path.resolve()
        except (OSError, RuntimeError, ValueError) as error:
            self.report.append(Diagnostic("S002", f"cannot read '{shown}': {error}", importer))
            return None
        if importer is not None:
            self.imported.add(real)
        if real in self._chain:
            names = [p.name for p in self._chain[self._chain.index(real) :]]
            circle = " -> ".join([*names, real.name])
            self.report.append(Diagnostic("S022", f"'{shown}' imports itself: {circle}", importer))
            return None
        if real in self._done:
            return self._done[real]
        if importer is not None and not self._may_import(real, shown, importer):
            return None
        text = self._read(real, shown, importer)
        self._chain.append(real)
        file = None if text is None else self._parsed(Source(str(path), text), path.parent)
        self._chain.pop()
        self._done[real] = file
        return file

    def _may_import(self, real: Path, shown: str, importer: Span) -> bool:
        """Report an import without the suffix of specs (links followed), or beyond the limits of a module."""
        before = len(self.report)
        if real.suffix != SUFFIX:
            help = f"what is imported has a name that ends in {SUFFIX}"
            self.report.add("S002", f"cannot import '{shown}': it is no spec", importer, help)
        self.report.at_most(len(self._chain) + 1, IMPORT_DEPTH, "files import each other in a row", importer)
        self.report.at_most(len(self._done) + 1, FILES, "files are imported", importer)
        return len(self.report) == before

    def _read(self, path: Path, shown: str, importer: Span | None) -> str | None:
        try:
            raw = files.content(path, FILE_BYTES)
        except files.FileRefusedError as error:
            near = sorted(p.name for p in path.parent.glob(f"*{SUFFIX}")) if os.path.isdir(path.parent) else []
            help = None if os.path.exists(path) else did_you_mean(path.name, near)  # also False for invalid names
            self.report.append(Diagnostic("S002", f"cannot read '{shown}': {error.reason}", importer, help))
            return None
        try:
            return normalise(raw.decode("utf-8"))
        except UnicodeDecodeError as error:
            lines = raw[: error.start].decode("utf-8").split("\n")
            line, column = len(lines), len(lines[-1]) + 1
            span = Span(Source(str(path), raw.decode("utf-8", "replace")), line, column, line, column + 1)
            # Imported bytes are not shown: the importer may want to see a file that is not a spec.
            self.report.append(Diagnostic("S002", f"'{shown}' is not UTF-8", span if importer is None else importer))
            return None

    def _parsed(self, source: Source, base: Path | None) -> s.File | None:
        """Parse a file, after loading its imports."""
        try:
            file = parse(source)
        except DiagnosticError as error:
            for diagnostic in error.diagnostics:
                self.report.append(diagnostic)
            return None
        for item in file.items:
            if not isinstance(item, s.ImportDecl):
                continue
            shown = item.path.value
            if base is None:
                self.report.add("S002", f"cannot import '{shown}': this text lies in no folder", item.path.span)
            else:
                self._file(base / shown, shown, item.path.span)
        self.loaded.append(file)
        return file
