"""The error of a call whose elements are invalid subscripts."""

from __future__ import annotations

from opgen.diagnostics import CheckFailed
from opgen.diagnostics.calls import ArgumentValueError
from opgen.lower.element_words import words_of
from opgen.lower.elements import element_checks
from opgen.spec.call.environment import Environment, evaluate_int
from opgen.spec.model.model import OpSpec


def refused(op: OpSpec, call: Environment, failed: CheckFailed) -> ArgumentValueError:
    """Return the error of a call of an op for which one of its checks fails."""
    check = element_checks(op)[failed.number]
    words, size = words_of(op, check), evaluate_int(check.size, call)
    return ArgumentValueError(op.title, words.argument, words.expected(size), words.given(failed.value, size))
