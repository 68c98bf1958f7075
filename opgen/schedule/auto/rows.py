"""Reductions along what lies consecutively: partial results in lanes, then a tree.

A sum over a row has one chain of additions; as many partial sums as hide the latency of an addition, a register of
lanes each, run at the speed of memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from opgen.loop.nodes import For, Store
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.nests import Nest, depends, is_contiguous
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import PARALLEL, REDUCED_AT_ONCE
from opgen.schedule.steps import Parallel, Partition, Rfactor, Split, Step, Unroll, Vectorize


@dataclass(frozen=True)
class Rows:
    nest: Nest
    trial: Trial
    lanes: int
    chains: int
    """Registers of partial results that hide the latency of one operation."""

    def run(self) -> bool:
        loop = self.along(self.nest)
        if loop is None:
            return False
        partial = self.trial.fresh(f"{self.nest.allocations[0].name}_partial")
        if not in_partial_sums(self.trial, loop.var, constant_extent(loop), partial, self.lanes, self.chains):
            return False
        self.trial.fused_prefix(self.nest.names[:PARALLEL], Parallel)
        return True

    @staticmethod
    def along(nest: Nest) -> For | None:
        """The innermost loop of the reduction, if most of what it reads lies consecutively along it."""
        if not nest.inner_loops or len(nest.allocations) != 1:
            return None
        loop = nest.inner_loops[-1]
        touched = [e for e in nest.outside_loads if depends(e.indices, loop.var)]
        consecutive = sum(is_contiguous(e, loop.var, nest.shapes) for e in touched)
        return loop if touched and 2 * consecutive > len(touched) else None


@dataclass(frozen=True)
class Whole:
    """A reduction of all there is to one number: partial results in lanes along the innermost loop."""

    nest: Nest
    trial: Trial
    lanes: int
    chains: int

    def run(self) -> bool:
        if len(self.nest.results) != 1 or not isinstance(self.nest.core, Store):
            return False
        result, loop = self.nest.results[0], self.nest.loops[-1]
        extents = [self.nest.extent(n) for n in self.nest.names]
        few = prod(n or REDUCED_AT_ONCE for n in extents) < REDUCED_AT_ONCE
        if few or any(depends(result.indices, n) for n in self.nest.names):
            return False
        touched = [e for e in self.nest.outside_loads if depends(e.indices, loop.var)]
        consecutive = sum(is_contiguous(e, loop.var, self.nest.shapes) for e in touched)
        if 2 * consecutive <= len(touched):
            return False
        partial = self.trial.fresh(f"{result.buffer}_partial")
        return in_partial_sums(self.trial, loop.var, constant_extent(loop), partial, self.lanes, self.chains)


def in_partial_sums(trial: Trial, loop: str, extent: int | None, partial: str, lanes: int, chains: int) -> bool:
    """A reduction in partial results, in as many registers as hide the latency of one operation."""
    factor = _factor(extent, lanes, chains)
    if factor < 2 or not trial.take(Rfactor(loop, factor, partial)):
        return False
    if extent is None or (extent % factor and extent > factor):
        trial.take(Partition(f"{loop}_o", (-1,)))  # only the last step needs masks
    _in_lanes(trial, f"{loop}_l", factor, lanes)
    _in_lanes(trial, f"{partial}_i", factor, lanes)
    width = factor // 2
    while width > 1:
        trial.take(Vectorize(f"{partial}_{width}"))
        width //= 2
    return True


def _factor(extent: int | None, lanes: int, chains: int) -> int:
    """Registers enough for the latency, fewer for a short loop, none for a very short one."""
    factor = chains * lanes
    while extent is not None and factor > extent:
        factor //= 2
    return factor if factor >= lanes else 0


def _in_lanes(trial: Trial, loop: str, factor: int, lanes: int) -> None:
    steps: list[Step] = [Vectorize(loop)]
    if factor > lanes:
        inner = f"{loop}_v"
        steps = [Split(loop, lanes, "exact", f"{loop}_u", inner), Vectorize(inner), Unroll(f"{loop}_u")]
    trial.take(*steps)
