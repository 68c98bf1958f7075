"""Plan of one version of a loop nest of unknown sizes: a register tile, as its condition allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from opgen.loop.nodes import Expr
from opgen.loop.walk import free_vars
from opgen.machine import Machine
from opgen.schedule.auto.generic.borders import Padding
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.nests import depends
from opgen.schedule.auto.plan import Carried, Cut, Ends, Operand, Plan, Skewed
from opgen.schedule.cost.calibration import MASKED_BYTES, OPEN_SUMS, OPEN_UNROLLED, PARALLEL


def is_masked(machine: Machine) -> bool:
    """Return True if masks are free."""
    return machine.vector_bytes >= MASKED_BYTES


@dataclass(frozen=True)
class Chosen:
    """A version: its condition on sizes, the paddings by loop of positions, and the tile's loop and positions.

    If `tile` is None, it is a tile of taps.
    """

    condition: Expr
    paddings: dict[str, Padding]
    tile: str | None = None
    positions: int = 0
    rows: tuple[str, int] | None = None
    """For a window: another loop whose positions share their reads, and its tile size."""
    carried: bool = False
    """True if the reduction's first loop goes outside of the tiles, which then divide the results."""

    def named(self, suffix: str) -> Chosen:
        """Return the version with the suffixed names of its loops."""
        borders = {f"{n}_{suffix}": p for n, p in self.paddings.items()}
        rows = None if self.rows is None else (f"{self.rows[0]}_{suffix}", self.rows[1])
        return replace(self, paddings=borders, rows=rows, tile=None if self.tile is None else f"{self.tile}_{suffix}")


@dataclass(frozen=True)
class Tiled(LaneNest):
    """Schedule of one version."""

    chosen: Chosen
    operands: Sequence[Operand]
    """Panels, without the loops in which they are made."""

    def take(self) -> bool:
        tile = self.chosen.tile
        return self.realised(self._tile_of_taps() if tile is None else self._tile_of_positions(tile))

    def _lane_cuts(self, vectors: int) -> tuple[Cut, ...]:
        """Return the cuts for lanes, some vectors together.

        They are masked if masks are free; otherwise the version's condition ensures that vectors are whole.
        """
        k = self.vector
        cut = Cut(k, vectors * self.lanes, f"{k}.o", f"{k}.i", "guard" if is_masked(self.machine) else "exact")
        if vectors == 1:
            return (replace(cut, inner=f"{k}.l"),)
        return cut, Cut(f"{k}.i", self.lanes, f"{k}.v", f"{k}.l")

    def _tile_of_positions(self, tile: str) -> Plan:
        """Return a plan with a tile of positions by vectors, and the reduction inside.

        A window's phases along the tile are inside, too.  A tile in two dimensions has all taps unrolled, with all work
        that one row serves together.
        """
        k, chosen, phases, window = self.vector, self.chosen, self.nest.phases, self.roles.is_window
        along = f"{tile}.q" if tile in phases else tile
        whole = chosen.carried or self._extent(tile) == chosen.positions
        cuts = [Cut(n, step, f"{n}.q", f"{n}.p") for n, step in phases.items()]
        within = tuple(f"{n}.p" for n in phases if window and n == tile)
        remainders = tuple(f"{n}.p" for n in phases if f"{n}.p" not in within)
        terms, skewed, unrolled = self.roles.terms, list[Skewed](), (*remainders, *self._deciding)
        if chosen.rows is not None:
            rows, count = chosen.rows
            walk = next(w for w in self.roles.walks if w.result == rows)
            cuts.append(Cut(rows, count, f"{rows}.o", f"{rows}.i"))
            terms = (walk.term, f"{rows}.i", *(n for n in terms if n != walk.term))
            skewed, unrolled = [Skewed(walk.term, f"{rows}.i", walk.factor or 1)], terms
        order = self._order(tile, {c.loop: c.outer for c in cuts}, remainders)
        carried = terms[: int(chosen.carried)]
        after = order[order.index(f"{k}.o") + 1 :]
        return Plan(
            "open_tiles",
            f"{k}.l",
            cuts=(
                *cuts,
                Cut(along, chosen.positions, f"{along}.o", f"{along}.i", "exact" if whole else "overlap"),
                *self._lane_cuts(1 if window else 2),
            ),
            order=order,
            carried=tuple(Carried(n, after[0]) for n in carried),
            terms=terms[len(carried) :],
            skewed=tuple(skewed),
            unrolled=unrolled,
            tile=(f"{along}.i", *within, *([] if window else [f"{k}.v"])),
            operands=tuple(replace(e, at=carried[0] if carried else f"{k}.o") for e in self.operands),
            threads=order[: order.index(f"{along}.o")][:PARALLEL],
            ends=(Ends(f"{along}.o", (1, -1)),) if tile in self.nest.borders and not whole else (),
        )

    def _order(self, tile: str, pieces: dict[str, str], remainders: tuple[str, ...]) -> tuple[str, ...]:
        """Return the order of loops around the tile, in which reused data stays near.

        Vectors are outside of rows.  A window's phases, and its tiles of several rows and columns, have them inside.
        """
        moving = [n for n in self.roles.positions if n != tile]
        first = moving[:1] if len(moving) > 1 and not remainders else []
        changing = [n for n in moving if n not in first and all(depends(e.indices, n) for e in self.roles.vectors)]
        rest = [n for n in moving if n not in first and n not in changing]
        vectors, tiles = f"{self.vector}.o", f"{pieces.get(tile, tile)}.o"
        outer, inner = ([pieces.get(n, n) for n in loops] for loops in ([*first, *changing], rest))
        if self.roles.is_window and (self.nest.phases or (self.chosen.rows is not None and self.chosen.positions > 1)):
            return (*outer, *inner, *remainders, tiles, vectors)
        return (*outer, vectors, *remainders, *inner, tiles)

    @property
    def _deciding(self) -> tuple[str, ...]:
        """Return the tap loops whose conditions tiles or phases decide, if they are few enough to be unrolled."""
        positions = {*self.chosen.paddings, *self.nest.phases}
        names = {n for c in self.nest.conditions if free_vars(c) & positions for n in free_vars(c)}
        taps = tuple(n for n, extent in self.roles.counts.items() if n in names and extent)
        return taps if prod(self.roles.counts[n] for n in taps) <= OPEN_UNROLLED else ()

    def _tile_of_taps(self) -> Plan:
        """Return a plan with a tile of taps, and reductions over positions inside.

        There are two vectors if registers suffice, as lines are fetched in pairs.
        """
        k, room, tiled = self.vector, int(OPEN_SUMS * self.machine.registers), list[str]()
        for n in reversed(self.roles.positions):
            if 0 < self._extent(n) <= room:
                tiled.insert(0, n)
                room //= self._extent(n)
        order = (*(n for n in self.roles.positions if n not in tiled), f"{k}.o")
        within = {w.term for w in self.roles.walks if w.result in tiled}
        paddings = {n: p for n, p in self.chosen.paddings.items() if p.short is not None and n in within}
        return Plan(
            "open_tiles",
            f"{k}.l",
            cuts=self._lane_cuts(min(2, room)),
            order=order,
            terms=self.roles.terms,
            tile=(*tiled, *([f"{k}.v"] if room > 1 else [])),
            threads=order[:PARALLEL],
            ends=tuple(Ends(n, (max(1, p.beyond), -max(1, p.beyond))) for n, p in paddings.items()),
        )
