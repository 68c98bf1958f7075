"""The schedule of one version of a nest whose sizes are not known: a register tile, as its condition allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

from opgen.loop.nodes import Expr
from opgen.loop.walk import free_vars
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.generic.borders import Padding
from opgen.schedule.auto.generic.panels import Panel, loops_of_reuse, mixes, rows
from opgen.schedule.auto.nests import Nest, depends
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import OPEN_SUMS, OPEN_UNROLLED, PARALLEL
from opgen.schedule.split import Tail
from opgen.schedule.steps import Carry, Parallel, Partition, Reorder, Skew, Split, Step, Unroll, Vectorize


@dataclass(frozen=True)
class Chosen:
    """A version: the condition on sizes, the tile's positions, and the paddings of the borders by position."""

    condition: Expr
    positions: int
    paddings: dict[str, Padding]
    rows: tuple[str, int] | None = None
    """Of a window: another loop whose positions share what they read, in tiles of so many."""
    carried: bool = False
    """Whether the reduction's first loop goes outside of the tiles, which divide the results then."""

    def named(self, suffix: str) -> Chosen:
        """The same in the version's own names of loops."""
        borders = {f"{n}_{suffix}": p for n, p in self.paddings.items()}
        rows = None if self.rows is None else (f"{self.rows[0]}_{suffix}", self.rows[1])
        return replace(self, paddings=borders, rows=rows)


@dataclass(frozen=True)
class Lanes:
    """The loop of lanes, how many a vector has, and whether masks cost nothing."""

    loop: str
    count: int
    masked: bool

    def split(self, vectors: int, fresh: Callable[[str], str]) -> tuple[list[Step], list[str], str]:
        """Splits of the loop, its parts inside the tile, and the part outside."""
        v_o, v_i, v_v, v_l = (fresh(f"{self.loop}_{part}") for part in "oivl")
        tail: Tail = "guard" if self.masked else "exact"
        if vectors == 1:
            return [Split(self.loop, self.count, tail, v_o, v_l)], [v_l], v_o
        first = Split(self.loop, vectors * self.count, tail, v_o, v_i)
        return [first, Split(v_i, self.count, "exact", v_v, v_l)], [v_v, v_l], v_o


@dataclass(frozen=True)
class Tiled:
    """The schedule of one version."""

    trial: Trial
    lanes: Lanes
    registers: int
    chosen: Chosen
    panels: Sequence[Panel] = ()

    @property
    def vector(self) -> str:
        return self.lanes.loop

    def run(self) -> bool:
        nest = self.trial.nest(self.vector)
        if self.chosen.positions == 0:
            return self._taps(nest)
        if self.chosen.rows is not None:
            return self._block(nest, *self.chosen.rows)
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
        for loop, step in nest.phases.items():
            outer, inner = self.trial.fresh(f"{loop}_q"), self.trial.fresh(f"{loop}_p")
            if not any(self.trial.take(Split(loop, step, tail, outer, inner)) for tail in ("exact", "guard")):
                return None
            remainders.append(inner)
        return remainders

    def _positions(self, nest: Nest, tile: str, remainders: list[str]) -> bool:
        """A tile of positions by vectors, the reduction inside."""
        contraction = mixes(nest, self.vector)
        splits, inside, v_o = self.lanes.split(2 if contraction else 1, self.trial.fresh)
        t_o, t_i = self.trial.fresh(f"{tile}_o"), self.trial.fresh(f"{tile}_i")
        exact = nest.extent(tile) == self.chosen.positions
        order = self._order(nest, tile, remainders, contraction)
        split = Split(tile, self.chosen.positions, "exact" if exact or self.chosen.carried else "overlap", t_o, t_i)
        steps: list[Step] = [] if tuple(order) == nest.names else [Reorder(tuple(order))]
        outer = [{self.vector: v_o, tile: t_o}.get(n, n) for n in order]
        within = [] if contraction else [n for n in remainders if n.startswith(tile.removesuffix("_q"))]
        outer = [n for n in outer if n not in within]
        taps = [s.var for s in nest.inner_loops]
        if self.chosen.carried:
            after = order[order.index(self.vector) + 1]
            steps.append(Carry(taps[0], after))
            outer.insert(outer.index({tile: t_o}.get(after, after)), taps[0])
        at = taps.pop(0) if self.chosen.carried else v_o
        unrolled = [n for n in (*remainders, *self._unrolled(nest, tile, remainders)) if n not in within]
        steps += [split, *splits, Reorder((*outer, *taps, t_i, *within, *inside))]
        steps += [Unroll(n) for n in (*unrolled, t_i, *within, *inside[:-1])]
        if not self.trial.take(*steps, Vectorize(inside[-1])):
            return False
        lanes = self.lanes.count
        width = (2 if contraction else 1) * lanes
        if not all(panel.make(self.trial, at, width, lanes) or not panel.transposed for panel in self.panels):
            return False
        ahead = [n for n in outer[: outer.index(t_o)] if n in nest.names or n == v_o]
        self.trial.fused_prefix(ahead[:PARALLEL], Parallel)
        if tile in {n for c in nest.conditions for n in free_vars(c)} and not exact:
            self.trial.take(Partition(t_o, (1, -1)))
        return True

    def _block(self, nest: Nest, rows: str, count: int) -> bool:
        """Of a window: a tile in two dimensions, all taps unrolled, all that one row serves together."""
        splits, inside, v_o = self.lanes.split(1, self.trial.fresh)
        tile = next(n for n in self.chosen.paddings if n != rows)
        t_o, t_i, r_o, r_i = (self.trial.fresh(f"{n}_{part}") for n in (tile, rows) for part in "oi")
        order = [n for n in nest.names if n not in (tile, rows, self.vector)]
        tap, factor = self._walk(rows)
        taps = [s.var for s in nest.inner_loops if s.var != tap]
        around = [v_o, r_o, t_o] if self.chosen.positions == 1 else [r_o, t_o, v_o]
        steps: list[Step] = [Split(rows, count, "exact", r_o, r_i)]
        steps += [Split(tile, self.chosen.positions, "overlap", t_o, t_i), *splits]
        steps.append(Reorder((*order, *around, tap, r_i, *taps, t_i, *inside)))
        together = self.trial.fresh(f"{tap}_{rows}")
        steps.append(Skew(tap, r_i, factor, together))
        steps += [Unroll(n) for n in (together, r_i, *taps, t_i)]
        if not self.trial.take(*steps, Vectorize(inside[-1])):
            return False
        self.trial.fused_prefix([*order[:1], around[0]], Parallel)
        self.trial.take(Partition(t_o, (1, -1)))
        return True

    def _walk(self, position: str) -> tuple[str, int]:
        """The loop of taps that meets a loop of positions, and how many taps one position is worth."""
        border = self.chosen.paddings[position].border
        return f"{border.tap}{position.removeprefix(border.position)}", -1 if border.backward else border.stride

    def _order(self, nest: Nest, tile: str, remainders: list[str], contraction: bool) -> list[str]:
        """What is reused stays near: of a contraction the vectors outside of rows, of phases inside of tiles."""
        moving = [n for n in nest.names if n not in (self.vector, tile, *remainders)]
        if not contraction and remainders:
            return [*moving, *remainders, tile, self.vector]
        if not contraction:  # mostly small maps, whose rows stay near for each vector
            return [*moving[:1], self.vector, *moving[1:], tile]
        found = rows(nest, self.vector)
        first = moving[:1] if len(moving) > 1 and not remainders else []
        changing = [n for n in moving if n not in first and all(depends(e.indices, n) for e in found)]
        rest = [n for n in moving if n not in first and n not in changing]
        return [*first, *changing, self.vector, *remainders, *rest, tile]

    def _unrolled(self, nest: Nest, tile: str, remainders: list[str]) -> list[str]:
        """Tap loops whose conditions the tiles, or phases, decide."""
        deciding = {tile, *remainders}
        names = {n for c in nest.conditions if free_vars(c) & deciding for n in free_vars(c)}
        known = [(s.var, constant_extent(s)) for s in nest.inner_loops if s.var in names]
        taps = [(n, e) for n, e in known if e is not None]
        return [n for n, _ in taps] if prod(e for _, e in taps) <= OPEN_UNROLLED else []

    def _taps(self, nest: Nest) -> bool:
        """A tile of taps, reductions over positions inside; two vectors if there is room, as lines come in pairs."""
        room, tiled = int(OPEN_SUMS * self.registers), []
        for n in reversed([n for n in nest.names if n != self.vector]):
            extent = nest.extent(n)
            if extent is not None and extent <= room:
                tiled.append(n)
                room //= extent
        splits, inside, v_o = self.lanes.split(min(2, room), self.trial.fresh)
        around = [n for n in nest.names if n not in (self.vector, *tiled)]
        reductions = [s.var for s in nest.inner_loops]
        steps: list[Step] = [*splits, Reorder((*around, v_o, *reductions, *reversed(tiled), *inside))]
        steps += [*(Unroll(n) for n in (*tiled, *inside[:-1])), Vectorize(inside[-1])]
        if not self.trial.take(*steps):
            return False
        self.trial.fused_prefix([*around, v_o][:PARALLEL], Parallel)
        for name, padding in self.chosen.paddings.items():
            border = padding.border
            after = border.reach - padding.offset
            cut = (-(-padding.offset // border.stride), -(-after // border.stride))
            if padding.short is not None and self._walk(name)[0] in tiled:
                self.trial.take(Partition(name, (max(1, cut[0]), -max(1, cut[1]))))
        return True
