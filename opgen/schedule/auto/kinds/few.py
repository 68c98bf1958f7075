"""Few results at each position: lanes along the positions, not along the results that lie side by side.

    parallel n, h: for w.o: for r, s, k: vectors of w: all c: y[n, h, w, c] += g[n, h + r, w + s, k] * f[r, s, c, k]

Three lanes would leave vectors nearly empty.  Along a row of positions they are full once `g` is packed with its rows
last; every scalar of `f` then serves all vectors of the row, every vector all results.  Terms that are left out at the
border become masks, which cost nothing where the row is not near it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import prod

from opgen.loop.nodes import Binary, Const, Expr, Load
from opgen.loop.walk import free_vars
from opgen.machine import Machine
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.contraction.prepared import widened_copies
from opgen.schedule.auto.copies.prepare import pack_last, split_phases
from opgen.schedule.auto.design import Design
from opgen.schedule.auto.nests import (
    Nest,
    coefficient,
    contiguous_loop,
    depends,
    filled,
    is_contiguous,
    loop_across,
    reduces,
)
from opgen.schedule.auto.roles import Roles
from opgen.schedule.auto.site import Site, lanes_of
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import (
    FEW_SUMS,
    FILLED_BY_POSITIONS,
    OPERANDS,
    PACKED_TERMS,
    POSITIONS,
    UNROLLED_TAPS,
)
from opgen.schedule.steps import Parallel, Reorder, Split, Unroll, Vectorize


@dataclass(frozen=True)
class FewResults:
    name: str = "few"

    def plans(self, site: Site, machine: Machine) -> Iterator[Design]:
        if not reduces(site.nest):
            return
        trial = site.trial.fork()
        tile = few(site.nest, trial, machine, lanes_of(site.nest, machine, None))
        if tile is not None:
            yield Design(self.name, trial, partial(_take, tile, site), f"lanes along {tile.row}")


def _take(tile: Few, site: Site) -> bool:
    trial = tile.trial
    kernel, start = trial.kernel, len(trial.steps)
    if not tile.pack():
        return False
    widened_copies(trial.nest(tile.row), tile.row, trial, site.schedule, (kernel, start))
    return tile.tile()


@dataclass(frozen=True)
class Few:
    """A tile of all `held` results (of one, if that is no loop) by vectors along `row`."""

    nest: Nest
    trial: Trial
    machine: Machine
    lanes: int
    row: str
    held: str | None

    def pack(self) -> bool:
        """Have what follows the row read consecutively; whether it is."""
        touched = Roles.of(self.nest, self.row).vectors
        return all(pack_last(e, axis_along(e, self.row), self.trial, self.machine.vector_bytes) for e in touched)

    def tile(self) -> bool:
        """Split the row into classes and vectors, and keep all results of a tile in registers."""
        quotient, phases = self.row, []
        if self.row in self.nest.phases:
            split = split_phases(self.trial.nest(self.row), self.trial, only=self.row)
            quotient, phases = split.quotients.get(self.row, self.row), list(split.remainders)
        return self._tiled(quotient, phases)

    def _tiled(self, row: str, phases: list[str]) -> bool:
        nest, fresh = self.trial.nest(row), self.trial.fresh
        held = () if self.held is None else (self.held,)
        extent, results = nest.extent(row), prod(nest.extent(n) or 0 for n in held)
        assert extent is not None
        vectors = -(-extent // self.lanes)
        tiles = -(-vectors // max(1, int(FEW_SUMS * self.machine.registers) // results))
        vectors = -(-vectors // tiles)
        row_o, row_i, row_v, row_l = (fresh(f"{row}_{part}") for part in "oivl")
        wide = vectors * self.lanes
        outer = [n for n in nest.names if n not in (row, *held, *phases)]
        inner = [s.var for s in nest.inner_loops]
        taps = self._taps(nest, row, phases) if phases or row in nest.borders else []
        taken = self.trial.take(
            Split(row, wide, "exact" if extent % wide == 0 else "guard", row_o, row_i),
            Split(row_i, self.lanes, "exact", row_v, row_l),
            Reorder((*outer, *phases, row_o, *inner, row_v, *held, row_l)),
            *(Unroll(n) for n in (*phases, *taps)),
            *(Unroll(n) for n in (row_v, *held)),
            Vectorize(row_l),
        )
        if taken:
            self.trial.fused_prefix([*outer, *phases, row_o][:2], Parallel)
        return taken

    def _taps(self, nest: Nest, row: str, phases: list[str]) -> list[str]:
        """The tap loops that must be unrolled so that no class of positions tries the taps of another."""
        names = {n for c in nest.conditions if any(depends(c, p) for p in (row, *phases)) for n in free_vars(c)}
        return [
            s.var for s in nest.inner_loops if s.var in names and (constant_extent(s) or UNROLLED_TAPS) < UNROLLED_TAPS
        ]


def few(nest: Nest, trial: Trial, machine: Machine, lanes: int) -> Few | None:
    """The tile for a nest that is better off with lanes along positions, if it is one."""
    if len(nest.allocations) != 1 or any(nest.extent(n) is None for n in nest.names):
        return None
    if prod(constant_extent(s) or 0 for s in nest.inner_loops) < PACKED_TERMS:
        return None
    chosen = loop_across(nest, lanes) or contiguous_loop(nest)
    usual = filled(nest, chosen, lanes) if chosen is not None else 0.0
    best: tuple[float, Few] | None = None
    for row in reversed(nest.names):
        held = held_loop(nest, row, int(FEW_SUMS * machine.registers))
        if not is_row(nest, row) or (held is None and _results_apart(nest, row)):
            continue
        if held is not None and row == chosen and _joins(nest, row, held, machine):
            continue
        results = 1 if held is None else nest.extent(held) or 0
        busy = min(1.0, results / machine.latency) if row == chosen else 1.0  # of two vectors each
        share = _share(nest, row, lanes)
        if share > max(usual * busy * FILLED_BY_POSITIONS, best[0] if best else 0.0):
            best = share, Few(nest, trial, machine, lanes, row, held)
    return best[1] if best else None


def _joins(nest: Nest, row: str, held: str, machine: Machine) -> bool:
    """Whether a contraction's tile is made of the results and of the next loop of reuse, and so is large enough."""
    rows = [e for e in nest.summed if depends(e.indices, row)]
    others = [n for n in reversed(nest.names) if n not in (row, held) and not all(depends(e.indices, n) for e in rows)]
    scalars = [e for e in nest.summed if not depends(e.indices, row)]
    if not others or not any(all(is_contiguous(e, n, nest.shapes) for e in scalars) for n in (held, others[0])):
        return False
    return POSITIONS < (nest.extent(others[0]) or 0) * (nest.extent(held) or 0) <= machine.registers - OPERANDS


def _mixed(nest: Nest, loop: str) -> bool:
    """Whether some reads depend on a loop and others do not."""
    return 0 < sum(depends(e.indices, loop) for e in nest.summed) < len(nest.summed)


def _share(nest: Nest, row: str, lanes: int) -> float:
    """The share of lanes at work along the positions of one class."""
    extent = -(-(nest.extent(row) or 0) // nest.phases.get(row, 1))
    return extent / max(1, -(-extent // lanes) * lanes)


def is_row(nest: Nest, row: str) -> bool:
    """Whether what is read follows the loop step by step along one dimension, and other reads serve all positions."""
    touched = [e for e in nest.summed if depends(e.indices, row)]
    return _mixed(nest, row) and all(axis_along(e, row) >= 0 for e in touched)


def held_loop(nest: Nest, row: str, most: int) -> str | None:
    """The loop of (at `most` so many) results at one position: what follows the row does not depend on it, what does
    not, does.
    """
    rows = [e for e in nest.summed if depends(e.indices, row)]
    rest = [e for e in nest.summed if not depends(e.indices, row)]
    for n in reversed(nest.names):
        if n != row and not any(depends(e.indices, n) for e in rows) and any(depends(e.indices, n) for e in rest):
            free = n not in nest.borders
            return n if free and (nest.extent(n) or most + 1) <= most else None
    return None


def _results_apart(nest: Nest, row: str) -> bool:
    """Whether what does not follow the row is not the same for all results."""
    return any(depends(e.indices, n) for e in nest.summed if not depends(e.indices, row) for n in nest.names)


def axis_along(load: Load, row: str) -> int:
    """The dimension along which a load follows a loop, one element an iteration (of one class); -1 if there is none."""
    axes = [d for d, e in enumerate(load.indices) if depends(e, row)]
    return axes[0] if len(axes) == 1 and _follows(load.indices[axes[0]], row) else -1


def _follows(e: Expr, row: str) -> bool:
    if isinstance(e, Binary) and e.op == "floordiv" and isinstance(e.right, Const):
        e = e.left
    return coefficient(e, row) == 1
