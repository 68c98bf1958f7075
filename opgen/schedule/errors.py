"""Refusals of steps that cannot be taken, with their reasons."""

from __future__ import annotations

from opgen.diagnostics import Diagnostic, DiagnosticError, Span


class ScheduleError(DiagnosticError):
    """A step that is illegal for the kernel, or a schedule's text that cannot be read."""

    def __init__(self, message: str, help: str | None = None, span: Span | None = None) -> None:
        self.message = message
        self.help = help
        super().__init__([Diagnostic("schedule", message, span, help)])

    def at(self, span: Span | None) -> ScheduleError:
        """Return the same refusal, at a place of a schedule's text."""
        return ScheduleError(self.message, self.help, span)
