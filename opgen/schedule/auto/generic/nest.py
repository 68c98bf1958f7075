"""Loop nests of unknown sizes: symbolic specialisation into versions, each with a register tile.

The conditions on a call's sizes are tested once, before any work (`version`): whether tiles fit, and how the border is
placed.  In each version the first and the last tile are peeled, so that their taps are decided as for known sizes.
Calls that match no version run the remaining loop nest, in masked lanes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod

from opgen.locks import cached_property
from opgen.loop import build as b
from opgen.loop.nodes import Expr
from opgen.schedule.auto.copies.prepare import pack_strided
from opgen.schedule.auto.generic.borders import Border, Padding, borders, paddings
from opgen.schedule.auto.generic.tiles import Chosen, Tiled, is_masked
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.nests import depends, own_axis, with_last, worth_lanes
from opgen.schedule.auto.plan import Operand
from opgen.schedule.cost.calibration import (
    OPEN_PHASES,
    OPEN_POSITIONS,
    OPEN_SMALL,
    OPEN_TAPS,
    OPEN_TAPS_MOST,
    OPEN_TILES,
    OPEN_UNROLLED,
    POSITIONS,
)
from opgen.schedule.steps import Version


@dataclass(frozen=True)
class GenericNest(LaneNest):
    """Versions of one loop nest, with contiguous results along the loop `vector`."""

    @property
    def legal(self) -> bool:
        return self.nest.extent(self.vector) is None

    def take(self) -> bool:
        """Make as many versions as are legal; return False if there are none."""
        if self.roles.is_window:
            packed = pack_strided(self.nest, self.vector, self.trial, self.machine.vector_bytes)
            return worth_lanes(packed, self.vector) and replace(self, nest=packed).versions(())
        panels = self._panels()
        return bool(panels or worth_lanes(self.nest, self.vector)) and self.versions(panels)

    def versions(self, panels: Sequence[Operand]) -> bool:
        made = 0
        for chosen in self._versions():
            made += self.trial.attempt(partial(self._version, chosen, panels, f"v{made + 1}"))
        return made > 0

    def _panels(self) -> list[Operand]:
        """Return panels of all reads of the lanes with a stride, or in distant lines; empty if one read has no panel.

        The lines that a block of lanes reads are a row of the input apart.  If that is a power of two they share few
        sets of a cache, for any cache size.  A copy of the block avoids both.
        """
        found: dict[str, Operand] = {}
        inputs = {i.name for i in self.trial.kernel.inputs}
        for load in self.roles.vectors:
            axis, rank = own_axis(load, self.vector), len(load.indices)
            if axis is None or load.buffer not in inputs or load.buffer in found:
                return []
            lanes = self.lanes if axis == rank - 1 else 0
            found[load.buffer] = Operand(load.buffer, "panel", with_last(rank, axis), ending="panel", lanes=lanes)
        return list(found.values())

    def _version(self, chosen: Chosen, panels: Sequence[Operand], suffix: str) -> bool:
        """Make a version and its schedule."""
        loop = f"{self.vector}_{suffix}"
        return (
            self.trial.take(Version(self.nest.names[0], chosen.condition, suffix))
            and Tiled(
                self.trial.nest(loop), self.trial, loop, self.lanes, self.machine, chosen.named(suffix), panels
            ).take()
        )

    # The calls that get a version -------------------------------------------------------------------

    def _versions(self) -> Iterator[Chosen]:
        at_borders, phases, window = borders(self.nest), self.nest.phases, self.roles.is_window
        if not set(phases) <= set(at_borders) or (phases and self._taps > OPEN_UNROLLED):
            return  # phases would remain undecided
        tile = next((n for n in self._reused if self.nest.extent(n) is None), None)
        if set(self.roles.terms) & set(at_borders) and (tile is None or window):
            for condition, chosen in _bordered(at_borders):
                yield Chosen(b.both(condition, self._wide), chosen)
        elif tile in at_borders:
            if window and not phases:
                yield from self._blocked(at_borders)
            needed = {n: e for n, e in at_borders.items() if n == tile or n in phases}
            positions = OPEN_PHASES if phases and window else POSITIONS
            for condition, chosen in _bordered(needed, tile, positions, not window):
                yield Chosen(b.both(condition, self._wide), chosen, tile, positions)
        elif tile is not None and not phases and tile not in self.nest.borders:
            yield from self._plain(tile)

    def _plain(self, tile: str) -> Iterator[Chosen]:
        """Yield versions without borders.

        If tiles divide the results and scalars are contiguous along the tile, the outermost reduction is carried, so
        that its operands stay near.
        """
        size = next(s.stop for s in self.nest.loops if s.var == tile)
        positions = POSITIONS
        if all(self.roles.along(e, tile) for e in self.roles.scalars if depends(e.indices, tile)):
            positions = OPEN_POSITIONS
            divided = b.compare("eq", b.mod(size, positions), 0)
            some = b.compare("ge", self.nest.inner_loops[0].stop, 1)
            yield Chosen(b.both(b.both(divided, some), self._wide), {}, tile, positions, carried=True)
        yield Chosen(b.both(b.compare("ge", size, positions), self._wide), {}, tile, positions)

    def _blocked(self, at: dict[str, Border]) -> Iterator[Chosen]:
        """Yield versions of a window with few taps: tiles of rows too, if these divide the map; a small map as a
        whole.
        """
        found = [n for n in self._reused if n in at][:2]
        if len(found) < 2 or self._taps > OPEN_TAPS_MOST:
            return
        along, down = (next(paddings(at[n])) for n in found)
        borders = dict(zip(found, (along, down), strict=True))
        height, width = b.var(down.border.small), b.var(along.border.small)
        few = self._taps <= OPEN_TAPS
        for rows, columns in (OPEN_TILES[0], OPEN_TILES[2], OPEN_TILES[1]) if few else OPEN_TILES[:-1]:
            fits = b.both(b.compare("ge", width, along.least(columns)), b.compare("eq", b.mod(height, rows), 0))
            if columns == 1:
                fits = b.both(fits, b.compare("le", width, OPEN_SMALL))
            condition = b.both(b.both(along.condition(), down.condition()), b.both(fits, self._wide))
            yield Chosen(condition, borders, found[0], columns, (found[1], rows))

    @cached_property
    def _reused(self) -> list[str]:
        """Return the loops, innermost first, on which some read of the lanes does not depend."""
        rows = self.roles.vectors
        return [n for n in reversed(self.roles.positions) if any(not depends(e.indices, n) for e in rows)]

    @property
    def _taps(self) -> int:
        """Return the number of taps, without loops of unknown extent."""
        return prod(extent or 1 for extent in self.roles.counts.values())

    @property
    def _wide(self) -> Expr:
        """Return the condition that vectors of a tile are whole, unless masks are free."""
        size = next(s.stop for s in self.nest.loops if s.var == self.vector)
        vectors = 1 if self.roles.is_window else 2
        return b.TRUE if is_masked(self.machine) else b.compare("eq", b.mod(size, vectors * self.lanes), 0)


def _bordered(
    at: dict[str, Border], tile: str | None = None, positions: int = 0, single: bool = False
) -> Iterator[tuple[Expr, dict[str, Padding]]]:
    """Yield conditions under which borders are known: all dimensions are padded alike.

    The tile's dimension is wide or, if `single`, just one tile.
    """
    for kind in zip(*(list(paddings(e)) for e in at.values()), strict=False):
        chosen = dict(zip(at, kind, strict=True))
        known: Expr = b.TRUE
        for name, padding in chosen.items():
            if name != tile:
                known = b.both(known, padding.condition())
        if tile is None:
            yield known, chosen
            continue
        padding = chosen[tile]
        least = padding.least(positions)
        large_enough = b.compare("ge", b.var(padding.border.small), least)
        yield b.both(b.both(padding.condition(), large_enough), known), chosen
        if single and least > positions and len(at) == 1 and padding.short == 0:
            yield b.both(padding.condition(positions), known), chosen
