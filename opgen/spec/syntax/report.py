"""The list of mistakes found so far: checking goes on after a mistake, so that all of a file's are told at once."""

from __future__ import annotations

from collections.abc import Iterable

from opgen.diagnostics import Diagnostic, DiagnosticError, Span, did_you_mean
from opgen.spec.syntax.limits import MISTAKES, SUGGESTIONS


class Report:
    """Collects diagnostics; the same mistake at the same place counts once.  Raises them when there are `MISTAKES`."""

    def __init__(self) -> None:
        self._found: dict[Diagnostic, None] = {}
        self._suggested = 0

    def add(self, code: str, message: str, span: Span, help: str | None = None) -> None:
        """Notes a mistake."""
        self.append(Diagnostic(code, message, span, help))

    def append(self, diagnostic: Diagnostic) -> None:
        if len(self._found) >= MISTAKES and diagnostic not in self._found:
            more = Diagnostic("S005", f"there are more mistakes than these {MISTAKES}", diagnostic.span)
            raise DiagnosticError([*in_order(self._found), more])
        self._found.setdefault(diagnostic)

    def unknown(self, what: str, name: str, span: Span, candidates: Iterable[str]) -> None:
        """Notes a name that stands for nothing, with the nearest one that does."""
        self._suggested += 1
        near = did_you_mean(name, candidates) if self._suggested <= SUGGESTIONS else None
        self.add("S012", f"unknown {what} '{name}'", span, near)

    def at_most(self, count: int, limit: int, what: str, span: Span) -> bool:
        """Notes more of something than a spec may hold, `what` in the plural; whether it is within."""
        if count > limit:
            self.add("S005", f"{count:,} {what}: at most {limit:,} are taken on", span)
        return count <= limit

    def stop_beyond(self, count: int, limit: int, what: str, span: Span) -> None:
        """The same; but what is beyond is not looked at: everything found so far is raised."""
        if not self.at_most(count, limit, what, span):
            self.raise_if_any()

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
