"""Lanes along one loop, everything else as it is.

    parallel for n, y: for x: for c.o: vector for c.l: y[n, y, x, c] = f(a[n, y, x, c], bias[c])

If results are not contiguous along the same loop as reads, lanes follow the reads.  A row of results is then kept with
its lanes contiguous, and transposed when it is copied out.  Bytes are gathered by lanes.  The loop over blocks of lanes
is then outermost, so that cache lines of the rows are read again while they are in cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from opgen.machine import Machine
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.cuts import tails_of
from opgen.schedule.auto.nests import (
    Nest,
    copies_rows,
    in_short_steps,
    loop_of_reads,
    own_axis,
    reduces,
    updates,
    width_in_bytes,
    with_last,
    worth_lanes,
)
from opgen.schedule.auto.non_temporal import non_temporal_results
from opgen.schedule.auto.plan import Cut, Plan, Result
from opgen.schedule.auto.site import Site, lanes_of
from opgen.schedule.cost.calibration import PARALLEL, ROWS_SHARED, STRIDES, TERMS_UNROLLED


@dataclass(frozen=True)
class Elementwise:
    name: str = "elementwise"

    def plans(self, site: Site, machine: Machine) -> Iterator[Plan]:
        if updates(site.nest):
            return
        if site.roles.lanes is not None:
            yield from self._along(site, site.roles.lanes, machine)
        elif (across := self._across(site)) is not None:
            loop, transposed = across
            yield from self._along(site, loop, machine, transposed)
            yield from self._along(site, loop, machine)

    def _along(self, site: Site, vector: str, machine: Machine, transposed: Result | None = None) -> Iterator[Plan]:
        """Yield plans with lanes along a loop, if enough of their reads and writes are contiguous."""
        nest, extent = site.nest, site.nest.extent(vector)
        lanes = lanes_of(nest, machine, extent, vector)
        apart = not worth_lanes(nest, vector)
        short_rows = reduces(nest) and bool(_few_terms(nest)) and in_short_steps(nest, vector, STRIDES)
        scattered = apart and not short_rows and not in_short_steps(nest, vector)
        if (
            lanes < 2
            or (apart and reduces(nest) and not short_rows)
            or (scattered and width_in_bytes(nest, vector) > 1)
        ):
            return
        outer, lane = f"{vector}.o", f"{vector}.l"
        others = tuple(n for n in nest.names if n != vector)
        tails = tails_of(extent, lanes)
        across = vector != site.roles.lanes
        most = 1 if across else PARALLEL
        for tail in tails:
            whole = tail == "overlap" or transposed is not None or copies_rows(nest, vector) or _enough(nest, others)
            order = (outer, *others) if scattered else (*others, outer)
            yield Plan(
                self.name,
                lane,
                cuts=(Cut(vector, lanes, outer, lane, tail),),
                order=order,
                tile=_few_terms(nest),
                results=self._stored(site, vector, lanes, machine) if transposed is None else (transposed,),
                threads=(others if whole and not scattered else order)[:most],
                otherwise=reduces(nest) or apart or tail != tails[0] or (transposed is None and across),
            )

    @staticmethod
    def _stored(site: Site, vector: str, lanes: int, machine: Machine) -> tuple[Result, ...]:
        return () if reduces(site.nest) else non_temporal_results(site, site.nest.extent(vector), lanes, machine)

    @staticmethod
    def _across(site: Site) -> tuple[str, Result] | None:
        """Return the loop along which all reads are contiguous, and the result to transpose for it."""
        nest = site.nest
        if reduces(nest) or not site.roles.known or not nest.results:
            return None
        loop = loop_of_reads(nest)
        result = nest.results[0]
        rows = [n for n in nest.names if n != loop][:-1]
        axis = None if loop is None else own_axis(result, loop)
        if loop is None or axis is None or not (site.around or rows):
            return None
        at = site.around[-1] if site.around else rows[-1]
        return loop, Result(result.buffer, with_last(len(result.indices), axis), at)


def _few_terms(nest: Nest) -> tuple[str, ...]:
    """Return the loops of a sum of few terms, for which a loop would take longer than the terms."""
    terms = [(s.var, constant_extent(s) or TERMS_UNROLLED + 1) for s in nest.inner_loops]
    return tuple(n for n, _ in terms) if prod(e for _, e in terms) <= TERMS_UNROLLED else ()


def _enough(nest: Nest, loops: tuple[str, ...]) -> bool:
    """Return True if threads have enough to share without the vectors of a row.

    Sharing these too would cost divisions to recover their positions.
    """
    return prod(nest.extent(n) or 1 for n in loops) >= ROWS_SHARED
