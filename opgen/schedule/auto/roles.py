"""Roles of each operand and each loop of a loop nest, given the loop of lanes.

    for b, m, n (lanes): out[b, m, n] = epilogue(sum(k) scalars[b, m, k] * vectors[b, k, n])

In terms of a product of matrices, only the lanes' reads follow `columns` (N).  These and the broadcast reads follow
`batch`.  The sum runs over `terms` (K).
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
    """Roles in a loop nest with lanes along a loop, or without lanes if it is None."""

    nest: Nest
    lanes: str | None

    @staticmethod
    def of(nest: Nest, lanes: str | None = None) -> Roles:
        """Return the roles for a loop of lanes, by default the loop of contiguous results; computed once for each."""
        along = contiguous_loop(nest) if lanes is None else lanes
        found = nest.roles.get(along)
        if not isinstance(found, Roles):
            found = nest.roles[along] = Roles(nest, along)
        return found

    # Operands ---------------------------------------------------------------------------------------

    @cached_property
    def operands(self) -> tuple[Load, ...]:
        """Return the reads for the terms of the sum, each place once, in program order."""
        return tuple(dict.fromkeys(self.nest.summed))

    @cached_property
    def vectors(self) -> tuple[Load, ...]:
        """Return the operands that differ from lane to lane."""
        return tuple(e for e in self.operands if self._in_lanes(e))

    @cached_property
    def scalars(self) -> tuple[Load, ...]:
        """Return the operands that are broadcast to all lanes."""
        return tuple(e for e in self.operands if not self._in_lanes(e))

    @cached_property
    def pair(self) -> tuple[Load, Load] | None:
        """Return the vectors and the scalars, if there is one operand of each and no other."""
        return (self.vectors[0], self.scalars[0]) if len(self.vectors) == len(self.scalars) == 1 else None

    # Loops ------------------------------------------------------------------------------------------

    @cached_property
    def positions(self) -> tuple[str, ...]:
        """Return the loops over results, without that of the lanes."""
        return tuple(n for n in self.nest.names if n != self.lanes)

    @cached_property
    def terms(self) -> tuple[str, ...]:
        """Return the loops of the sum (K), outermost first."""
        return tuple(s.var for s in self.nest.inner_loops)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Return the loops over results that vectors follow, and scalars do not (N), that of the lanes included."""
        return tuple(n for n in self.nest.names if self._followed(n) == (True, False))

    @cached_property
    def batch(self) -> tuple[str, ...]:
        """Return the loops over results that both follow."""
        return tuple(n for n in self.nest.names if self._followed(n) == (True, True))

    @cached_property
    def extents(self) -> Mapping[str, int]:
        """Return the iterations of all loops, over results and of the sum; 0 if they are not known."""
        loops = (*self.nest.loops, *self.nest.inner_loops)
        return {s.var: constant_extent(s) or 0 for s in loops}

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """Return the iterations of the loops of the sum, outermost first; 0 if they are not known."""
        return {n: self.extents[n] for n in self.terms}

    @cached_property
    def known(self) -> bool:
        """Return True if the number of results is known."""
        return all(self.nest.extent(n) is not None for n in self.nest.names)

    @property
    def width(self) -> int:
        """Return the iterations of the loop of lanes; 0 if they are not known."""
        return 0 if self.lanes is None else self.extents[self.lanes]

    def is_whole(self, loop: str, size: int) -> bool:
        """Return True if tiles of a size fill a loop, so that none is shorter."""
        return self.extents[loop] > 0 and self.extents[loop] % size == 0

    # Windows ----------------------------------------------------------------------------------------

    @cached_property
    def walks(self) -> tuple[Walk, ...]:
        """Return the window accesses of the loop nest."""
        return tuple(walks(self.nest))

    @property
    def phases(self) -> Mapping[str, int]:
        """Return the loops over results that have phases, with the number of phases."""
        return self.nest.phases

    # Predicates ------------------------------------------------------------------------------------

    @cached_property
    def is_sum(self) -> bool:
        """Return True if the loop nest is one sum for each result, of known sizes."""
        return self.known and reduces(self.nest) and len(self.nest.allocations) == 1

    @cached_property
    def is_window(self) -> bool:
        """Return True if every operand follows the lanes, so that none is broadcast."""
        return not self.scalars

    @cached_property
    def stores_vectors(self) -> bool:
        """Return True if lanes store contiguously."""
        return all(self.along(s, self.lanes) for s in self.nest.results)

    def along(self, access: Load | Store, loop: str | None) -> bool:
        """Return True if consecutive iterations of a loop access consecutive elements."""
        return loop is not None and is_contiguous(access, loop, self.nest.shapes)

    def bytes(self, access: Load | Store) -> int:
        """Return the bytes of the accessed buffer; 0 if its size is not known."""
        element = access if isinstance(access, Load) else access.value.type
        return element.dtype.bytes * elements_of(self.nest.shapes[access.buffer])

    def _in_lanes(self, load: Load) -> bool:
        return self.lanes is not None and depends(load.indices, self.lanes)

    def _followed(self, loop: str) -> tuple[bool, bool]:
        """Return True if vectors follow a loop, and True if scalars do."""
        vectors, scalars = (any(depends(e.indices, loop) for e in own) for own in (self.vectors, self.scalars))
        return vectors, scalars
