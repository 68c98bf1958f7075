"""Sizes that a form depends on.

`rank picked = size(indices, -1)` makes a size of a call's argument part of its form; `let at... = units(x)...` makes
the set of dimensions of size 1 part of it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence

from opgen.spec.generic.trees import everything_in
from opgen.spec.generic.values import known_integer
from opgen.spec.model.model import GenericOp
from opgen.spec.syntax import nodes as s


def asked_by(value: s.Expression) -> tuple[s.Named, int] | None:
    """Return the input and the dimension of `size(x, axis)`; None for any other expression."""
    if not isinstance(value, s.Call) or value.function.name != "size" or len(value.arguments) != 2:
        return None
    tensor, axis = value.arguments[0], known_integer(value.arguments[1])
    return (tensor, axis) if isinstance(tensor, s.Named) and axis is not None else None


def known_sizes(op: GenericOp, place: int, shape: Sequence[object]) -> tuple[int | None, ...]:
    """Return an argument's shape with None for sizes that the form does not depend on; () if it depends on none."""
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
"""Cache of `_asked`, by the identity of the op: every call of a model needs it."""


def _asked(op: GenericOp) -> Mapping[str, tuple[frozenset[int], bool]]:
    """Map inputs to the dimensions whose sizes the form depends on, and whether dimensions of size 1 matter."""
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
    """Return True if the form of a call depends on sizes."""
    return bool(_asked(op))


def units_asked(op: GenericOp, name: str) -> bool:
    """Return True if the form depends on an input's dimensions of size 1."""
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
