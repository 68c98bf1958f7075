"""Sizes for which an op has an op of its own: statements that compute those not given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opgen.bindings.python.text import literal
from opgen.spec.model.model import GenericOp, Module, OpSpec
from opgen.spec.syntax import nodes as s


def count_statements(module: Module, op: OpSpec | GenericOp, arguments: Mapping[str, str]) -> Iterator[str]:
    """Yield lines of source; `arguments` are the function's names of the op's inputs and attributes."""
    for attr in op.attrs:
        if attr.counter:
            own = attr.name.name if isinstance(attr, s.AttrDecl) else attr.name
            counter = module.named(attr.counter)
            given = ", ".join(_given(counter, arguments))
            yield f"if {arguments[own]} is None:"
            yield (
                f"    {arguments[own]} = counted({counter.function_name}({given}), {literal(op.name)}, {literal(own)})"
            )


def _given(counter: OpSpec | GenericOp, arguments: Mapping[str, str]) -> Iterator[str]:
    """Yield the arguments of the op that counts."""
    if isinstance(counter, OpSpec):
        yield from (f"{n}={arguments[n]}" for n in counter.signature if n in arguments)
        return
    for decl in counter.inputs:
        yield arguments[decl.name.name]
    for attr in counter.attrs:
        yield f"{attr.name.name}={arguments[attr.name.name]}"
