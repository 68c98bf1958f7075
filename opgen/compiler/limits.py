"""Checks of the numbers that a call gives a kernel: they must fit the kernel's integers (`opgen.lower.limits`).

They run for the first call of a kind, not for repeated ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from opgen.diagnostics.calls import ArgumentValueError
from opgen.lower.limits import Limits, expected, limits_of, origin, uncomputed
from opgen.spec.call.environment import evaluate
from opgen.spec.call.whole import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opgen.lower import Lowered
    from opgen.spec.call.environment import Environment
    from opgen.spec.model.model import Expr, OpSpec

Number: TypeAlias = "int | float | bool"


class CheckedKernel:
    """A lowered kernel, and the limits of its arguments."""

    def __init__(self, op: OpSpec, lowered: Lowered) -> None:
        self.lowered = lowered
        self._op = op
        self._limits: Limits | None = None

    def values(self, call: Environment) -> dict[str, Number]:
        """Return the value of each parameter.  Raises ArgumentValueError if one cannot be computed or does not fit."""
        names = [p.name for p in self.lowered.kernel.parameters]
        found = [self._value(e, call) for e in self.lowered.arguments]
        self._check(found)
        return dict(zip(names, found, strict=True))

    def _value(self, e: Expr, call: Environment) -> Number:
        try:
            return evaluate(e, call)
        except EvaluationError as error:
            raise ArgumentValueError(self._op.name, origin(self._op, e), uncomputed(self._op, e), str(error)) from error

    def _check(self, values: Sequence[Number]) -> None:
        if self._limits is None:
            self._limits = limits_of(self._op, self.lowered)
        limits = self._limits
        integers = [0 if isinstance(v, float) else int(v) for v in values]
        claim = limits.reach.unmet(integers)
        if claim is not None:
            raise ArgumentValueError(limits.op, limits.blamed(claim), expected(claim), limits.given(claim, integers))
