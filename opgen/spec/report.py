"""The list of mistakes found so far: checking goes on after a mistake, so that all of a file's are told at once."""

from __future__ import annotations

from collections.abc import Iterable

from opgen.diagnostics import Diagnostic, DiagnosticError, Span, did_you_mean
from opgen.spec.codes import known


class Report:
    """Collects diagnostics; the same mistake at the same place counts once."""

    def __init__(self) -> None:
        self._found: list[Diagnostic] = []

    def add(self, code: str, message: str, span: Span, help: str | None = None) -> None:
        """Notes a mistake."""
        self.append(Diagnostic(known(code), message, span, help))

    def append(self, diagnostic: Diagnostic) -> None:
        if diagnostic not in self._found:
            self._found.append(diagnostic)

    def unknown(self, what: str, name: str, span: Span, candidates: Iterable[str]) -> None:
        """Notes a name that stands for nothing, with the nearest one that does."""
        self.add("S012", f"unknown {what} '{name}'", span, did_you_mean(name, candidates))

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return tuple(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def raise_if_any(self) -> None:
        """Raises everything found, in the order of the text, file by file; nothing where nothing was."""
        if self._found:
            raise DiagnosticError(in_order(self._found))


def in_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Diagnostics by place; files in the order in which they first appear."""
    found = list(diagnostics)
    files: dict[str, int] = {}
    for diagnostic in found:
        if diagnostic.span is not None:
            files.setdefault(diagnostic.span.source.name, len(files))

    def key(diagnostic: Diagnostic) -> tuple[int, int, int]:
        span = diagnostic.span
        return (-1, 0, 0) if span is None else (files[span.source.name], span.line, span.column)

    return sorted(found, key=key)
