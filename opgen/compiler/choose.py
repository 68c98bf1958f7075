"""The kernel for a request: by the op's definition, or by an algorithm that is estimated to be faster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from opgen.compiler.request import Compilation, Cuda, OpVariant
from opgen.compiler.symbolic import CLOSED, opened
from opgen.diagnostics import InternalError
from opgen.diagnostics.calls import ArgumentValueError
from opgen.loop.bind import bind
from opgen.passes.simplify import simplify
from opgen.schedule.estimate import seconds
from opgen.spec.call.environment import Environment, evaluate
from opgen.spec.model.model import Algorithm

if TYPE_CHECKING:
    from opgen.loop.nodes import Kernel

LEAST = 50e-6
"""Seconds: a definition that takes no longer is kept.  A build costs as much as many thousand calls could gain."""

MARGIN = 0.9
"""An algorithm must take no more than this part of the definition's time: an estimate is not a measurement."""


@dataclass(frozen=True)
class Choice:
    """The kernel for a request, simplified; its algorithm (None: the definition), and the reason for it.

    `estimates` are seconds by the names of the compared algorithms.
    """

    kernel: Kernel
    algorithm: Algorithm | None
    reason: str
    estimates: Mapping[str, float]

    @property
    def name(self) -> str | None:
        """The algorithm's name; None for the definition."""
        return None if self.algorithm is None else self.algorithm.name


def choose(request: Compilation) -> Choice:
    """Choose the kernel of a request.

    Raises ArgumentValueError for numbers with which the kernel's integers would overflow.
    """
    source = request.source
    if not isinstance(source, OpVariant):
        return Choice(source, None, "it is given as loop IR", {})
    if request.algorithm is not None:
        found = next((a for a in source.op.algorithms if a.name == request.algorithm), None)
        if found is None:
            raise InternalError(f"{source.op.name} has no algorithm {request.algorithm}")
        return Choice(_kernel(request, source, found), found, "it is asked for", {})
    definition = _kernel(request, source)
    if request.algorithms == "off" or request.call is None or request.opening != CLOSED:
        why = "no other is wanted" if request.algorithms == "off" else "kernels with open sizes take no other"
        return Choice(definition, None, why, {})
    return _fastest(request, source, request.call, definition)


def _fastest(request: Compilation, source: OpVariant, call: Environment, definition: Kernel) -> Choice:
    """Choose among an op's definition and its algorithms for a call."""
    if not source.op.algorithms or isinstance(request.target, Cuda):
        return Choice(definition, None, "there is no other", {})
    candidates = list(_candidates(request, source, call))
    if not candidates:
        return Choice(definition, None, "no algorithm of the op is for this call", {})
    machine = request.target.machine
    estimates = {"definition": seconds(definition, machine)}
    least = estimates["definition"]
    if least <= LEAST:
        why = f"it is estimated at {_time(least)}, and others are tried from {_time(LEAST)} on"
        return Choice(definition, None, why, estimates)
    best, chosen = definition, None
    least *= MARGIN
    for algorithm in candidates:
        try:
            kernel = _kernel(request, source, algorithm)
        except ArgumentValueError:  # the algorithm's integers would overflow
            continue
        estimates[algorithm.name] = seconds(kernel, machine)
        if estimates[algorithm.name] < least:
            best, chosen, least = kernel, algorithm, estimates[algorithm.name]
    told = ", ".join(f"{name} {_time(estimate)}" for name, estimate in estimates.items())
    rule = "" if chosen else f"; another must take less than {MARGIN:.0%} of the definition's time"
    return Choice(best, chosen, f"estimates are {told}{rule}", estimates)


def _time(estimate: float) -> str:
    return f"{1e3 * estimate:.3g} ms" if estimate >= 1e-3 else f"{1e6 * estimate:.3g} us"


def _candidates(request: Compilation, source: OpVariant, call: Environment) -> Iterator[Algorithm]:
    for algorithm in source.op.algorithms:
        wanted = request.algorithms == "all" or not algorithm.optional
        if wanted and takes(algorithm, source.variant.types, call):
            yield algorithm


def _kernel(request: Compilation, source: OpVariant, algorithm: Algorithm | None = None) -> Kernel:
    """Return the kernel of the definition or of an algorithm, with the numbers of the request in place."""
    kernel = source.lowered(algorithm).lowered.kernel
    if request.call is None:
        return simplify(kernel)
    integers = source.integers(request.call, algorithm)
    if request.opening != CLOSED:
        return opened(kernel, integers, request.opening)
    return simplify(bind(kernel, integers))


def takes(algorithm: Algorithm, types: Mapping[str, str], call: Environment | None) -> bool:
    """Return True if an algorithm is for calls of these types and sizes (None: any sizes)."""
    allowed = all(types[v.name] in {t.name for t in v.allowed} for v in algorithm.type_variables)
    return allowed and (call is None or algorithm.condition is None or bool(evaluate(algorithm.condition, call)))


def definition_of(request: Compilation) -> Compilation:
    """Return the same request, computed by the op's definition."""
    return replace(request, algorithms="off", algorithm=None)
