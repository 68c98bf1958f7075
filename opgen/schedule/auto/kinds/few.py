"""Few results at each position: lanes along the positions, not along the contiguous results.

    parallel n, h: for w.o: for r, s, k: vectors of w: all c: y[n, h, w, c] += g[n, h + r, w + s, k] * f[r, s, c, k]

With three results, vectors along them would be nearly empty.  Vectors along a row of positions are full once `g` is
packed with its rows last.  Every scalar of `f` then serves all vectors of the row, and every vector serves all results.
Terms that are skipped at the border become masks, which cost nothing in rows away from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from opgen.locks import cached_property
from opgen.loop.analysis.polynomial import linear
from opgen.loop.nodes import Binary, Const, Expr, Load
from opgen.loop.walk import free_vars
from opgen.machine import Machine
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.contraction.prepared import widened_copies
from opgen.schedule.auto.copies.prepare import pack_last, split_phases
from opgen.schedule.auto.design import Design
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.nests import Nest, contiguous_loop, depends, filled, loop_across
from opgen.schedule.auto.plan import Cut, Plan
from opgen.schedule.auto.site import Schedule, Site, lanes_of
from opgen.schedule.cost.calibration import (
    FEW_SUMS,
    FILLED_BY_POSITIONS,
    OPERANDS,
    PACKED_TERMS,
    PARALLEL,
    POSITIONS,
    UNROLLED_TAPS,
)


@dataclass(frozen=True)
class FewResults:
    name: str = "few"

    def plans(self, site: Site, machine: Machine) -> Iterator[Design]:
        """Yield the row that fills vectors best, if it fills them better than contiguous results do."""
        nest, lanes = site.nest, lanes_of(site.nest, machine, None)
        if not site.roles.is_sum or prod(site.roles.counts.values()) < PACKED_TERMS:
            return
        trial = site.trial.fork()
        rows = [Few(nest, trial, n, lanes, machine, site.schedule) for n in reversed(nest.names)]
        best = max((row for row in rows if row.legal and row.proven), key=lambda row: row.share, default=None)
        if best is not None:
            yield Design(self.name, trial, best.take, f"lanes along {best.vector}")


@dataclass(frozen=True)
class Few(LaneNest):
    """Tile of all results at one position by vectors along a row."""

    schedule: Schedule

    @property
    def legal(self) -> bool:
        """True if vectors follow the row step by step along one dimension, and each position has few results.

        Other reads must serve all positions of the row.  The results at a position are one loop that fits in registers.
        There may be no such loop if the windows of positions overlap.
        """
        vectors, scalars = self.roles.vectors, self.roles.scalars
        if not vectors or not scalars or any(axis_along(e, self.vector) < 0 for e in vectors):
            return False
        if not self._held:
            return bool(self.roles.walks) and not any(depends(e.indices, n) for e in scalars for n in self.nest.names)
        (held,) = self._held
        return held not in self.nest.borders and 0 < self._results <= int(FEW_SUMS * self.machine.registers)

    @property
    def proven(self) -> bool:
        """True if vectors are fuller along the row than along the loop that lanes would follow otherwise."""
        chosen = loop_across(self.nest, self.lanes) or contiguous_loop(self.nest)
        usual, busy = filled(self.nest, chosen, self.lanes) if chosen is not None else 0.0, 1.0
        if self.vector == chosen:
            busy = min(1.0, self._results / self.machine.latency)  # of two vectors each
            if self._joins:
                return False
        return self.share > usual * busy * FILLED_BY_POSITIONS

    @property
    def share(self) -> float:
        """Share of lanes at work along the positions of one phase."""
        extent = -(-self.width // self.nest.phases.get(self.vector, 1))
        return extent / max(1, -(-extent // self.lanes) * self.lanes)

    @property
    def _joins(self) -> bool:
        """True if a contraction's tile combines the results with the next loop of reuse, and so is large enough."""
        rows, scalars = self.roles.vectors, self.roles.scalars
        apart = [
            n for n in self.roles.positions if n not in self._held and not all(depends(e.indices, n) for e in rows)
        ]
        if not apart or not self._held:
            return False
        along = any(all(self.roles.along(e, n) for e in scalars) for n in (*self._held, apart[-1]))
        return along and POSITIONS < self._extent(apart[-1]) * self._results <= self.machine.registers - OPERANDS

    @cached_property
    def _held(self) -> tuple[str, ...]:
        """Loop over the results at one position, if there is one: scalars depend on it, vectors do not."""
        vectors, scalars = self.roles.vectors, self.roles.scalars
        rows = (n for n in self.roles.positions if not any(depends(e.indices, n) for e in vectors))
        return tuple(n for n in rows if any(depends(e.indices, n) for e in scalars))[-1:]

    @property
    def _results(self) -> int:
        return prod(map(self._extent, self._held))

    def take(self) -> bool:
        """Pack operands that follow the row contiguously, then cut the row into phases and vectors.

        All results of a tile stay in registers.
        """
        trial, row, phases = self.trial, self.vector, list[str]()
        kernel, start = trial.kernel, len(trial.steps)
        if not all(pack_last(e, axis_along(e, row), trial, self.machine.vector_bytes) for e in self.roles.vectors):
            return False
        widened_copies(trial.nest(row), row, trial, self.schedule, (kernel, start))
        if row in self.nest.phases:
            split = split_phases(trial.nest(row), trial, only=row)
            row, phases = split.quotients.get(row, row), list(split.remainders)
        return self.realised(self._plan(trial.nest(row), row, phases), row)

    def _plan(self, nest: Nest, row: str, phases: list[str]) -> Plan:
        extent, held = nest.extent(row) or 1, self._held
        vectors = -(-extent // self.lanes)
        tiles = -(-vectors // max(1, int(FEW_SUMS * self.machine.registers) // self._results))
        wide = -(-vectors // tiles) * self.lanes
        cuts = [Cut(row, wide, f"{row}.o", f"{row}.i", "exact" if extent % wide == 0 else "guard")]
        cuts.append(Cut(f"{row}.i", self.lanes, f"{row}.v", f"{row}.l"))
        outer = [n for n in nest.names if n not in (row, *held, *phases)]
        taps = self._taps(nest, row, phases) if phases or row in nest.borders else []
        order = (*outer, *phases, f"{row}.o")
        return Plan(
            "few",
            f"{row}.l",
            cuts=tuple(cuts),
            order=order,
            terms=tuple(s.var for s in nest.inner_loops),
            unrolled=(*phases, *taps),
            tile=(f"{row}.v", *held),
            threads=order[:PARALLEL],
        )

    def _taps(self, nest: Nest, row: str, phases: list[str]) -> list[str]:
        """Return the tap loops that must be unrolled so that no phase of positions tries the taps of another."""
        names = {n for c in nest.conditions if any(depends(c, p) for p in (row, *phases)) for n in free_vars(c)}
        return [
            s.var for s in nest.inner_loops if s.var in names and (constant_extent(s) or UNROLLED_TAPS) < UNROLLED_TAPS
        ]


def axis_along(load: Load, row: str) -> int:
    """Return the dimension along which a load follows a loop, one element an iteration (of one phase); -1 if none."""
    axes = [d for d, e in enumerate(load.indices) if depends(e, row)]
    return axes[0] if len(axes) == 1 and _follows(load.indices[axes[0]], row) else -1


def _follows(e: Expr, row: str) -> bool:
    if isinstance(e, Binary) and e.op == "floordiv" and isinstance(e.right, Const):
        e = e.left
    form = linear(e, row)
    return form is not None and form[0] == Const(1)
