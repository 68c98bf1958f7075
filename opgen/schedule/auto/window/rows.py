"""Windows with lanes along a row of the map: each tap reads the row a step further, borders are masks.

for c: for y in tiles: for x in vectors: for the rows that are read: for the results that need one: for s: lanes

If a condition selects every other place, lanes go along a phase of the row, and both phases are in one tile.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from opgen.locks import cached_property
from opgen.schedule.auto.cuts import Tiles, sizes
from opgen.schedule.auto.ends import ends_of
from opgen.schedule.auto.nests import reduces, touched_bytes
from opgen.schedule.auto.plan import Cut, Plan, Skewed
from opgen.schedule.auto.walks import Walk
from opgen.schedule.auto.window.nest import Planned
from opgen.schedule.cost.calibration import LANE_STEP, PARALLEL, RESULTS_CONFLICTING, ROWS_STREAMED, TAPS
from opgen.schedule.split import Tail


@dataclass(frozen=True)
class RowTile(Planned):
    @property
    def legal(self) -> bool:
        known = self.lanes > 1 and self.roles.known and reduces(self.nest) and len(self.nest.allocations) == 1
        return known and self._column is not None and self._only_taps

    def plan(self) -> Plan:
        row, x, along, phase = self._row, self.vector, self.vector, tuple[str, ...]()
        cuts, taps, skewed = list[Cut](), list(self.roles.terms), tuple[Skewed, ...]()
        order = [n for n in self.nest.names if n != x]
        if self._phases > 1:
            along, phase = f"{x}.q", (f"{x}.p",)
            cuts.append(Cut(x, self._phases, along, *phase))
        across = Tiles(self._extent(x) // self._phases, self.lanes)
        tail: Tail = "exact" if across.tail == "exact" else "guard" if across.count == 1 else "overlap"
        cuts.append(Cut(along, self.lanes, f"{x}.o", f"{x}.l", tail))
        ends = ends_of(self.nest, x, across, self._reach, self._phases) if x in self.nest.borders else ()
        if row is not None:
            y, high = row.result, Tiles(self._extent(row.result), self._height(row))
            cuts.append(high.cut(y))
            order = [*(n for n in order if n != y), f"{y}.o"]
            taps.insert(1, f"{y}.i")
            skewed = () if row.factor is None else (Skewed(row.term, f"{y}.i", row.factor),)
            reach = row.reach(self._extent(row.term)) if y in self.nest.borders else 0
            ends += ends_of(self.nest, y, high, reach)
        stay = [e.loop for e in ends]
        return Plan(
            "window_rows",
            f"{x}.l",
            cuts=tuple(cuts),
            order=(*order, f"{x}.o"),
            terms=(*taps, *phase),
            skewed=skewed,
            unrolled=(*taps, *phase),
            threads=tuple(n for n in order if n not in stay)[:PARALLEL],
            ends=ends,
        )

    # Structure ----------------------------------------------------------------------------------

    @cached_property
    def _phases(self) -> int:
        return self.nest.phases.get(self.vector, 1)

    @property
    def _reach(self) -> int:
        """Return the places at either end of a row whose taps may leave it, for any offset."""
        return max(1, (self._extent(self._column.term) - 1) * abs(self._column.apart)) if self._column else 0

    @cached_property
    def _column(self) -> Walk | None:
        """Return the window access along the lanes, if its reads are contiguous, or nearly so."""
        found = [w for w in self.roles.walks if w.result == self.vector and abs(w.step) <= LANE_STEP]
        near = [w for w in found if w.stride(self.nest) == w.load.dtype.bytes]
        return near[0] if near else None

    @cached_property
    def _row(self) -> Walk | None:
        column = self._column
        found = [
            w for w in self.roles.walks if column is not None and w.load == column.load and w.result != self.vector
        ]
        return found[-1] if found else None

    @property
    def _only_taps(self) -> bool:
        """Return True if the reduction has few taps: rows of them, steps along the lanes, and others within these."""
        own = [w.term for w in (self._row, self._column) if w is not None]
        if self._phases > LANE_STEP or self._extent(self.vector) % self._phases:
            return False
        few = 0 < prod(self.roles.counts.values()) <= TAPS
        return few and own == list(self.roles.counts)[: len(own)]

    def _height(self, row: Walk) -> int:
        """Return the rows of a tile: a read row serves as many as possible, unless memory is slower."""
        unit = self.nest.phases.get(row.result, 1)
        most = ROWS_STREAMED if self.memory.is_far(touched_bytes(self.nest)) else RESULTS_CONFLICTING
        return max(sizes(self._extent(row.result), unit, max(1, most // unit)))
