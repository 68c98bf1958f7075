"""Sums of rows that share nothing (a vector times a matrix, gradients by a bias): lanes along the rows.

What the second cache holds is read in pieces of rows, whose sums stay in registers for all rows.  What comes from
beyond it is read in order, some whole rows at a time: sums that do not fit into registers wait in the first cache, and
threads share the rows, in parts with sums of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.nests import depends, is_contiguous, read_bytes, reduces
from opgen.schedule.cost.calibration import (
    ALL,
    COLUMN_LITTLE,
    COLUMN_ROWS,
    COLUMN_SUMS,
    COLUMN_VECTORS,
    MASKED_BYTES,
    PARALLEL,
    PARTS,
    TURNS,
)
from opgen.schedule.split import Tail
from opgen.schedule.steps import (
    Parallel,
    Partition,
    Permute,
    Reorder,
    Rfactor,
    Split,
    Stage,
    Step,
    Unroll,
    Vectorize,
)


@dataclass(frozen=True)
class Columns(LaneNest):
    def take(self) -> bool:
        return self._in_order() if self._wide and self._far else self._in_pieces()

    @property
    def legal(self) -> bool:
        nest, vector = self.nest, self.vector
        known = self.roles.known and all(self.roles.counts.values())
        if self.lanes < 2 or not reduces(nest) or not known or nest.conditions or len(nest.allocations) != 1:
            return False
        own = [e for e in nest.outside_loads if depends(e.indices, vector)]
        whole = not self._ragged or self.machine.vector_bytes >= MASKED_BYTES
        return bool(own) and whole and all(is_contiguous(e, vector, nest.shapes) for e in own)

    @property
    def _vectors(self) -> int:
        return -(-self.width // self.lanes)

    @property
    def _ragged(self) -> bool:
        """Whether the last vector of a row is masked, so that sums cannot be kept in registers in part of the time."""
        return self.width % self.lanes != 0

    @property
    def _most(self) -> int:
        """Most vectors of sums in registers."""
        return int(COLUMN_SUMS * self.machine.registers)

    @property
    def _wide(self) -> bool:
        return self._vectors > self._most

    @property
    def _far(self) -> bool:
        """Whether rows come from beyond the second cache, and all sums fit into the first."""
        sums = self._vectors * self.machine.vector_bytes
        return not self.memory.holds(read_bytes(self.nest), 2, ALL) and self.memory.holds(sums, 1)

    @property
    def _others(self) -> list[str]:
        return [n for n in self.nest.names if n != self.vector]

    @cached_property
    def _partial(self) -> str:
        return self.trial.fresh(f"{self.nest.allocations[0].name}_part")

    def _count(self, term: str) -> int:
        loops = self.trial.nest(self.vector).inner_loops
        return next(constant_extent(s) or 0 for s in loops if s.var == term)

    # All that is summed in registers ------------------------------------------------------------------

    def _in_pieces(self) -> bool:
        """The sums of a piece of the rows in registers, for all rows."""
        outer, piece, across, lane = (self.trial.fresh(f"{self.vector}_{end}") for end in "oivl")
        if self.vector != self.nest.names[-1] and not self.trial.take(Reorder((*self._others, self.vector))):
            return False
        size, tail = self._piece()
        shared = [*self._others, *([outer] if size < self._vectors and tail == "exact" else [])]
        terms = list(self.trial.joined(self.roles.terms))
        near = self._ragged and not self._far  # masked sums that threads share stay in the first cache
        parts = 1 if near or self._enough(shared, size) else self._parts(self._count(terms[0]))
        chains = 1 if parts > 1 else self._chains(size, self._count(terms[-1]))
        splits: list[Step] = [Split(self.vector, self.lanes, tail, across, lane)]
        if size < self._vectors:
            within = Split(piece, self.lanes, "exact", across, lane)
            splits = [Split(self.vector, size * self.lanes, tail, outer, piece), within]
        if parts > 1:
            part, rest = self.trial.fresh(f"{terms[0]}_p"), self.trial.fresh(f"{terms[0]}_r")
            return self._divided(terms[0], parts, part, rest) and self.trial.take(
                *splits,
                Reorder((f"{part}_l", rest, *terms[1:], across, lane)),
                *self._summed(parts, self._partial, f"{part}_l", (across, lane)),
                Parallel(f"{part}_l"),
            )
        if chains > 1:
            inner = (f"{terms[-1]}_o", f"{terms[-1]}_l")
            apart: list[Step] = [Unroll(inner[1]), *self._summed(chains, self._partial, None, (across, lane))]
            splits = [Rfactor(terms[-1], chains, self._partial), *splits]
            order = (*terms[:-1], *inner, across, lane)
        else:
            apart, order = [Unroll(across), Vectorize(lane)], (*terms, across, lane)
        taken = self.trial.take(*splits, Reorder(order), *apart)
        if taken:
            self.trial.fused_prefix(shared[:PARALLEL], Parallel)
        return taken

    def _piece(self) -> tuple[int, Tail]:
        """How many vectors side by side, and how pieces of that size end."""
        vectors = self._vectors
        if vectors <= self._most:
            return vectors, "guard" if self._ragged else "exact"
        found = max(n for n in range(1, self._most + 1) if vectors % n == 0)
        if not self._ragged and 2 * found >= self._most:
            return found, "exact"
        return -(-vectors // -(-vectors // self._most)), "overlap"

    def _enough(self, shared: list[str], size: int) -> bool:
        """Whether threads have enough to share without parts, or there is too little to be shared."""
        counts = {n: self.nest.extent(n) for n in self._others}
        iterations = prod(counts.get(n) or self._vectors // size for n in shared)
        cores, little = self.machine.cores, read_bytes(self.nest) < self.memory.usable(2, COLUMN_LITTLE)
        return little or iterations >= TURNS * cores or iterations % cores == 0

    def _parts(self, count: int) -> int:
        """A power of two, no more than the machine has cores, however many threads will run."""
        parts = 1
        while 2 * parts <= min(self.machine.cores, count, PARTS):
            parts *= 2
        return parts

    def _chains(self, size: int, count: int) -> int:
        """How many sums of each result hide the latency of an addition, where rows are narrow."""
        chains = 1
        while chains * size < self.machine.latency and count % (2 * chains) == 0 and count >= 2 * COLUMN_ROWS * chains:
            chains *= 2
        return chains

    def _divided(self, term: str, parts: int, part: str, rest: str) -> bool:
        """A reduction in parts that have sums of their own."""
        count = self._count(term)
        each = -(-count // parts)
        tail: Tail = "exact" if count % each == 0 else "min"
        return self.trial.take(Split(term, each, tail, part, rest), Rfactor(part, parts, self._partial))

    def _by_part(self, parts: int, axes: int) -> list[Step]:
        """Partial sums that lie part by part."""
        halves = (1 << k for k in range(parts.bit_length() - 1))
        steps: list[Step] = [Permute(self._partial, (axes, *range(axes))), Unroll(f"{self._partial}_i")]
        return [*steps, *(Unroll(f"{self._partial}_{half}") for half in halves)]

    def _summed(self, parts: int, sums: str, at: str | None, vectors: tuple[str, str]) -> list[Step]:
        """The sums, if there are several for each result one after the other, in registers within each iteration of a
        loop `at`, or all the time.
        """
        (across, lane), axes = vectors, 2 + (at is not None and not at.endswith("_l"))
        steps = self._by_part(parts, axes) if parts > 1 else []
        if at is None or self._ragged:
            return [*steps, Unroll(across), Vectorize(lane)]
        kept, last = self.trial.fresh(f"{sums}_kept"), axes - (parts == 1)
        return [
            *steps,
            Stage(sums, at, "register", False, kept),
            Unroll(across),
            Vectorize(lane),
            *(Unroll(f"{kept}_{d}") for d in range(last)),
            Vectorize(f"{kept}_{last}"),
        ]

    # Rows in order ----------------------------------------------------------------------------------

    def _in_order(self) -> bool:
        """Some rows side by side, in parts for threads, while the sums wait in the first cache."""
        terms = list(self.trial.joined(self.roles.terms))
        parts = 1 if self._others else self._parts(self._count(terms[0]))
        sums, around = self.nest.allocations[0].name, self._others
        if parts > 1:
            part, rest = self.trial.fresh(f"{terms[0]}_p"), self.trial.fresh(f"{terms[0]}_r")
            if not self._divided(terms[0], parts, part, rest):
                return False
            sums, around, terms = self._partial, [f"{part}_l"], [rest, *terms[1:]]
        steps = self._masked(around, terms, parts) if self._ragged else self._kept(around, terms, parts, sums)
        return self.trial.take(*steps, *(Parallel(n) for n in around[:1]))

    def _kept(self, around: list[str], terms: list[str], parts: int, sums: str) -> list[Step]:
        """The sums of some vectors in registers for some rows."""
        outer, piece, across, lane = (self.trial.fresh(f"{self.vector}_{end}") for end in "oivl")
        rows, row = self.trial.fresh(f"{terms[-1]}_b"), self.trial.fresh(f"{terms[-1]}_t")
        wide = max(n for n in range(1, COLUMN_VECTORS + 1) if self._vectors % n == 0)
        return [
            Split(terms[-1], COLUMN_ROWS, "min", rows, row),
            Split(self.vector, wide * self.lanes, "exact", outer, piece),
            Split(piece, self.lanes, "exact", across, lane),
            Reorder((*around, *terms[:-1], rows, outer, row, across, lane)),
            *self._summed(parts, sums, outer, (across, lane)),
        ]

    def _masked(self, around: list[str], terms: list[str], parts: int) -> list[Step]:
        """One row at a time: a sum that cannot stay in registers is not gone on with at once."""
        across, lane = (self.trial.fresh(f"{self.vector}_{end}") for end in "vl")
        return [
            Split(self.vector, self.lanes, "guard", across, lane),
            Reorder((*around, *terms, across, lane)),
            *(self._by_part(parts, 2) if parts > 1 else []),
            Partition(across, (-1,)),
            Vectorize(lane),
        ]
