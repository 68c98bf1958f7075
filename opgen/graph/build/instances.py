"""Arguments of a call that count by their values: an op asks for integers, not for a tensor."""

from __future__ import annotations

from opgen.spec.syntax import nodes as s
from opgen.spec.model.model import Module, Sizes


def wants_value(module: Module, name: str, place: int) -> bool:
    """Return whether an op may ask for the integers of an argument, not for a tensor."""
    generic = module.generic(name)
    if generic is not None:
        return place < len(generic.inputs) and isinstance(generic.inputs[place], s.StaticDecl | s.SizesDecl)
    op = module.plain(name)
    return op is not None and place < len(op.inputs) and isinstance(op.inputs[place], Sizes)
