"""What each operand and each loop of a nest is for, once it is said along which loop its lanes go.

    for b, m, n (lanes): out[b, m, n] = epilogue(sum(k) scalars[b, m, k] * vectors[b, k, n])

In the words of a product of matrices: `columns` (N) are followed by what lanes read as vectors alone, `batch` by what
they broadcast, too, `terms` (K) are summed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from opgen.locks import cached_property
from opgen.loop.nodes import Load, Store
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.nests import Nest, contiguous_loop, depends, is_contiguous, reduces
from opgen.schedule.auto.walks import Walk, walks
from opgen.schedule.cost.sizes import elements_of


@dataclass(frozen=True, eq=False)
class Roles:
    """The roles in a nest whose lanes go along a loop; None where there is none for them."""

    nest: Nest
    lanes: str | None

    @staticmethod
    def of(nest: Nest, lanes: str | None = None) -> Roles:
        """The roles in a nest, found out once for each loop of lanes: by default the one along which results lie."""
        along = contiguous_loop(nest) if lanes is None else lanes
        found = nest.roles.get(along)
        if not isinstance(found, Roles):
            found = nest.roles[along] = Roles(nest, along)
        return found

    # Operands ---------------------------------------------------------------------------------------

    @cached_property
    def operands(self) -> tuple[Load, ...]:
        """What is read for the terms of the sum, each place once, in program order."""
        return tuple(dict.fromkeys(self.nest.summed))

    @cached_property
    def vectors(self) -> tuple[Load, ...]:
        """Those operands that differ from lane to lane."""
        return tuple(e for e in self.operands if self._in_lanes(e))

    @cached_property
    def scalars(self) -> tuple[Load, ...]:
        """Those operands that are broadcast to all lanes."""
        return tuple(e for e in self.operands if not self._in_lanes(e))

    @cached_property
    def pair(self) -> tuple[Load, Load] | None:
        """Vectors and scalars, if there is one operand of each and no other."""
        return (self.vectors[0], self.scalars[0]) if len(self.vectors) == len(self.scalars) == 1 else None

    # Loops ------------------------------------------------------------------------------------------

    @cached_property
    def positions(self) -> tuple[str, ...]:
        """The loops over results, but for that of the lanes."""
        return tuple(n for n in self.nest.names if n != self.lanes)

    @cached_property
    def terms(self) -> tuple[str, ...]:
        """The loops of the sum (K), outermost first."""
        return tuple(s.var for s in self.nest.inner_loops)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The loops over results that vectors follow, and scalars do not (N): that of the lanes, and more."""
        return tuple(n for n in self.nest.names if self._followed(n) == (True, False))

    @cached_property
    def batch(self) -> tuple[str, ...]:
        """The loops over results that both follow."""
        return tuple(n for n in self.nest.names if self._followed(n) == (True, True))

    @cached_property
    def extents(self) -> Mapping[str, int]:
        """The iterations of all loops, over results and of the sum; 0 where they are not known."""
        loops = (*self.nest.loops, *self.nest.inner_loops)
        return {s.var: constant_extent(s) or 0 for s in loops}

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """The iterations of the loops of the sum, outermost first; 0 where they are not known."""
        return {n: self.extents[n] for n in self.terms}

    @cached_property
    def known(self) -> bool:
        """Whether there is a known number of results."""
        return all(self.nest.extent(n) is not None for n in self.nest.names)

    @property
    def width(self) -> int:
        """The iterations of the loop of lanes; 0 where that is not known."""
        return 0 if self.lanes is None else self.extents[self.lanes]

    def is_whole(self, loop: str, size: int) -> bool:
        """Whether tiles of a size fill a loop, so that none is shorter."""
        return self.extents[loop] > 0 and self.extents[loop] % size == 0

    # Windows ----------------------------------------------------------------------------------------

    @cached_property
    def walks(self) -> tuple[Walk, ...]:
        """How windows walk over what they read."""
        return tuple(walks(self.nest))

    @property
    def phases(self) -> Mapping[str, int]:
        """The loops over results whose places take turns, with how many turns there are."""
        return self.nest.phases

    # What it is ------------------------------------------------------------------------------------

    @cached_property
    def is_sum(self) -> bool:
        """Whether the nest is one sum for each result, of sizes that are known."""
        return self.known and reduces(self.nest) and len(self.nest.allocations) == 1

    @cached_property
    def is_window(self) -> bool:
        """Whether every operand follows the lanes, so that none is broadcast."""
        return not self.scalars

    @cached_property
    def stores_vectors(self) -> bool:
        """Whether lanes store side by side."""
        return all(self.along(s, self.lanes) for s in self.nest.results)

    def along(self, access: Load | Store, loop: str | None) -> bool:
        """Whether consecutive iterations of a loop access consecutive elements."""
        return loop is not None and is_contiguous(access, loop, self.nest.shapes)

    def bytes(self, access: Load | Store) -> int:
        """The bytes of the buffer that is accessed; 0 where its size is not known."""
        element = access if isinstance(access, Load) else access.value.type
        return element.dtype.bytes * elements_of(self.nest.shapes[access.buffer])

    def _in_lanes(self, load: Load) -> bool:
        return self.lanes is not None and depends(load.indices, self.lanes)

    def _followed(self, loop: str) -> tuple[bool, bool]:
        """Whether vectors follow a loop, and whether scalars do."""
        vectors, scalars = (any(depends(e.indices, loop) for e in own) for own in (self.vectors, self.scalars))
        return vectors, scalars
