"""The numbers that a call gives a kernel, which must be such that the kernel means what it says (`opgen.lower.limits`).

It is asked when a call of a new kind comes, not when one is made again.
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
    """A lowered kernel, and the limits of what calls may give it."""

    def __init__(self, op: OpSpec, lowered: Lowered) -> None:
        self.lowered = lowered
        self._op = op
        self._limits: Limits | None = None

    def values(self, call: Environment) -> dict[str, Number]:
        """What a call passes for each parameter.  Raises ArgumentValueError if that cannot be, or would not do."""
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
