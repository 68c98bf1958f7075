"""Chains in which rows are independent, as in normalisation of rows.

One loop over rows goes around all loop nests.  It holds the parts of the intermediates that the last one needs.  A row
is therefore fetched from memory once, and all passes over it but the first find it in the first cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from opgen.loop.nodes import Load, Space, Var
from opgen.loop.walk import free_vars, loops_in
from opgen.machine import Machine
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.nests import Nest, consecutive_terms, contiguous_loop, depends, reduces
from opgen.schedule.auto.partial import in_partial_sums
from opgen.schedule.auto.site import lanes_of
from opgen.schedule.auto.sources import Sources, along
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import PARALLEL, TURNS
from opgen.schedule.cost.memory import Memory
from opgen.schedule.steps import ComputeAt, Parallel


@dataclass(frozen=True)
class RowChain:
    """Loop nests of a kernel; `rows` are loops of the last one, and `followers` the matching loops of the others."""

    sources: Sources
    last: Nest
    rows: tuple[str, ...]
    followers: dict[int, dict[str, str]]
    machine: Machine

    @staticmethod
    def of(sources: Sources, machine: Machine) -> RowChain | None:
        """Return the rows of a chain, if every loop nest splits exactly into them; else None."""
        nests = sources.nests
        ends = [nest for nest in nests if sources.made_by(nest) is None]
        known = all(nest.extent(n) is not None for nest in nests for n in nest.names)
        if len(ends) != 1 or ends[0] is not nests[-1] or not known or len(nests) < 2:
            return None
        last = ends[0]
        vector = contiguous_loop(last)
        lanes = vector is not None and not (reduces(last) and consecutive_terms(last) is not None)
        names = [n for n in last.names if not (lanes and n == vector)]
        for count in range(len(names), 0, -1):
            followers = _followers(sources, last, tuple(names[:count]))
            found = None if followers is None else RowChain(sources, last, tuple(names[:count]), followers, machine)
            if found is not None and found._pays:
                return found
        return None

    def run(self, trial: Trial, alone: Callable[[Nest], None]) -> bool:
        """Make the loop over rows, and all that is in it; return False if that is illegal."""
        row, count = self.rows[-1], self.last.extent(self.rows[0]) or 1
        enough = count % self.machine.cores == 0 or count >= TURNS * self.machine.cores
        before = [Parallel(self.rows[0])] if enough or len(self.rows) == 1 else []
        made = (ComputeAt(buffer, row, self._space(buffer)) for buffer in reversed(self.sources.writers))
        self._summed(self.last, trial)
        if not trial.take(*before, *made):
            return False
        if not before:
            trial.fused_prefix(self.rows[:PARALLEL], Parallel)
        for nest in self.sources.nests:
            own = self._own(nest)
            left = {loop.var for loop in loops_in(trial.kernel.body)}
            if own and own[-1] in left:
                alone(trial.nest(own[-1]))
            elif not own and nest is not self.last:  # within a row only its sum is left
                self._summed(nest, trial)
        return True

    def _summed(self, nest: Nest, trial: Trial) -> None:
        """Compute a row's sum, if there is one, in lanes."""
        if not nest.inner_loops:
            return
        loop, lanes = nest.inner_loops[-1], lanes_of(nest, self.machine, None)
        partial = trial.fresh(f"{nest.allocations[0].name}_partial")
        in_partial_sums(trial, loop.var, constant_extent(loop), partial, lanes, self.machine.latency)

    def _own(self, nest: Nest) -> list[str]:
        """Return the loops of a loop nest within a row."""
        rows = self.followers[id(nest)].values()
        return [n for n in nest.names if n not in rows]

    @property
    def _pays(self) -> bool:
        """Return True if rows pay.

        Lanes must go along rows in each loop nest.  Data common to all rows, and a row itself, must stay in near
        caches.
        """
        nests, memory = self.sources.nests, Memory(self.machine)
        shared = {e.buffer for nest in nests for e in nest.outside_loads if self._common(nest, e)}
        read = {e.buffer for nest in nests for e in nest.outside_loads} | set(self.sources.writers)
        rows = prod(self.last.extent(n) or 1 for n in self.rows)
        row = sum(map(self._bytes, read - shared)) // rows
        return (
            all(map(self._goes_along, nests))
            and memory.holds(sum(map(self._bytes, shared)), 1)
            and memory.holds(row, 2)
            and rows >= TURNS * self.machine.cores
        )

    def _common(self, nest: Nest, load: Load) -> bool:
        return not any(depends(load.indices, n) for n in self.followers[id(nest)].values())

    def _goes_along(self, nest: Nest) -> bool:
        own = self._own(nest)
        if own:
            return not reduces(nest) and contiguous_loop(nest) in own
        return not nest.inner_loops or consecutive_terms(nest) is not None

    def _space(self, buffer: str) -> Space:
        """Return the memory space that keeps a row of an intermediate."""
        rows = prod(self.last.extent(n) or 1 for n in self.rows)
        size = self._bytes(buffer) // rows
        if size == self.sources.element(buffer):
            return "register"
        return "stack" if size <= self.machine.l1.size else "heap"

    def _bytes(self, buffer: str) -> int:
        """Return the bytes of a buffer."""
        return self.sources.size(buffer)


def _followers(sources: Sources, last: Nest, rows: tuple[str, ...]) -> dict[int, dict[str, str]] | None:
    """Return, for each loop nest of a chain, the loop that matches each row loop of the last one; None if one lacks
    it.
    """
    found = {id(last): {n: n for n in rows}}
    for buffer in reversed(sources.writers):
        writer = sources.writers[buffer]
        for reader in sources.readers.get(buffer, []):
            loops = found.get(id(reader))
            own = None if loops is None else _followed(sources, buffer, reader, loops)
            if own is None or found.setdefault(id(writer), own) != own:
                return None
    return found if len(found) == len(sources.nests) else None


def _followed(sources: Sources, buffer: str, reader: Nest, loops: dict[str, str]) -> dict[str, str] | None:
    """Return the loops that make the row that a reader's row reads; None if it also reads other rows."""
    found: dict[str, str] = {}
    for load in (e for e in reader.outside_loads if e.buffer == buffer):
        for row, loop in loops.items():
            axes = [d for d, index in enumerate(load.indices) if loop in free_vars(index)]
            own = along(sources.writers[buffer], buffer, axes[0]) if len(axes) == 1 else None
            if own is None or load.indices[axes[0]] != Var(loop) or found.setdefault(row, own) != own:
                return None
    return found
