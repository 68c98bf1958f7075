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
from opgen.loop.walk import free_vars
from opgen.machine import Machine
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.borders import Border, Padding, borders, paddings
from opgen.schedule.auto.nests import (
    Nest,
    depends,
    divisibility,
    is_contiguous,
    loops_of_reuse,
    reduces,
    width_in_bytes,
    worth_lanes,
)
from opgen.schedule.auto.prepare import pack_strided
from opgen.schedule.auto.trial import Trial
from opgen.schedule.split import Tail
from opgen.schedule.steps import Parallel, Partition, Reorder, Split, Step, Unroll, Vectorize, Version

TILE = 7
"""Positions of a tile that lie apart in memory; sizes of maps are often multiples of it."""
ROW = 8
"""Positions of a tile that lie side by side; numbers of channels are often multiples of it."""
FEW = 3
"""The same for fewer: the channels of a picture."""
ACCUMULATORS = 9
"""Most results of a window's tile of taps."""
ROWS, COLUMNS = 4, 2
"""Positions of a window's tile in two dimensions: neighbours share most of what they read."""
UNROLLED = 16
"""Most taps that are unrolled so that phases are decided."""
PARALLEL = 2
"""Most loops that are fused into the parallel one."""
MASKED = 64
"""Bytes of a vector from which on a CPU masks its lanes for nothing."""


@dataclass(frozen=True)
class Chosen:
    """A version: the condition on sizes, the tile's positions, and the paddings of the borders by position."""

    condition: Expr
    positions: int
    paddings: dict[str, Padding]
    rows: str | None = None
    """Of a window: another loop whose positions share what they read, in tiles of `ROWS`."""


@dataclass(frozen=True)
class GenericNest:
    """Versions of one nest along whose loop `vector` results lie consecutively."""

    nest: Nest
    trial: Trial
    machine: Machine
    vector: str

    def run(self) -> bool:
        """Whether there is any version."""
        nest = self.nest
        if nest.extent(self.vector) is not None or not reduces(nest) or len(nest.allocations) != 1:
            return False
        return self.trial.attempt(self._versions)

    def _versions(self) -> bool:
        nest = pack_strided(self.nest, self.vector, self.trial, self.machine.vector_bytes)
        made = 0
        if worth_lanes(nest, self.vector):
            for chosen in _versions(nest, self.vector, self._lanes, self._masked):
                made += self.trial.attempt(partial(self._version, nest, chosen, f"v{made + 1}"))
        return made > 0

    @property
    def _lanes(self) -> int:
        return max(1, self.machine.vector_bytes // width_in_bytes(self.nest))

    @property
    def _masked(self) -> bool:
        return self.machine.vector_bytes >= MASKED

    def _version(self, nest: Nest, chosen: Chosen, suffix: str) -> bool:
        """A version and its schedule."""
        if not self.trial.take(Version(nest.names[0], chosen.condition, suffix)):
            return False
        vector = f"{self.vector}_{suffix}"
        named = {f"{n}_{suffix}": p for n, p in chosen.paddings.items()}
        rows = None if chosen.rows is None else f"{chosen.rows}_{suffix}"
        return Tiled(self.trial, vector, self._lanes, chosen.positions, named, self._masked, rows).run()


def mixes(nest: Nest, vector: str) -> bool:
    """Whether some reads are the same for all lanes."""
    return any(not depends(e.indices, vector) for e in nest.outside_loads)


def tile_loop(nest: Nest, vector: str, without: Sequence[str] = ()) -> str | None:
    """The loop of positions: the innermost of many iterations on which what the lanes read does not depend."""
    found = (n for n in loops_of_reuse(nest, vector) if n not in without and nest.extent(n) is None)
    return next(found, None)


def _versions(nest: Nest, vector: str, lanes: int, masked: bool) -> Iterator[Chosen]:
    """The calls that get a version."""
    at_borders = borders(nest)
    steps = divisibility(nest)
    if not set(steps) <= set(at_borders) or (steps and _taps(nest) > UNROLLED):
        return  # nothing would decide the phases
    tile = tile_loop(nest, vector)
    inner = {s.var for s in nest.inner_loops}
    wide = b.TRUE if masked else _multiple(nest, vector, (2 if mixes(nest, vector) else 1) * lanes)
    if not mixes(nest, vector) and inner & set(at_borders):
        yield from (Chosen(b.both(c, wide), 0, p) for c, p in _bordered(at_borders, None, 0))
    elif tile in at_borders:
        positions = 4 if steps and not mixes(nest, vector) else TILE
        if not mixes(nest, vector) and not steps:
            yield from _blocked(nest, vector, at_borders, wide)
        needed = {n: e for n, e in at_borders.items() if n == tile or n in steps}
        for condition, chosen in _bordered(needed, tile, positions):
            yield Chosen(b.both(condition, wide), positions, chosen)
    elif tile is not None and not steps and not any(depends(c, tile) for c in nest.conditions):
        size = next(s.stop for s in nest.loops if s.var == tile)
        for positions in (ROW, FEW) if _side_by_side(nest, vector, tile) else (TILE,):
            yield Chosen(b.both(b.compare("ge", size, positions), wide), positions, {})


def _blocked(nest: Nest, vector: str, at: dict[str, Border], wide: Expr) -> Iterator[Chosen]:
    """Of a window with few taps: tiles of rows too, where these divide the map."""
    found = [n for n in loops_of_reuse(nest, vector) if n in at][:2]
    if len(found) < 2 or _taps(nest) > ACCUMULATORS:
        return
    along, down = (next(paddings(at[n])) for n in found)
    rows = next(s.stop for s in nest.loops if s.var == found[1])
    size = b.var(down.border.small)
    divided = b.both(b.compare("ge", size, down.least(ROWS)), b.compare("eq", b.mod(rows, ROWS), 0))
    fits = b.both(b.compare("ge", b.var(along.border.small), along.least(COLUMNS)), divided)
    condition = b.both(b.both(along.condition(), down.condition()), b.both(fits, wide))
    yield Chosen(condition, COLUMNS, dict(zip(found, (along, down), strict=True)), found[1])


def _taps(nest: Nest) -> int:
    """How many taps there are, loops of unknown extent not counted."""
    return prod(constant_extent(s) or 1 for s in nest.inner_loops)


def _multiple(nest: Nest, vector: str, step: int) -> Expr:
    size = next(s.stop for s in nest.loops if s.var == vector)
    return b.compare("eq", b.mod(size, step), 0)


def _side_by_side(nest: Nest, vector: str, tile: str) -> bool:
    """Whether what is read once for all lanes lies consecutively along the tile."""
    scalars = [e for e in nest.outside_loads if not depends(e.indices, vector) and depends(e.indices, tile)]
    return all(is_contiguous(e, tile, nest.shapes) for e in scalars)


def _bordered(at: dict[str, Border], tile: str | None, positions: int) -> Iterator[tuple[Expr, dict[str, Padding]]]:
    """Conditions under which borders are known: all dimensions padded alike; for the tile, wide or of just one tile."""
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
        if least > positions and len(at) == 1 and padding.short == 0:
            yield b.both(padding.condition(positions), known), chosen


@dataclass(frozen=True)
class Tiled:
    """The schedule of one version."""

    trial: Trial
    vector: str
    lanes: int
    positions: int
    paddings: dict[str, Padding]
    masked: bool
    rows: str | None = None

    def run(self) -> bool:
        nest = self.trial.nest(self.vector)
        if self.positions == 0:
            return self._taps(nest)
        if self.rows is not None:
            return self._block(nest, self.rows)
        remainders = self._phases(nest)
        if remainders is None:
            return False
        nest = self.trial.nest(self.vector)
        tile = self._tile(nest, remainders)
        return tile is not None and self._positions(nest, tile, remainders)

    def _tile(self, nest: Nest, remainders: Sequence[str]) -> str | None:
        found = [n for n in loops_of_reuse(nest, self.vector) if n not in remainders]
        return found[0] if found else None

    def _phases(self, nest: Nest) -> list[str] | None:
        """Loops split so that divisibility is decided; the inner parts."""
        remainders = []
        for loop, step in divisibility(nest).items():
            outer, inner = self.trial.fresh(f"{loop}_q"), self.trial.fresh(f"{loop}_p")
            if not any(self.trial.take(Split(loop, step, tail, outer, inner)) for tail in ("exact", "guard")):
                return None
            remainders.append(inner)
        return remainders

    def _lane_steps(self, vectors: int) -> tuple[list[Step], list[str], str]:
        """Splits of the vector loop, its parts inside the tile, and the part outside."""
        v_o, v_i, v_v, v_l = (self.trial.fresh(f"{self.vector}_{part}") for part in "oivl")
        tail: Tail = "guard" if self.masked else "exact"
        if vectors == 1:
            return [Split(self.vector, self.lanes, tail, v_o, v_l)], [v_l], v_o
        first = Split(self.vector, vectors * self.lanes, tail, v_o, v_i)
        return [first, Split(v_i, self.lanes, "exact", v_v, v_l)], [v_v, v_l], v_o

    def _positions(self, nest: Nest, tile: str, remainders: list[str]) -> bool:
        """A tile of positions by vectors, the reduction inside."""
        contraction = mixes(nest, self.vector)
        splits, inside, v_o = self._lane_steps(2 if contraction else 1)
        t_o, t_i = self.trial.fresh(f"{tile}_o"), self.trial.fresh(f"{tile}_i")
        exact = nest.extent(tile) == self.positions
        order = self._order(nest, tile, remainders, contraction)
        split = Split(tile, self.positions, "exact" if exact else "overlap", t_o, t_i)
        steps: list[Step] = [] if tuple(order) == nest.names else [Reorder(tuple(order))]
        outer = [{self.vector: v_o, tile: t_o}.get(n, n) for n in order]
        within = [] if contraction else [n for n in remainders if n.startswith(tile.removesuffix("_q"))]
        outer = [n for n in outer if n not in within]
        unrolled = [n for n in (*remainders, *self._unrolled(nest, tile, remainders)) if n not in within]
        taps = [s.var for s in nest.inner_loops]
        steps += [split, *splits, Reorder((*outer, *taps, t_i, *within, *inside))]
        steps += [Unroll(n) for n in (*unrolled, t_i, *within, *inside[:-1])]
        if not self.trial.take(*steps, Vectorize(inside[-1])):
            return False
        ahead = [n for n in outer[: outer.index(t_o)] if n not in remainders]
        self.trial.fused_prefix(ahead[:PARALLEL], Parallel)
        if tile in {n for c in nest.conditions for n in free_vars(c)} and not exact:
            self.trial.take(Partition(t_o, (1, -1)))
        return True

    def _block(self, nest: Nest, rows: str) -> bool:
        """Of a window: a tile in two dimensions, all taps unrolled."""
        splits, inside, v_o = self._lane_steps(1)
        tile = next(n for n in self.paddings if n != rows)
        t_o, t_i, r_o, r_i = (self.trial.fresh(f"{n}_{part}") for n in (tile, rows) for part in "oi")
        order = [n for n in nest.names if n not in (tile, rows, self.vector)]
        taps = [s.var for s in nest.inner_loops]
        steps: list[Step] = [Split(rows, ROWS, "exact", r_o, r_i)]
        steps += [Split(tile, self.positions, "overlap", t_o, t_i), *splits]
        steps.append(Reorder((*order, r_o, t_o, v_o, *taps, r_i, t_i, *inside)))
        steps += [Unroll(n) for n in (*taps, r_i, t_i)]
        if not self.trial.take(*steps, Vectorize(inside[-1])):
            return False
        self.trial.take(Parallel(r_o))
        self.trial.take(Partition(r_o, (1, -1)))
        self.trial.take(Partition(t_o, (1, -1)))
        return True

    def _order(self, nest: Nest, tile: str, remainders: list[str], contraction: bool) -> list[str]:
        """What is reused stays near: of a contraction the vectors outside of rows, of phases inside of tiles."""
        moving = [n for n in nest.names if n not in (self.vector, tile, *remainders)]
        if not contraction and remainders:
            return [*moving, *remainders, tile, self.vector]
        if not contraction:  # mostly small maps, whose rows stay near for each vector
            return [*moving[:1], self.vector, *moving[1:], tile]
        rows = [e for e in nest.outside_loads if depends(e.indices, self.vector)]
        first = moving[:1] if len(moving) > 1 and not remainders else []
        changing = [n for n in moving if n not in first and all(depends(e.indices, n) for e in rows)]
        rest = [n for n in moving if n not in first and n not in changing]
        return [*first, *changing, self.vector, *remainders, *rest, tile]

    def _unrolled(self, nest: Nest, tile: str, remainders: list[str]) -> list[str]:
        """Tap loops whose conditions the tiles, or phases, decide."""
        deciding = {tile, *remainders}
        names = {n for c in nest.conditions if free_vars(c) & deciding for n in free_vars(c)}
        known = [(s.var, constant_extent(s)) for s in nest.inner_loops if s.var in names]
        taps = [(n, e) for n, e in known if e is not None]
        return [n for n, _ in taps] if prod(e for _, e in taps) <= UNROLLED else []

    def _taps(self, nest: Nest) -> bool:
        """A tile of taps, reductions over positions inside."""
        splits, inside, v_o = self._lane_steps(1)
        room, tiled = ACCUMULATORS, []
        for n in reversed([n for n in nest.names if n != self.vector]):
            extent = nest.extent(n)
            if extent is not None and extent <= room:
                tiled.append(n)
                room //= extent
        around = [n for n in nest.names if n not in (self.vector, *tiled)]
        reductions = [s.var for s in nest.inner_loops]
        steps: list[Step] = [*splits, Reorder((*around, v_o, *reductions, *reversed(tiled), *inside))]
        steps += [*(Unroll(n) for n in tiled), Vectorize(inside[-1])]
        if not self.trial.take(*steps):
            return False
        self.trial.fused_prefix([*around, v_o][:PARALLEL], Parallel)
        for name, padding in self.paddings.items():
            border = padding.border
            after = border.reach - padding.offset
            cut = (-(-padding.offset // border.stride), -(-after // border.stride))
            if padding.short is not None and border.reach:
                self.trial.take(Partition(name, (max(1, cut[0]), -max(1, cut[1]))))
        return True
