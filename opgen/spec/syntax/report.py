"""The list of mistakes found so far: checks continue after a mistake, so that all are reported at once."""

from __future__ import annotations

from collections.abc import Iterable

from opgen.diagnostics import Diagnostic, DiagnosticError, Span, did_you_mean
from opgen.spec.syntax.limits import MISTAKES, SUGGESTIONS


class Report:
    """Collector of diagnostics; duplicates at one place count once.  It raises them when there are `MISTAKES`."""

    def __init__(self) -> None:
        self._found: dict[Diagnostic, None] = {}
        self._suggested = 0

    def add(self, code: str, message: str, span: Span, help: str | None = None) -> None:
        """Report a mistake."""
        self.append(Diagnostic(code, message, span, help))

    def append(self, diagnostic: Diagnostic) -> None:
        if len(self._found) >= MISTAKES and diagnostic not in self._found:
            more = Diagnostic("S005", f"there are more mistakes than these {MISTAKES}", diagnostic.span)
            raise DiagnosticError([*in_order(self._found), more])
        self._found.setdefault(diagnostic)

    def unknown(self, what: str, name: str, span: Span, candidates: Iterable[str]) -> None:
        """Report an unknown name, with the nearest known one."""
        self._suggested += 1
        near = did_you_mean(name, candidates) if self._suggested <= SUGGESTIONS else None
        self.add("S012", f"unknown {what} '{name}'", span, near)

    def at_most(self, count: int, limit: int, what: str, span: Span) -> bool:
        """Report a count above a limit (`what` is a plural noun); return True if it is within."""
        if count > limit:
            self.add("S005", f"{count:,} {what}: at most {limit:,} are taken on", span)
        return count <= limit

    def stop_beyond(self, count: int, limit: int, what: str, span: Span) -> None:
        """Report a count above a limit as `at_most` does, then raise everything found so far."""
        if not self.at_most(count, limit, what, span):
            self.raise_if_any()

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return tuple(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def raise_if_any(self) -> None:
        """Raise everything found, file by file and in the order of the text; do nothing if nothing was found."""
        if self._found:
            raise DiagnosticError(in_order(self._found))


def in_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Sort diagnostics by place; files keep the order of their first diagnostic."""
    found = list(diagnostics)
    files: dict[str, int] = {}
    for diagnostic in found:
        if diagnostic.span is not None:
            files.setdefault(diagnostic.span.source.name, len(files))

    def key(diagnostic: Diagnostic) -> tuple[int, int, int]:
        span = diagnostic.span
        return (-1, 0, 0) if span is None else (files[span.source.name], span.line, span.column)

    return sorted(found, key=key)
