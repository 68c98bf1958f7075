"""Products of matrices in blocks: the loops that all kinds of them have, whatever their sizes are.

    outside: carried terms: blocks of vectors: between: tiles: terms: a tile of positions by vectors

What the vectors of a block read may be copied into a panel, so that it lies together and near for all tiles: by the
first of them while it computes, or before.  Where terms are carried, sums wait in the results meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from opgen.loop.nodes import Load
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.nests import own_axis, with_last
from opgen.schedule.auto.plan import Ahead, Carried, Cut, Operand, Plan, Result
from opgen.schedule.cost.calibration import PRODUCT_POSITIONS, PRODUCT_VECTORS, TURNS


@dataclass(frozen=True)
class Blocks:
    """Tiles of `PRODUCT_VECTORS` vectors by positions along the loop `tiled`, of so many `places`, around which loops
    stand `outside` and `between`.  Of the sum's loops those `carried` are outside of the blocks of vectors, and so are
    the blocks of one of the `terms`, of so many iterations, where there is a `block`.  What vectors read has a `panel`,
    `filled` by the first tile, if that is a loop of its own.
    """

    tiled: str
    places: int
    terms: tuple[str, ...]
    carried: tuple[str, ...] = ()
    block: tuple[str, int] | None = None
    outside: tuple[str, ...] = ()
    between: tuple[str, ...] = ()
    panel: bool = True
    filled: bool = False
    ahead: tuple[Ahead, ...] = ()
    results: tuple[Result, ...] = ()
    threads: str = ""


@dataclass(frozen=True)
class Blocked(LaneNest):
    """A product of what lanes read and of scalars, in whole tiles."""

    @cached_property
    def reads(self) -> tuple[Load, ...]:
        """What lanes read, and the scalars, in the type that is computed with; empty if there is anything else."""
        found = self.roles.pair
        return () if found is None or found[1].dtype != found[1].dtype.compute_type else found

    @property
    def element(self) -> int:
        """Bytes of an element, of a panel or of a sum."""
        return self.roles.vectors[0].dtype.compute_type.bytes

    @property
    def fills_tiles(self) -> bool:
        """Whether whole tiles fill the lanes' loop, and there are registers for them."""
        enough = self.machine.registers > PRODUCT_POSITIONS * PRODUCT_VECTORS + PRODUCT_VECTORS + 1
        return enough and self.width % (PRODUCT_VECTORS * self.lanes) == 0

    @property
    def blocks(self) -> int:
        """How many blocks of vectors there are."""
        return self.width // (PRODUCT_VECTORS * self.lanes)

    @property
    def even(self) -> bool:
        """Whether there are blocks of vectors enough for threads to share."""
        return self.blocks >= TURNS * self.machine.cores or self.blocks % self.machine.cores == 0

    def made(self, kind: str, b: Blocks) -> bool:
        """Take the steps of a product in blocks; whether they were legal."""
        k, x, rows, carried, terms = self.vector, b.tiled, self.roles.vectors[0], b.carried, b.terms
        axis, last, block = own_axis(rows, k), len(rows.indices) - 1, PRODUCT_VECTORS * self.lanes
        if axis is None:
            return False
        cuts = [Cut(k, block, f"{k}.o", f"{k}.i")]
        if b.block is not None:
            loop, size = b.block
            cuts.append(Cut(loop, size, f"{loop}.o", f"{loop}.i"))
            carried, terms = (*carried, f"{loop}.o"), tuple(f"{loop}.i" if n == loop else n for n in terms)
        tiles = -(-b.places // PRODUCT_POSITIONS)
        cuts.append(Cut.even(x, b.places, -(-b.places // tiles), first=b.filled and axis == last))
        panel = Operand(
            rows.buffer,
            "panel",
            with_last(last + 1, axis),
            f"{k}.o",
            "panel",
            lanes=self.lanes if axis == last else 0,
            filled=terms[-1] if b.filled and axis == last else None,
            wide=True,
        )
        plan = Plan(
            kind,
            f"{k}.l",
            cuts=(*cuts, Cut(f"{k}.i", self.lanes, f"{k}.v", f"{k}.l")),
            order=(*b.outside, f"{k}.o", *b.between, f"{x}.o"),
            carried=tuple(Carried(n, f"{k}.o") for n in carried),
            terms=terms,
            tile=(f"{x}.i", f"{k}.v"),
            ahead=b.ahead,
            operands=(panel,) if b.panel else (),
            results=b.results,
            threads=(b.threads,),
        )
        return self.realised(plan)
