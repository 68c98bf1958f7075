"""Loops that walk on row after row, told from what they access: a plan may join two of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from opgen.loop.nodes import Const, Load, Store, Var
from opgen.loop.walk import loads, stores
from opgen.schedule.auto.nests import Shapes, depends
from opgen.schedule.auto.plan import Handle
from opgen.schedule.auto.site import Site


@dataclass
class Joins:
    """The loops of a nest over results as handles, some of them joined (`joined`, in that order)."""

    site: Site
    loops: list[Handle] = field(init=False)
    joined: list[Handle] = field(default_factory=list)
    extents: dict[Handle, int] = field(default_factory=dict)
    _parts: dict[Handle, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        nest = self.site.nest
        self.loops = list(nest.names)
        self.extents = {n: nest.extent(n) or 0 for n in nest.names}
        self._parts = {n: (n,) for n in nest.names}

    def absorb(self, loop: Handle) -> Handle:
        """Join loops to one that walks on where each of their iterations ends, as far as there are any."""
        while True:
            outer = next((n for n in self.loops if n != loop and self.can_join(n, loop)), None)
            if outer is None:
                return loop
            loop = self.join(outer, loop)

    def join(self, outer: Handle, inner: Handle) -> Handle:
        """The handle of two loops as one, which stands innermost."""
        both = f"{outer}*{inner}"
        self.joined.append(both)
        self._parts[both] = (*self._parts[outer], *self._parts[inner])
        self.extents[both] = self.extents[outer] * self.extents[inner]
        self.loops = [*(n for n in self.loops if n not in (outer, inner)), both]
        return both

    @cached_property
    def _own(self) -> set[str]:
        """The arguments that nothing else accesses."""
        kernel = self.site.trial.kernel
        every, here = (
            Counter([*(e.buffer for e in loads(s)), *(p.buffer for p in stores(s))])
            for s in (kernel.body, self.site.nest.core)
        )
        return {b.name for b in kernel.buffers if here[b.name] == every[b.name]}

    def can_join(self, outer: Handle, inner: Handle) -> bool:
        """Whether all that follows either of two loops is an argument that nothing else accesses, and follows both
        along neighbouring dimensions, the second one from end to end.
        """
        nest, loops = self.site.nest, (*self._parts[outer], *self._parts[inner])
        accesses: list[Load | Store] = [*nest.outside_loads, *nest.results]
        following = {e.buffer for e in accesses if any(depends(e.indices, n) for n in loops)}
        conditions = any(depends(c, n) for c in nest.conditions for n in loops)
        whole = {n: nest.extent(n) or 0 for n in loops[1:]}
        return (
            bool(following)
            and not conditions
            and following <= self._own
            and all(_in_rows(e, loops, whole, nest.shapes) for e in accesses if e.buffer in following)
        )


def _in_rows(access: Load | Store, loops: Sequence[str], whole: dict[str, int], shapes: Shapes) -> bool:
    """Whether loops walk along neighbouring dimensions, all but the first from end to end."""
    shape = shapes[access.buffer]
    axes = [d for d, index in enumerate(access.indices) if any(depends(index, n) for n in loops)]
    if [access.indices[d] for d in axes] != [Var(n) for n in loops]:
        return False
    between = (d for d in range(axes[0], axes[-1]) if d not in axes)
    return all(shape[d] == Const(1) for d in between) and all(
        shape[d] == Const(whole[n]) for d, n in zip(axes[1:], loops[1:], strict=True)
    )
