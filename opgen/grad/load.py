"""Loading of specs with derived gradients, the starting point of every later stage."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from opgen import spec as specs
from opgen.diagnostics import Diagnostic, DiagnosticError
from opgen.grad.gradient import expand
from opgen.spec.loading import PathLike
from opgen.spec.model.model import Module, OpSpec
from opgen.spec.resolve.measure import in_definition, size
from opgen.spec.syntax.limits import NODES
from opgen.spec.syntax.report import Report


def load(paths: PathLike | Iterable[PathLike]) -> Module:
    """Load like `opgen.spec.load`, with every gradient's definitions derived.

    Raises DiagnosticError with all mistakes.
    """
    return derived(specs.load(paths))


def load_text(text: str, name: str = "<text>", base: PathLike | None = None) -> Module:
    """Load like `opgen.spec.load_text`, with every gradient's definitions derived."""
    return derived(specs.load_text(text, name, base))


def derived(module: Module) -> Module:
    """Return the module with definitions derived for its gradients."""
    found: list[Diagnostic] = []
    done = list(module.ops)
    report, nodes = Report(), 0
    for place, op in enumerate(module.ops):
        try:
            done[place] = expanded = _within_depth(replace(module, ops=tuple(done)), op)
        except DiagnosticError as error:
            found += error.diagnostics
            continue
        if expanded is not op and op.span is not None:
            nodes += size((e for d in expanded.definitions for e in in_definition(d)), {})
            report.stop_beyond(nodes, NODES, "expressions in derived mathematics", op.span)
    if found:
        raise DiagnosticError(tuple(dict.fromkeys(found)))
    return replace(module, ops=tuple(done))


def _within_depth(module: Module, op: OpSpec) -> OpSpec:
    try:
        return expand(module, op)
    except RecursionError:
        message = f"the mathematics of '{op.name}' nest too deeply when they are derived"
        raise DiagnosticError([Diagnostic("S003", message, op.span, "name a part with `let`")]) from None
