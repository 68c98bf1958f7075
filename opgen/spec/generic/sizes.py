"""Sizes on which a form depends: `rank picked = size(indices, -1)` makes one of a call's shapes a part of its form, and
`let at... = units(x)...` which of a shape are 1.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence

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
    axes, units = (frozenset(), False) if decl is None else _asked(op).get(decl.name.name, (frozenset(), False))
    if not axes and not units:
        return ()
    found = tuple(
        size if isinstance(size, int) and (at in axes or at - len(shape) in axes or (units and size == 1)) else None
        for at, size in enumerate(shape)
    )
    return found if any(size is not None for size in found) else ()


_KNOWN = 1024
_known: OrderedDict[int, tuple[GenericOp, Mapping[str, tuple[frozenset[int], bool]]]] = OrderedDict()
"""What is asked of ops, by their identity: every call of a model asks for it."""


def _asked(op: GenericOp) -> Mapping[str, tuple[frozenset[int], bool]]:
    """The dimensions whose sizes an op asks for, of each input of which it does, and whether of those of size 1."""
    found = _known.get(id(op))
    if found is None or found[0] is not op:
        units = frozenset(_units(op))
        names = {*units, *(asked[0].name for asked in _asked_sizes(op))}
        each = {n: (frozenset(axis for x, axis in _asked_sizes(op) if x.name == n), n in units) for n in names}
        found = _known[id(op)] = op, each
        while len(_known) > _KNOWN:
            _known.popitem(last=False)
    return found[1]


def depends_on_sizes(op: GenericOp) -> bool:
    """Whether the form of a call depends on sizes."""
    return bool(_asked(op))


def units_asked(op: GenericOp, name: str) -> bool:
    """Whether a list of an op is of the dimensions of size 1 of an input."""
    return _asked(op).get(name, (frozenset(), False))[1]


def _units(op: GenericOp) -> Iterator[str]:
    for item in op.decl.items:
        if isinstance(item, s.PackLet):
            for tree in everything_in(item.value):
                if isinstance(tree, s.Call) and tree.function.name == "units":
                    yield from (a.name for a in tree.arguments if isinstance(a, s.Named))


def _asked_sizes(op: GenericOp) -> Iterator[tuple[s.Named, int]]:
    for item in op.decl.items:
        if isinstance(item, s.RankDecl):
            asked = (asked_by(rule.value) for rule in item.rules if rule.value is not None)
            yield from (each for each in asked if each is not None)
