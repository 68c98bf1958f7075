"""The names inside a generated check: every argument, symbol and size of an op has its own local name."""

from __future__ import annotations

from collections.abc import Iterable

from opgen.bindings.python.text import Names
from opgen.spec.call.checks import symbols
from opgen.spec.model.model import Attr, AttrValue, OpSpec, SizeOf
from opgen.spec.resolve.words import MODULE

RESERVED = MODULE
"""Names that generated code relies on."""


class OpScope:
    """Names of an op's arguments (`arguments`), of symbols and enumerations (`symbols`), and of sizes and list
    elements.
    """

    def __init__(self, op: OpSpec, module_names: Iterable[str] = ()) -> None:
        self.op = op
        names = Names({*RESERVED, *module_names})
        self.arguments = {name: names.fresh(name) for name in argument_names(op) if name != "name"}
        self.arguments |= {a.name: names.fresh(a.name) for a in op.attrs if a.name not in self.arguments}
        self.symbols = dict(self.arguments)
        self.symbols |= {s: names.fresh(s) for s in symbols(op)}
        self.types = {v.name: names.fresh(v.name) for v in op.type_variables}
        self._names = names
        self._derived: dict[tuple[str, str], str] = {}

    def derived(self, owner: str, part: str) -> str:
        """Return the name of a part of something: `strides_H`, `input_C`."""
        key = (owner, part)
        if key not in self._derived:
            self._derived[key] = self._names.fresh(f"{owner}_{part}")
        return self._derived[key]

    def shape(self, tensor: str) -> str:
        """Return the name of an input's shape."""
        return self.derived(tensor, "shape")

    def size(self, tensor: str, layout: str | None, axis: int) -> str:
        """Return the name of the size that the caller gave a dimension (logical order)."""
        part = self.op.attr(layout).values[0][axis] if layout is not None else str(axis)
        return self.derived(tensor, part)

    def size_of(self, e: SizeOf) -> str:
        tensor = next(t for t in self.op.tensors if t.name == e.tensor)
        return self.size(tensor.name, tensor.layout, e.axis)

    def element(self, e: AttrValue) -> str:
        """Return an attribute, or an element of one."""
        attr = self.op.attr(e.attr)
        if not e.element:
            return self.arguments[attr.name]
        if attr.layout is not None:
            letter = self.op.attr(attr.layout).values[0][e.element[0]]
            return self.derived(attr.name, letter) + "".join(f"[{i}]" for i in e.element[1:])
        width = attr.shape[1] if len(attr.shape) > 1 else 1
        position = e.element[0] * width + (e.element[1] if len(e.element) > 1 else 0)
        base = self.arguments[attr.name]
        return f"padded({base}, {elements(attr)})[{position}]" if attr.optional else f"{base}[{position}]"


def elements(attr: Attr) -> int:
    """Return the number of integers in a list attribute."""
    count = 1
    for n in attr.shape:
        count *= n
    return count


def argument_names(op: OpSpec) -> tuple[str, ...]:
    """Return the arguments of the generated function, in order."""
    return op.signature
