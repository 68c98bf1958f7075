"""Blocked products of matrices: the loops that all kinds of them share, for any sizes.

    outside: carried terms: blocks of vectors: between: tiles: terms: a tile of positions by vectors

The operands of a block's vectors may be copied into a panel, so that they are contiguous and near for all tiles.  The
first tile fills the panel while it computes, or it is made before.  If terms are carried, partial sums are kept in the
results between blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

from opgen.locks import cached_property
from opgen.loop.nodes import Load, Store
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.nests import own_axis, with_last
from opgen.schedule.auto.plan import Ahead, Carried, Cut, Handle, Operand, Plan, Result
from opgen.schedule.cost.calibration import PRODUCT_POSITIONS, PRODUCT_VECTORS, TURNS


@dataclass(frozen=True)
class Blocks:
    """Decisions about such a product.

    `tiled` is the loop over positions that is tiled, and `between` holds those between blocks of vectors and its tiles.
    `carried` are loops of the sum.  If `block` is not 0, the first of its other `terms` has blocks of `block`
    iterations.  The next part of each buffer in `ahead` is prefetched.  `crosswise` results are transposed.
    """

    tiled: str
    terms: tuple[str, ...]
    between: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()
    block: int = 0
    ahead: tuple[str, ...] = ()
    crosswise: bool = False


@dataclass(frozen=True)
class Blocked(LaneNest):
    """A product of the lanes' operand and of scalars, in whole tiles."""

    @cached_property
    def reads(self) -> tuple[Load, ...]:
        """Return the lanes' operand and the scalars, in the type that is computed with; empty if there are others."""
        found = self.roles.pair
        return () if found is None or found[1].dtype != found[1].dtype.compute_type else found

    @property
    def element(self) -> int:
        """Return the bytes of an element of a panel or of a sum."""
        return self.roles.vectors[0].dtype.compute_type.bytes

    @property
    def fills_tiles(self) -> bool:
        """Return True if whole tiles fill the lanes' loop, and there are registers for them."""
        enough = self.machine.registers > PRODUCT_POSITIONS * PRODUCT_VECTORS + PRODUCT_VECTORS + 1
        return enough and self.width % (PRODUCT_VECTORS * self.lanes) == 0

    @property
    def blocks(self) -> int:
        """Return the number of blocks of vectors."""
        return self.width // (PRODUCT_VECTORS * self.lanes)

    @property
    def even(self) -> bool:
        """Return True if there are enough blocks of vectors for threads to share."""
        return self.blocks >= TURNS * self.machine.cores or self.blocks % self.machine.cores == 0

    def made(self, kind: str, b: Blocks) -> bool:
        """Take the steps of a product in blocks; return False if one was illegal.

        Threads share blocks of vectors, or the loops inside of them.
        """
        k, x, (first, *others) = self.vector, b.tiled, b.terms
        cuts, carried, terms = [Cut(k, PRODUCT_VECTORS * self.lanes, f"{k}.o", f"{k}.i")], b.carried, b.terms
        if b.block:
            cuts.append(Cut(first, b.block, f"{first}.o", f"{first}.i"))
            carried, terms = (*carried, f"{first}.o"), (f"{first}.i", *others)
        panel = self._panel(terms[-1] if self.even and not b.between else None)
        places = self.trial.nest(k).extent(x) or 1
        size = -(-places // -(-places // PRODUCT_POSITIONS))
        at = (f"{k}.o", *b.between)[-1]
        plan = Plan(
            kind,
            f"{k}.l",
            cuts=(
                *cuts,
                Cut.even(x, places, size, first=panel.filled is not None),
                Cut(f"{k}.i", self.lanes, f"{k}.v", f"{k}.l"),
            ),
            order=(f"{k}.o", *b.between, f"{x}.o"),
            carried=tuple(Carried(n, f"{k}.o") for n in carried),
            terms=terms,
            tile=(f"{x}.i", f"{k}.v"),
            ahead=tuple(
                Ahead(n, (f"{k}.o" if n == panel.buffer else f"{x}.o", *b.between, *carried)[-1], terms[-1])
                for n in b.ahead
            ),
            operands=(panel,),
            results=tuple(Result(s.buffer, self._lanes_last(s), at) for s in self.nest.results if b.crosswise),
            threads=(f"{k}.o" if self.even else (f"{x}.o", *b.between)[-1],),
        )
        return self.realised(plan)

    def _panel(self, filled: Handle | None) -> Operand:
        """Return the panel of a block's vectors: filled in a loop of the first tile, if one is given, or transposed."""
        rows = self.roles.vectors[0]
        order = self._lanes_last(rows)
        if order != tuple(range(len(order))):
            return Operand(rows.buffer, "panel", order, f"{self.vector}.o", "panel", wide=True)
        return Operand.in_rows(rows.buffer, len(order), f"{self.vector}.o", self.lanes, filled)

    def _lanes_last(self, access: Load | Store) -> tuple[int, ...]:
        """Return the dimensions of an access, that of the lanes last."""
        axis = own_axis(access, self.vector)
        return with_last(len(access.indices), len(access.indices) - 1 if axis is None else axis)
