"""Loading specs with the mathematics of their gradients derived: what every later stage starts from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from opgen import spec as specs
from opgen.diagnostics import Diagnostic, DiagnosticError
from opgen.grad.gradient import expand
from opgen.spec.loading import PathLike
from opgen.spec.model import Module, OpSpec


def load(paths: PathLike | Iterable[PathLike]) -> Module:
    """As `opgen.spec.load`, with every gradient's definitions in place; raises DiagnosticError with all mistakes."""
    return derived(specs.load(paths))


def load_text(text: str, name: str = "<text>", base: PathLike | None = None) -> Module:
    """As `opgen.spec.load_text`, likewise."""
    return derived(specs.load_text(text, name, base))


def derived(module: Module) -> Module:
    """A module whose gradients have definitions."""
    found: list[Diagnostic] = []
    ops: list[OpSpec] = []
    for op in module.ops:
        try:
            ops.append(expand(module, op))
        except DiagnosticError as error:
            found += error.diagnostics
    if found:
        raise DiagnosticError(tuple(dict.fromkeys(found)))
    return replace(module, ops=tuple(ops))
