"""Few results at each position, whose rows and columns have phases: all of them in one tile.

    for h, w: for c in 0..3: y[h, w, c] = sum(r, s, k if (h - r) % 2 == 0 and (w - s) % 2 == 0)
                                            g[(h - r) // 2, (w - s) // 2, k] * f[r, s, c, k]

The results of neighbouring rows and columns read the same rows of `g`: a tile of two by two phases by all results loads
each of its vectors once where tiles of one phase load it four times, in pieces that lie across lines.  A tile then has
enough results for two vectors, and takes all taps of the columns and of the rows' phases term by term.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from opgen.loop.walk import free_vars
from opgen.machine import Machine
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.copies.prepare import elements
from opgen.schedule.auto.ends import needed
from opgen.schedule.auto.nests import Nest
from opgen.schedule.auto.roles import Roles
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import FEW_SUMS, PHASE_VECTORS, SCALARS_ANYWHERE
from opgen.schedule.steps import Pack, Parallel, Partition, Regroup, Reorder, Split, Unroll, Vectorize


@dataclass(frozen=True)
class Phases:
    """A tile of all `held` results of the phases of `row` and of `across`, a loop over rows, by vectors along `row`.

    `taps` meet the row, `rows` meets `across`; `others` are the other loops of the sum.
    """

    nest: Nest
    trial: Trial
    lanes: int
    row: str
    across: str
    held: str
    taps: str
    rows: str
    others: tuple[str, ...]
    vectors: int
    l1: int

    def tile(self, block: tuple[str, int] | None) -> bool:
        """Take the steps, in blocks of so many iterations of a loop if given; whether that was legal."""
        fresh, across = self.trial.fresh, self.across
        steps, outer = self.nest.phases, [n for n in self.nest.names if n not in (self.row, self.held)]
        if block is not None:
            loop, size = block
            outer_b, inner_b = fresh(f"{loop}_b"), fresh(f"{loop}_i")
            if not self.trial.take(Split(loop, size, "exact", outer_b, inner_b)):
                return False
            at = outer.index(loop)
            outer[at : at + 1] = [outer_b, inner_b]
            across = inner_b if loop == across else across
        across_q, across_p = (fresh(f"{across}_{part}") for part in "qp")
        row_o, row_i, row_q, row_p, row_v, row_l = (fresh(f"{self.row}_{part}") for part in "oiqpvl")
        rows_q, rows_p = (fresh(f"{self.rows}_{part}") for part in "qp")
        outer[outer.index(across)] = across_q
        taken = self.trial.take(
            Split(across, steps[self.across], "exact", across_q, across_p),
            Split(self.row, steps[self.row], "exact", row_q, row_p),
            Split(row_q, self.vectors * self.lanes, "guard", row_o, row_i),
            Reorder((*outer, row_o, self.rows, self.taps, *self.others, across_p, row_p, self.held, row_i)),
            Split(row_i, self.lanes, "exact", row_v, row_l),  # after what is proved of fewer loops
            Split(self.rows, steps[self.across], "guard", rows_q, rows_p),
            Regroup(self.taps, self.others[-1]),
            Regroup(rows_p, self.taps),
            *(Unroll(n) for n in (rows_p, self.taps, across_p, row_p, self.held, row_v)),
            Vectorize(row_l),
        )
        if taken:
            self.trial.fused_prefix(outer[:2], Parallel)
        return taken

    def finish(self) -> None:
        """What is done to the tile, if it was taken, once all that its blocks read is copied."""
        splits = {s.loop: s.outer for s in self.trial.steps if isinstance(s, Split)}
        if self.rows in splits:
            self._set_apart(splits[splits[self.row]], splits[self.rows])
            self._gather()

    def _gather(self) -> None:
        """Have the scalars of one term next to each other, if all of them take much of the first cache."""
        inputs = {i.name for i in self.trial.kernel.inputs}
        for load in Roles.of(self.nest, self.row).scalars:
            if elements(self.nest, load.buffer) * load.dtype.bytes * SCALARS_ANYWHERE <= self.l1:
                continue
            last = [d for d, e in enumerate(load.indices) if free_vars(e) & {self.taps, self.held}]
            order = (*(d for d in range(len(load.indices)) if d not in last), *last)
            if load.buffer in inputs and order != tuple(sorted(order)):
                self.trial.take(Pack(load.buffer, order, self.trial.fresh(f"{load.buffer}_gathered")))

    def _set_apart(self, tiles: str, rows: str) -> None:
        """Bodies of their own where not all lanes, or not all phases, have a part."""
        steps, nest = self.nest.phases, self.nest
        size = self.vectors * self.lanes * steps[self.row]
        extent = nest.extent(self.row) or 0
        count = -(-extent // size)
        cuts = needed(nest, self.row, (1, -1), size) if extent % size == 0 else (1, -1)
        if cuts[: count - 1]:
            self.trial.take(Partition(tiles, cuts[: count - 1]))
        if _extent(nest, self.rows) % steps[self.across]:
            self.trial.take(Partition(rows, (-1,)))


def _extent(nest: Nest, loop: str) -> int:
    """The extent of a loop of the sum; 0 if it is not constant."""
    return next((constant_extent(s) or 0 for s in nest.inner_loops if s.var == loop), 0)


def joint_phases(nest: Nest, trial: Trial, machine: Machine, lanes: int, row: str, held: str) -> Phases | None:
    """The tile for a nest, if two of its loops have phases and their taps are loops by themselves."""
    steps = nest.phases
    others = [n for n in nest.names if n in steps and n != row]
    if row not in steps or len(others) != 1 or any((nest.extent(n) or 1) % steps[n] for n in (row, *others)):
        return None
    (across,), inner = others, [s.var for s in nest.inner_loops]
    met = [[n for n in inner if any({n, loop} <= free_vars(c) for c in nest.conditions)] for loop in (across, row)]
    rest = tuple(n for n in inner if n not in (*met[0], *met[1]))
    extent = -(-(nest.extent(row) or 0) // steps[row])
    most = int(FEW_SUMS * machine.registers)
    vectors = min(most // ((nest.extent(held) or 1) * prod(steps[n] for n in (row, across))), -(-extent // lanes))
    if any(len(found) != 1 for found in met) or met[0] == met[1] or not rest or vectors < PHASE_VECTORS:
        return None
    if not nest.borders.isdisjoint(rest):
        return None
    return Phases(nest, trial, lanes, row, across, held, met[1][0], met[0][0], rest, vectors, machine.l1.size)
