"""Few results at each position, of maps whose sizes are not known: a version with lanes along rows of positions.

As `contraction/few.py` has it, where a row is wide enough for a tile of vectors.  The tiles of a row overlap at its
end, the first and the last one are loops of their own: so their masks are constants.
"""

from __future__ import annotations

from dataclasses import dataclass

from opgen.loop import build as b
from opgen.loop.nodes import Load
from opgen.schedule.auto.contraction.few import axis_along, held_loop, is_row
from opgen.schedule.auto.generic.borders import Border, borders, paddings
from opgen.schedule.auto.generic.panels import Panel
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.roles import Roles
from opgen.schedule.cost.calibration import OPEN_HELD, OPEN_LANES, OPEN_ROW
from opgen.schedule.steps import Parallel, Partition, Reorder, Split, Step, Unroll, Vectorize, Version


@dataclass(frozen=True)
class GenericFew(LaneNest):
    """A version of a nest whose results lie consecutively along `vector`, few of them."""

    @property
    def legal(self) -> bool:
        extent = self.nest.extent(self.vector)
        return extent is not None and OPEN_LANES * extent < self.lanes and len(self.nest.names) > 2

    def take(self) -> bool:
        """One version; whether it was legal."""
        found = borders(self.nest)
        return any(self._along(found[n]) for n in reversed(self.nest.names[1:]) if n in found)

    def _along(self, border: Border) -> bool:
        """The version with lanes along one loop of positions."""
        row, stride = border.position, border.stride
        held = held_loop(self.nest, row, int(OPEN_HELD * self.machine.registers))
        if not is_row(self.nest, row) or held != self.vector:
            return False
        if self.nest.phases.get(row, 1) != stride or (stride > 1 and not border.backward):
            return False
        return self.trial.attempt(lambda: self._version(border))

    def _version(self, border: Border) -> bool:
        padding = next(paddings(border))
        vectors = max(1, int(OPEN_ROW * self.machine.registers) // (self.nest.extent(self.vector) or 1))
        wide = b.compare("ge", b.var(border.small), padding.least(vectors * self.lanes))
        first, suffix = self.nest.names[0], "row"
        if not self.trial.take(Version(first, b.both(padding.condition(), wide), suffix)):
            return False
        if not all(self._packed(e, border.position, f"{first}_{suffix}") for e in self._followed(border.position)):
            return False
        return self._tiled(border, f"_{suffix}", vectors)

    def _followed(self, row: str) -> list[Load]:
        return list(Roles.of(self.nest, row).vectors)

    def _packed(self, load: Load, row: str, at: str) -> bool:
        """Have what follows the row read consecutively."""
        axis = axis_along(load, row)
        source = next((i for i in self.trial.kernel.inputs if i.name == load.buffer), None)
        if axis == len(load.indices) - 1:
            return True
        return source is not None and Panel(source, axis).make(self.trial, at, None, self.lanes)

    def _tiled(self, border: Border, suffix: str, vectors: int) -> bool:
        """Classes of positions, tiles of vectors along one class, all results of each in registers."""
        row, held = border.position + suffix, self.vector + suffix
        nest, fresh = self.trial.nest(row), self.trial.fresh
        phase, along, steps = [], row, list[Step]()
        if border.stride > 1:
            along, remainder = fresh(f"{row}_q"), fresh(f"{row}_p")
            steps.append(Split(row, border.stride, "exact", along, remainder))
            phase = [remainder]
            steps.append(Reorder((*(n for n in nest.names if n not in (row, held)), remainder, along)))
        tile_o, tile_i, tile_v, tile_l = (fresh(f"{row}_{part}") for part in "oivl")
        outer = [n for n in nest.names if n not in (row, held)]
        taps = [s.var for s in nest.inner_loops]
        unrolled = [*phase, f"{border.tap}{suffix}"] if border.tap else phase
        steps += [
            Split(along, vectors * self.lanes, "overlap", tile_o, tile_i),
            Split(tile_i, self.lanes, "exact", tile_v, tile_l),
            Reorder((*outer, *phase, tile_o, *taps, tile_v, held, tile_l)),
            *(Unroll(n) for n in (*unrolled, tile_v, held)),
            Vectorize(tile_l),
        ]
        if not self.trial.take(*steps):
            return False
        self.trial.take(Parallel(outer[-1]))
        self.trial.take(Partition(tile_o, (1, -1)))
        return True
