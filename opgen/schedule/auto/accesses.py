"""Reads and writes of a loop nest as accesses that are affine in its loops."""

from __future__ import annotations

from collections.abc import Sequence

from opgen.loop.nodes import Const, Load, Store
from opgen.schedule.auto.nests import Nest, Shapes, coefficient, depends
from opgen.schedule.cost.sizes import element_of
from opgen.schedule.cost.traffic import Access


def accesses(nest: Nest) -> tuple[Access, ...] | None:
    """Return the accesses of a nest's core outside itself; None if one of them is not affine in the loops."""
    names = (*nest.names, *(s.var for s in nest.inner_loops))
    found: list[Access] = []
    touched: tuple[Load | Store, ...] = (*nest.outside_loads, *nest.results)
    for e in dict.fromkeys(touched):
        strides = strides_of(e, names, nest.shapes)
        if strides is None:
            return None
        found.append(Access(e.buffer, element_of(e), strides))
    return tuple(found)


def strides_of(e: Load | Store, names: Sequence[str], shapes: Shapes) -> dict[str, int] | None:
    """Return the bytes by which each loop of `names` advances an access; None if it is not affine in them."""
    size = element_of(e)
    strides: dict[str, int] = {}
    for index, extent in zip(reversed(e.indices), reversed(shapes[e.buffer]), strict=True):
        for name in names:
            if not depends(index, name):
                continue
            factor = coefficient(index, name)
            if factor is None:
                return None
            strides[name] = strides.get(name, 0) + factor * size
        if not isinstance(extent, Const):
            return None
        size *= int(extent.value)
    return {name: abs(stride) for name, stride in strides.items() if stride}
