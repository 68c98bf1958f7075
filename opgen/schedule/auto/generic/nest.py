"""Nests whose sizes are not known: versions for the calls that matter, each with a register tile.

What the sizes of a call decide is asked once, before any work (`version`): whether tiles fit, and how the border lies.
In each version the first and the last tile are loops of their own, so that their taps are decided as they would be if
all sizes were known.  Calls that meet no version run the nest that is left, in masked lanes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

from opgen.loop import build as b
from opgen.loop.nodes import Expr
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.copies.prepare import pack_strided
from opgen.schedule.auto.generic.borders import Border, Padding, borders, paddings
from opgen.schedule.auto.generic.panels import Panel, loops_of_reuse, mixes
from opgen.schedule.auto.generic.tiles import Chosen, Lanes, Tiled
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.nests import (
    Nest,
    depends,
    is_contiguous,
    own_axis,
    worth_lanes,
)
from opgen.schedule.auto.roles import Roles
from opgen.schedule.cost.calibration import (
    MASKED_BYTES,
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
    """Versions of one nest along whose loop `vector` results lie consecutively."""

    @property
    def legal(self) -> bool:
        return self.nest.extent(self.vector) is None

    def take(self) -> bool:
        """As many versions as are legal; whether there are any."""
        nest = self.nest
        if not mixes(nest, self.vector):
            nest = pack_strided(nest, self.vector, self.trial, self.machine.vector_bytes)
        made = 0
        panels = self._panels(nest)
        if panels or worth_lanes(nest, self.vector):
            for chosen in _versions(nest, self.vector, self.lanes, self._masked):
                made += self.trial.attempt(partial(self._version, nest, chosen, panels, f"v{made + 1}"))
        return made > 0

    def _panels(self, nest: Nest) -> list[Panel]:
        """The inputs that lanes read with a stride, or in lines that lie apart: all that they read, or none."""
        found: list[Panel] = []
        inputs = {i.name: i for i in self.trial.kernel.inputs}
        if not mixes(nest, self.vector):
            return []
        for load in Roles.of(nest, self.vector).vectors:
            axis = own_axis(load, self.vector)
            if axis is None or load.buffer not in inputs or any(load.buffer == p.buffer.name for p in found):
                return []
            found.append(Panel(inputs[load.buffer], axis))
        return found

    @property
    def _masked(self) -> bool:
        return self.machine.vector_bytes >= MASKED_BYTES

    def _version(self, nest: Nest, chosen: Chosen, panels: list[Panel], suffix: str) -> bool:
        """A version and its schedule."""
        if not self.trial.take(Version(nest.names[0], chosen.condition, suffix)):
            return False
        lanes = Lanes(f"{self.vector}_{suffix}", self.lanes, self._masked)
        return Tiled(self.trial, lanes, self.machine.registers, chosen.named(suffix), panels).run()


def tile_loop(nest: Nest, vector: str, without: Sequence[str] = ()) -> str | None:
    """The loop of positions: the innermost of many iterations on which what the lanes read does not depend."""
    found = (n for n in loops_of_reuse(nest, vector) if n not in without and nest.extent(n) is None)
    return next(found, None)


def _versions(nest: Nest, vector: str, lanes: int, masked: bool) -> Iterator[Chosen]:
    """The calls that get a version."""
    at_borders = borders(nest)
    steps = nest.phases
    if not set(steps) <= set(at_borders) or (steps and _taps(nest) > OPEN_UNROLLED):
        return  # nothing would decide the phases
    tile = tile_loop(nest, vector)
    inner = {s.var for s in nest.inner_loops}
    wide = b.TRUE if masked else _multiple(nest, vector, (2 if mixes(nest, vector) else 1) * lanes)
    if inner & set(at_borders) and (tile is None or not mixes(nest, vector)):
        for condition, chosen in _bordered(at_borders, None, 0):
            yield Chosen(b.both(condition, wide), 0, chosen)
    elif tile in at_borders:
        positions = OPEN_PHASES if steps and not mixes(nest, vector) else POSITIONS
        if not mixes(nest, vector) and not steps:
            yield from _blocked(nest, vector, at_borders, wide)
        needed = {n: e for n, e in at_borders.items() if n == tile or n in steps}
        for condition, chosen in _bordered(needed, tile, positions, mixes(nest, vector)):
            yield Chosen(b.both(condition, wide), positions, chosen)
    elif tile is not None and not steps and tile not in nest.borders:
        size = next(s.stop for s in nest.loops if s.var == tile)
        side_by_side = _side_by_side(nest, vector, tile)
        positions = OPEN_POSITIONS if side_by_side else POSITIONS
        if side_by_side:
            yield from _carried(nest, size, wide)
        yield Chosen(b.both(b.compare("ge", size, positions), wide), positions, {})


def _carried(nest: Nest, size: Expr, wide: Expr) -> Iterator[Chosen]:
    """Where tiles divide the results: what is summed outermost is carried, so that what is read for it stays near."""
    divided = b.compare("eq", b.mod(size, OPEN_POSITIONS), 0)
    some = b.compare("ge", nest.inner_loops[0].stop, 1)
    yield Chosen(b.both(b.both(divided, some), wide), OPEN_POSITIONS, {}, None, True)


def _blocked(nest: Nest, vector: str, at: dict[str, Border], wide: Expr) -> Iterator[Chosen]:
    """Of a window with few taps: tiles of rows too, where these divide the map; a small map as a whole."""
    found = [n for n in loops_of_reuse(nest, vector) if n in at][:2]
    if len(found) < 2 or _taps(nest) > OPEN_TAPS_MOST:
        return
    along, down = (next(paddings(at[n])) for n in found)
    borders = dict(zip(found, (along, down), strict=True))
    height, width = b.var(down.border.small), b.var(along.border.small)
    for rows, columns in (OPEN_TILES[0], OPEN_TILES[2], OPEN_TILES[1]) if _taps(nest) <= OPEN_TAPS else OPEN_TILES[:-1]:
        fits = b.both(b.compare("ge", width, along.least(columns)), b.compare("eq", b.mod(height, rows), 0))
        if columns == 1:
            fits = b.both(fits, b.compare("le", width, OPEN_SMALL))
        condition = b.both(b.both(along.condition(), down.condition()), b.both(fits, wide))
        yield Chosen(condition, columns, borders, (found[1], rows))


def _taps(nest: Nest) -> int:
    """How many taps there are, loops of unknown extent not counted."""
    return prod(constant_extent(s) or 1 for s in nest.inner_loops)


def _multiple(nest: Nest, vector: str, step: int) -> Expr:
    size = next(s.stop for s in nest.loops if s.var == vector)
    return b.compare("eq", b.mod(size, step), 0)


def _side_by_side(nest: Nest, vector: str, tile: str) -> bool:
    """Whether what is read once for all lanes lies consecutively along the tile."""
    scalars = [e for e in Roles.of(nest, vector).scalars if depends(e.indices, tile)]
    return all(is_contiguous(e, tile, nest.shapes) for e in scalars)


def _bordered(
    at: dict[str, Border], tile: str | None, positions: int, single: bool = False
) -> Iterator[tuple[Expr, dict[str, Padding]]]:
    """Conditions under which borders are known: all dimensions padded alike; for the tile, wide or (where a `single`
    one is wanted) of just one tile.
    """
    kinds = zip(*(list(paddings(e)) for e in at.values()), strict=False)
    for kind in kinds:
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
