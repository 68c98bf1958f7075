"""Sizes on which a form depends: `rank picked = size(indices, -1)` makes one of a call's shapes a part of its form, and
`let at... = units(x)...` which of a shape are 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opgen.spec.generic.trees import everything_in
from opgen.spec.generic.values import known_integer
from opgen.spec.model.model import GenericOp
from opgen.spec.syntax import nodes as s


def asked_by(value: s.Expression) -> tuple[s.Named, int] | None:
    """The input and the dimension of `size(x, axis)`; None for what is no such call."""
    if not isinstance(value, s.Call) or value.function.name != "size" or len(value.arguments) != 2:
        return None
    tensor, axis = value.arguments[0], known_integer(value.arguments[1])
    return (tensor, axis) if isinstance(tensor, s.Named) and axis is not None else None


def known_sizes(op: GenericOp, place: int, shape: Sequence[object]) -> tuple[int | None, ...]:
    """Of the shape of an argument what the form of a call depends on, None for the rest; nothing if that is nothing."""
    decl = op.inputs[min(place, len(op.inputs) - 1)] if op.inputs else None
    axes = set() if decl is None else set(_axes(op, decl.name.name))
    units = decl is not None and units_asked(op, decl.name.name)
    found = tuple(
        size if isinstance(size, int) and (at in axes or at - len(shape) in axes or (units and size == 1)) else None
        for at, size in enumerate(shape)
    )
    return found if any(size is not None for size in found) else ()


def depends_on_sizes(op: GenericOp) -> bool:
    """Whether the form of a call depends on sizes."""
    return any(asked_by(r.value) for r in _rules(op) if r.value is not None) or any(_units(op))


def units_asked(op: GenericOp, name: str) -> bool:
    """Whether a list of an op is of the dimensions of size 1 of an input."""
    return name in _units(op)


def _units(op: GenericOp) -> Iterator[str]:
    for item in op.decl.items:
        if isinstance(item, s.PackLet):
            for tree in everything_in(item.value):
                if isinstance(tree, s.Call) and tree.function.name == "units":
                    yield from (a.name for a in tree.arguments if isinstance(a, s.Named))


def _axes(op: GenericOp, name: str) -> Iterator[int]:
    for rule in _rules(op):
        asked = None if rule.value is None else asked_by(rule.value)
        if asked is not None and asked[0].name == name:
            yield asked[1]


def _rules(op: GenericOp) -> Iterator[s.RankRule]:
    return (r for i in op.decl.items if isinstance(i, s.RankDecl) for r in i.rules)
