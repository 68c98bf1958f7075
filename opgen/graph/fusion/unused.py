"""An op without its unused parts: named integers, attributes and requirements on which no result depends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from opgen.spec.check.effects import effective_attrs
from opgen.spec.model import model as m
from opgen.spec.model.visit import attrs_in, symbols_in
from opgen.spec.model.walk import reads


def without_idle(op: m.OpSpec) -> m.OpSpec:
    """Return the op without attributes that have no effect and without intermediates that are never read.

    Named integers and requirements of such attributes go, too.  A requirement checks attributes that the call has met:
    it is not needed where they are gone.
    """
    definitions = live(op.definitions)
    op = replace(op, definitions=definitions)
    effective = effective_attrs(op)
    gone = {a.name for a in op.attrs} - effective
    checks: list[m.ShapeLet | m.Require] = []
    lost: set[str] = set()
    for check in op.checks:
        value = check.value if isinstance(check, m.ShapeLet) else check.condition
        idle = attrs_in(value) & gone or symbols_in(value) & lost
        if idle and isinstance(check, m.ShapeLet):
            lost |= set(check.names)
        elif not idle:
            checks.append(check)
    return replace(op, attrs=tuple(a for a in op.attrs if a.name in effective), checks=tuple(checks))


def live(definitions: tuple[m.Definition, ...]) -> tuple[m.Definition, ...]:
    """Return the definitions on which outputs depend; a stepwise one may read a later definition."""
    lets = {d.tensor: d for d in definitions if not d.is_output}
    needed: set[str] = set()
    waiting = [d for d in definitions if d.is_output]
    while waiting:
        found = set(_read(waiting.pop())) & lets.keys() - needed
        needed |= found
        waiting += [lets[name] for name in found]
    return tuple(d for d in definitions if d.is_output or d.tensor in needed)


def _read(d: m.Definition) -> Iterator[str]:
    return (r.tensor for r in reads(d.value))
