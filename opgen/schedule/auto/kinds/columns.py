"""Sums of rows that share nothing (a vector times a matrix, gradients by a bias): lanes along the rows.

The sums of a piece of the rows stay in registers for all rows.  If the rows come from beyond L2, they are read in
order, some whole rows at a time, while all sums stay in L1.  If threads have nothing else to share, each has a part of
the rows, with sums of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from opgen.locks import cached_property
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
    Divide,
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
        if self.vector != self.nest.names[-1] and not self.trial.take(Reorder((*self._others, self.vector))):
            return False
        outer, piece, across, lane = (self.trial.fresh(f"{self.vector}_{end}") for end in "oivl")
        size, tail = self._piece()
        shared = [*self._others, *([outer] if size < self._vectors and tail == "exact" and not self._in_order else [])]
        terms = list(self.trial.joined(self.roles.terms))
        parts = 1 if self._enough(shared, size) else self._parts(self._count(terms[0]))
        if parts > 1:
            part, rest = self.trial.fresh(f"{terms[0]}_p"), self.trial.fresh(f"{terms[0]}_r")
            if not self._divided(terms[0], parts, part, rest):
                return False
            shared, terms[0] = [part], rest
        splits: list[Step] = [Split(self.vector, self.lanes, tail, across, lane)]
        if size < self._vectors:
            within = Split(piece, self.lanes, "exact", across, lane)
            splits = [Split(self.vector, size * self.lanes, tail, outer, piece), within]
        inside: list[Step] = [Unroll(across), Vectorize(lane)]
        chains = 1 if self._in_order else self._chains(size, self._count(terms[-1]))
        if self._in_order and self._ragged:  # one row at a time: masked sums cannot stay in registers
            inside = [Partition(across, (-1,)), Vectorize(lane)]
        elif self._in_order:
            rows, row = self.trial.fresh(f"{terms[-1]}_b"), self.trial.fresh(f"{terms[-1]}_t")
            splits.append(Split(terms[-1], COLUMN_ROWS, "min", rows, row))
            terms[-1:] = [rows, outer, row]
            inside = self._kept(outer, inside)
        elif chains > 1:
            sums = self.trial.fresh(f"{self._sums}_part")
            splits.insert(0, Rfactor(terms[-1], chains, sums))
            terms[-1:] = [f"{terms[-1]}_o", f"{terms[-1]}_l"]
            inside = [Unroll(terms[-1]), *self._by_chain(sums, chains), *inside]
        if not self.trial.take(*splits, Reorder((*terms, across, lane)), *inside):
            return False
        return self.trial.fused_prefix(shared[:PARALLEL], Parallel) or parts == 1

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
    def _sums(self) -> str:
        return self.nest.allocations[0].name

    @property
    def _vectors(self) -> int:
        return -(-self.width // self.lanes)

    @property
    def _ragged(self) -> bool:
        """True if the last vector of a row is masked."""
        return self.width % self.lanes != 0

    @property
    def _most(self) -> int:
        """Largest number of vectors of sums in registers."""
        return int(COLUMN_SUMS * self.machine.registers)

    @cached_property
    def _in_order(self) -> bool:
        """True if rows come from beyond L2, and their sums fit in L1 but not in registers."""
        sums = self._vectors * self.machine.vector_bytes
        far = not self.memory.holds(read_bytes(self.nest), 2, ALL) and self.memory.holds(sums, 1)
        return far and self._vectors > self._most

    @property
    def _others(self) -> list[str]:
        return [n for n in self.nest.names if n != self.vector]

    def _count(self, term: str) -> int:
        loops = self.trial.nest(self.vector).inner_loops
        return next(constant_extent(s) or 0 for s in loops if s.var == term)

    def _piece(self) -> tuple[int, Tail]:
        """Return the number of vectors in a piece of a row, and the tail of pieces of that size."""
        vectors = self._vectors
        if self._in_order and not self._ragged:
            return max(n for n in range(1, COLUMN_VECTORS + 1) if vectors % n == 0), "exact"
        if vectors <= self._most or self._in_order:
            return vectors, "guard" if self._ragged else "exact"
        found = max(n for n in range(1, self._most + 1) if vectors % n == 0)
        if not self._ragged and 2 * found >= self._most:
            return found, "exact"
        return -(-vectors // -(-vectors // self._most)), "overlap"

    def _enough(self, shared: list[str], size: int) -> bool:
        """Return True if threads have enough to share without parts, or there is too little to be shared."""
        counts = {n: self.nest.extent(n) for n in self._others}
        iterations = prod(counts.get(n) or self._vectors // size for n in shared)
        cores, little = self.machine.cores, read_bytes(self.nest) < self.memory.usable(2, COLUMN_LITTLE)
        return little or iterations >= TURNS * cores or iterations % cores == 0

    def _parts(self, count: int) -> int:
        """Return a power of two, at most the number of cores, however many threads will run."""
        parts = 1
        while 2 * parts <= min(self.machine.cores, count, PARTS):
            parts *= 2
        return parts

    def _divided(self, term: str, parts: int, part: str, rest: str) -> bool:
        """Give each thread a part of the rows, whose sums are added up at the end, in lanes."""
        sums = self.trial.fresh(f"{self._sums}_part")
        whole, (across, lane) = f"{sums}_{self.vector}", (self.trial.fresh(f"{sums}_{end}") for end in "vl")
        count = self._count(term)
        each = -(-count // parts)
        return self.trial.take(
            Split(term, each, "exact" if count % each == 0 else "min", part, rest),
            Divide(part, self.trial.nest(self.vector).names[0], sums),
            Split(whole, self.lanes, "guard" if self._ragged else "exact", across, lane),
            Vectorize(lane),
        )

    def _chains(self, size: int, count: int) -> int:
        """Return the number of sums of each result that hide the latency of an addition, if rows are narrow."""
        chains = 1
        while chains * size < self.machine.latency and count % (2 * chains) == 0 and count >= 2 * COLUMN_ROWS * chains:
            chains *= 2
        return chains

    def _by_chain(self, sums: str, chains: int) -> list[Step]:
        """Return the steps that store several sums of each result chain by chain."""
        halves = (1 << k for k in range(chains.bit_length() - 1))
        return [Permute(sums, (2, 0, 1)), Unroll(f"{sums}_i"), *(Unroll(f"{sums}_{half}") for half in halves)]

    def _kept(self, at: str, inside: list[Step]) -> list[Step]:
        """Return the steps that hold some of the sums in registers within each iteration of a loop.

        The sums are in memory otherwise.
        """
        kept = self.trial.fresh(f"{self._sums}_kept")
        return [
            Stage(self._sums, at, "register", False, kept),
            *inside,
            Unroll(f"{kept}_0"),
            Unroll(f"{kept}_1"),
            Vectorize(f"{kept}_2"),
        ]
