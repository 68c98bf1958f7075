"""The kernel for a call among those of its op: by the definition, or by an algorithm that is estimated to be faster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from opgen.compiler import toolchain
from opgen.compiler.algorithms import mode
from opgen.compiler.limits import CheckedKernel
from opgen.diagnostics.calls import ArgumentValueError
from opgen.loop.bind import bind
from opgen.lower import Variant, lower
from opgen.passes.simplify import simplify
from opgen.schedule.estimate import seconds
from opgen.spec.call.environment import Environment, evaluate
from opgen.spec.model.model import Algorithm, Module, OpSpec

if TYPE_CHECKING:
    from opgen.loop.nodes import Kernel

LEAST = 50e-6
"""Seconds: a definition that takes no longer is kept.  What could be won in many thousand calls goes into the build."""

MARGIN = 0.9
"""An algorithm must take no more than this part of the definition's time: an estimate is not a measurement."""


class Chooser:
    """Chooses among the kernels of one variant of an op; each algorithm is lowered once."""

    def __init__(self, module: Module, op: OpSpec, variant: Variant) -> None:
        self._module = module
        self._op = op
        self._variant = variant
        self._checked: dict[str, CheckedKernel] = {}

    def choose(self, definition: Kernel, call: Environment) -> Kernel:
        """The kernel for a call, simplified, given the one by the definition with the call's integers in place."""
        best = simplify(definition)
        candidates = list(self._candidates(call))
        if not candidates:
            return best
        machine = toolchain.host().machine
        least = seconds(best, machine)
        if least <= LEAST:
            return best
        least *= MARGIN
        for algorithm in candidates:
            kernel = self._kernel(algorithm, call)
            if kernel is None:
                continue
            estimate = seconds(kernel, machine)
            if estimate < least:
                best, least = kernel, estimate
        return best

    def algorithm_of(self, kernel: Kernel) -> str | None:
        """The name of the algorithm by which a kernel of the op computes; None for the definition."""
        own = f"{self._op.function_name}_"
        return next((a.name for a in self._op.algorithms if kernel.name.startswith(f"{own}{a.name}_")), None)

    def _candidates(self, call: Environment) -> Iterator[Algorithm]:
        wanted = mode()
        for algorithm in self._op.algorithms if wanted != "off" else ():
            if (wanted == "all" or not algorithm.optional) and takes(algorithm, self._variant.types, call):
                yield algorithm

    def _kernel(self, algorithm: Algorithm, call: Environment) -> Kernel | None:
        """The kernel of an algorithm for a call; None if the algorithm's integers would not fit."""
        if algorithm.name not in self._checked:
            lowered = lower(self._module, self._op, self._variant, algorithm)
            self._checked[algorithm.name] = CheckedKernel(self._op, lowered)
        checked = self._checked[algorithm.name]
        try:
            values = checked.values(call)
        except ArgumentValueError:
            return None
        kernel = checked.lowered.kernel
        return simplify(bind(kernel, {p.name: values[p.name] for p in kernel.parameters if not p.dtype.is_float}))


def takes(algorithm: Algorithm, types: Mapping[str, str], call: Environment | None) -> bool:
    """Whether an algorithm is for calls of these types and sizes (None: whichever it is for)."""
    allowed = all(types[v.name] in {t.name for t in v.allowed} for v in algorithm.type_variables)
    return allowed and (call is None or algorithm.condition is None or bool(evaluate(algorithm.condition, call)))
