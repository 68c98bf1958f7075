"""The automatic schedule of one nest for a CPU with vector registers.

What there is to choose from is what the kinds of plans propose (`kinds/`), and what the cascade comes to, which holds
all that is no kind yet: classes of nests, told apart by how they access memory, of which the first that suits is taken.

contraction/    a reduction in which some reads do not depend on the lanes: `nest.py`
                or one that uses what comes from afar a few times: `streamed.py`
                or a product of few places with a large table: `scalar_rows.py`
                or, where large, a product of matrices or a sum of outer products: `products.py`, `outer.py`
                or a sum of products with few scalars that lie together: `taps.py`
                or, of bfloat16, two terms at a time: `pairs.py`, and of outer products `outer_pairs.py`
                or a product or a sum of outer products, and what is left over of tiles: `ragged.py`
                or one whose images, results or both are turned before and after: `turned_maps.py`
                or one with too few results side by side to fill vectors: `few.py`
window/         a reduction in which every read depends on the lanes: `nest.py`
                or one over few taps that are steps along the lanes: `rows.py`
                or one of few results, summed along the rows of a map: `row_sums.py`
                or one in which no read mixes the maps that lanes go along: `slices.py`
generic/        any of these, of sizes that are not known: `nest.py`, `few.py`
columns         sums of rows that share nothing: `columns.py`
packed          anything else that would read with strides: `packed.py`
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import prod

from opgen.loop.nodes import Kernel
from opgen.machine import Machine
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.choose import Chooser
from opgen.schedule.auto.columns import Columns
from opgen.schedule.auto.contraction.few import Few, few
from opgen.schedule.auto.contraction.flat import Flat
from opgen.schedule.auto.contraction.nest import Contraction
from opgen.schedule.auto.contraction.outer import OuterProducts
from opgen.schedule.auto.contraction.outer_maps import OuterMaps
from opgen.schedule.auto.contraction.outer_pairs import OuterPairs
from opgen.schedule.auto.contraction.pairs import Pairs
from opgen.schedule.auto.contraction.products import Products
from opgen.schedule.auto.contraction.ragged import Ragged
from opgen.schedule.auto.contraction.scalar_rows import ScalarRows
from opgen.schedule.auto.contraction.streamed import Streamed
from opgen.schedule.auto.contraction.taps import Taps
from opgen.schedule.auto.contraction.tile_products import TileProducts
from opgen.schedule.auto.contraction.turned_maps import TurnedMaps
from opgen.schedule.auto.copies.lined_up import lined_up
from opgen.schedule.auto.copies.panel import Marks, blocked_rows, panelled, panelled_items, panelled_vectors
from opgen.schedule.auto.copies.prepare import elements, pack_strided, split_phases, widen_reused
from opgen.schedule.auto.copies.results import turned
from opgen.schedule.auto.copies.row_panel import panelled_rows
from opgen.schedule.auto.generic.few import GenericFew
from opgen.schedule.auto.generic.nest import GenericNest
from opgen.schedule.auto.kinds.elementwise import Elementwise
from opgen.schedule.auto.lane_nest import LaneNest
from opgen.schedule.auto.nests import (
    Nest,
    conditional_loops,
    contiguous_loop,
    is_contiguous,
    loop_across,
    loops_instead,
    loops_of_reuse,
    places_read,
    reduces,
    worth_lanes,
)
from opgen.schedule.auto.packed import Packed
from opgen.schedule.auto.past import past_caches
from opgen.schedule.auto.roles import Roles
from opgen.schedule.auto.site import lanes_of
from opgen.schedule.auto.trial import Trial
from opgen.schedule.auto.walks import walks
from opgen.schedule.auto.window.nest import Window
from opgen.schedule.auto.window.row_sums import RowSums
from opgen.schedule.auto.window.rows import RowTile
from opgen.schedule.auto.window.slices import Slices, sliced_loop
from opgen.schedule.cost.calibration import FAR_READS, FOUND_SUMS, PARALLEL, UNROLLED_PHASES
from opgen.schedule.cost.memory import Memory
from opgen.schedule.focus import focus_on_loops
from opgen.schedule.steps import Carry, Parallel, Prefetch, Unroll, Widen


@dataclass(frozen=True)
class CpuNest:
    nest: Nest
    trial: Trial
    machine: Machine

    def run(self) -> None:
        if not self.nest.results:
            return
        vector = contiguous_loop(self.nest)
        if self.nest.names[0] in conditional_loops(focus_on_loops(self.trial.kernel, self.nest.names[:1])):
            if vector is not None:  # not worth the time that a better schedule takes to build
                Chooser(self.nest, self.trial, self.machine, partial(self._packed, vector), (Elementwise(),)).run()
            return
        if vector is not None and any(self.nest.extent(n) is None for n in self.nest.names):
            open_nest = (self.nest, self.trial, self.machine, vector)
            if not GenericFew(*open_nest).run():  # what is left of the nest goes on
                GenericNest(*open_nest).run()
        if not Chooser(self.nest, self.trial, self.machine, self._cascade).run():
            self._otherwise(vector)

    def _cascade(self, trial: Trial) -> bool:
        """The first that suits of what is no kind of plan yet; whether there was one."""
        return replace(self, trial=trial)._first(contiguous_loop(self.nest))

    def _first(self, vector: str | None) -> bool:
        if not reduces(self.nest):
            return vector is not None and self._packed(vector, self.trial)
        if self.machine.tiles and vector is not None and self._on_tiles(vector):
            return True
        if self._few() or (vector is not None and self._flat(vector)):
            return True
        if vector is not None and self._along_rows(vector):
            return True
        if self._row_sums() or self._in_slices():
            return True
        across = loop_across(self.nest, self._lanes(None))
        if across is not None and (self._turned(across) or self._reduction(across)):
            return True
        return vector is not None and (
            self._reduction(vector) or self._columns(vector) or self._packed(vector, self.trial)
        )

    def _packed(self, vector: str, trial: Trial) -> bool:
        """Lanes along results, what they would read with strides packed before."""
        return Packed(self.nest, trial, self.machine).along(vector)

    def _otherwise(self, vector: str | None) -> None:
        """For want of anything better."""
        instead = [] if vector is None else loops_instead(self.nest)
        if any(self._turned(n) or self._reduction(n) for n in instead):
            return
        quotients = self._decided()
        names = self.nest.names[:-1] if places_read(self.nest) and len(self.nest.names) > 1 else self.nest.names
        self.trial.fused_prefix([quotients.get(n, n) for n in names[:PARALLEL]], Parallel)

    def _on_tiles(self, vector: str) -> bool:
        """Products of tiles by a matrix unit."""
        if not self._sums:
            return False
        others = [n for n in reversed(self.nest.names) if n != vector]
        return any(
            self.trial.attempt(TileProducts(self.nest, self.trial, vector, columns, self.machine, self._alone).run)
            for columns in (vector, *others)
        )

    def _alone(self, nest: Nest) -> None:
        CpuNest(nest, self.trial, self.machine).run()

    def _few(self) -> bool:
        """Lanes along positions, where there are few results at each."""
        tile = few(self.nest, self.trial, self.machine, self._lanes(None))
        return tile is not None and self.trial.attempt(lambda: self._few_packed(tile))

    def _flat(self, vector: str) -> bool:
        """Lanes along all positions of maps that are the rows of a product of matrices."""
        constant = all(self.nest.extent(n) is not None for n in self.nest.names)
        product = Flat(self.nest, self.trial, vector, self._lanes(None), self.machine)
        return constant and self.trial.attempt(product.run)

    def _turned(self, vector: str) -> bool:
        """Images and results turned as a whole, where that takes little beside the arithmetic."""
        lanes = self._lanes(self.nest.extent(vector))
        maps = TurnedMaps(self.nest, self.trial, vector, lanes, self.machine, self._alone)
        return self._sums and self.trial.attempt(maps.run)

    def _columns(self, vector: str) -> bool:
        """Sums of rows that share nothing, lanes along the rows."""
        lanes, extent = self._lanes(None), self.nest.extent(vector) or 0
        while lanes > 1 and lanes >= 2 * max(1, extent):
            lanes //= 2
        return lanes > 1 and Columns(self.nest, self.trial, vector, lanes, self.machine).run()

    def _few_packed(self, tile: Few) -> bool:
        kernel, start = self.trial.kernel, len(self.trial.steps)
        if not tile.pack():
            return False
        marks = self._widened(self.trial.nest(tile.row), tile.row, kernel, start, len(self.trial.steps))
        others = tuple(n for n in tile.nest.names if n not in (tile.row, tile.held))
        block = blocked_rows(self.trial, marks, others, self.machine)
        tile = replace(tile, block=block)
        if not tile.tile():
            return False
        if block is None:
            panelled_items(self.trial, marks, others, self.machine)
        else:
            at = f"{block[0]}_b"
            panelled(self.trial, marks, at, self.machine, ahead=[Prefetch("", at, tile.nest.inner_loops[-1].var)])
        tile.finish()
        return True

    def _widened(self, nest: Nest, vector: str, kernel: Kernel, start: int, packed: int) -> Marks:
        """Convert narrow inputs once, now that all are packed: `kernel` was there before, with `start` steps taken, and
        `packed` are taken now.
        """
        for copy in widen_reused(nest, vector, self.trial):
            CpuNest(self.trial.nest(copy), self.trial, self.machine).run()
        return Marks(kernel, start, packed, len(self.trial.steps))

    def _decided(self) -> dict[str, str]:
        """Without lanes: conditions on remainders decided all the same, by phases and taps unrolled where they are few.

        Gives the outer part of each loop that was split.
        """
        known = [(s.var, constant_extent(s)) for s in self.nest.inner_loops]
        taps = [(n, e) for n, e in known if e is not None]
        steps = prod(self.nest.phases.values())
        if steps == 1 or len(taps) < len(known) or steps * prod(e for _, e in taps) > UNROLLED_PHASES:
            return {}
        phases = split_phases(self.nest, self.trial)
        self.trial.take(*(Unroll(n) for n in (*phases.remainders, *(n for n, _ in taps))))
        return phases.quotients

    @property
    def _sums(self) -> bool:
        """Whether the nest is one sum, of sizes that are known."""
        return Roles.of(self.nest).is_sum

    def _lanes(self, extent: int | None) -> int:
        return lanes_of(self.nest, self.machine, extent)

    def _reduction(self, vector: str) -> bool:
        """A tile of accumulators in registers; only where all extents are known."""
        nest = self.nest
        width = nest.extent(vector)
        lanes = self._lanes(width)
        if width is None or lanes < 2 or not self._sums:
            return False
        if not self.trial.attempt(lambda: self._reduction_packed(nest, vector, lanes)):
            return False
        if not Roles.of(nest, vector).is_window:  # windows decide themselves
            past_caches(nest, vector, self.trial, self.machine, FOUND_SUMS)
        return True

    def _reduction_packed(self, nest: Nest, vector: str, lanes: int) -> bool:
        if any(kind(nest, self.trial, vector, lanes, self.machine).run() for kind in (ScalarRows, Products, OuterMaps)):
            return True
        if Ragged(nest, self.trial, vector, lanes, self.machine, *self._cut).run():
            return True
        if self.machine.pairs and OuterPairs(nest, self.trial, vector, lanes, self.machine).run():
            return True
        ways = (self._in_wide_taps, self._in_carried_pairs, self._in_pairs) if self.machine.pairs else ()
        if any(self.trial.attempt(partial(way, nest, vector, lanes)) for way in ways):
            return True
        if self.trial.attempt(lambda: self._in_wide_sums(nest, vector, lanes)):
            return True
        kernel, start = self.trial.kernel, len(self.trial.steps)
        nest = pack_strided(nest, vector, self.trial, self.machine.vector_bytes)
        marks = self._widened(self.trial.nest(vector), vector, kernel, start, len(self.trial.steps))
        nest = self.trial.nest(vector)
        if not worth_lanes(nest, vector):
            return False
        special = (Streamed, Taps, OuterProducts) if len(self.trial.steps) == start else (OuterProducts,)
        if any(kind(nest, self.trial, vector, lanes, self.machine).run() for kind in special):
            return True
        if self._in_wide_panels(marks, vector, lanes):
            return True
        if not self._tiled(nest, vector, lanes):
            return False
        turned(self.trial, marks, vector, self.machine)
        panelled_vectors(self.trial, marks, vector, self.machine)
        panelled_rows(self.trial, marks, nest, vector, self.machine)
        lined_up(self.trial, marks.before, nest, vector, lanes, self.machine)
        return True

    def _in_wide_panels(self, marks: Marks, vector: str, lanes: int) -> bool:
        """Where a copy of rows in a wider type fills the second cache: none but panels, of what a block of the tile
        reads.
        """
        if not marks.before == marks.packed < marks.ready:
            return False
        again = replace(self, trial=Trial(marks.kernel))
        trial, nest = again.trial, again.trial.nest(vector)
        rows = Roles.of(nest, vector).vectors
        if all(elements(nest, e.buffer) * e.dtype.compute_type.bytes < Memory(self.machine).usable(2) for e in rows):
            return False
        for copy in widen_reused(nest, vector, trial, Roles.of(nest, vector).scalars):
            again._alone(trial.nest(copy))
        return again._in_panels(vector, lanes) and self.trial.adopt(trial, marks.before)

    def _in_panels(self, vector: str, lanes: int) -> bool:
        """A tile that reads narrow rows from wide panels."""
        nest, ready = self.trial.nest(vector), len(self.trial.steps)
        marks = Marks(self.trial.kernel, ready, ready, ready)
        if not self._tiled(nest, vector, lanes):
            return False
        panelled_rows(self.trial, marks, nest, vector, self.machine)
        return any(isinstance(s, Widen) for s in self.trial.steps[ready:])

    def _carried(self, vector: str, lanes: int) -> bool:
        """A tile that reads rows from panels, and whose sums wait in the results."""
        start = len(self.trial.steps)
        return self._in_panels(vector, lanes) and any(isinstance(s, Carry) for s in self.trial.steps[start:])

    def _in_wide_sums(self, nest: Nest, vector: str, lanes: int, only: tuple[type[LaneNest], ...] = ()) -> bool:
        """Narrow operands as wide ones: scalars in a wide copy, rows in wide panels; sums wait in wide results."""
        scalars = Roles.of(nest, vector).scalars
        results = nest.results
        if len(scalars) != 1 or len(results) != 1 or scalars[0].dtype == scalars[0].dtype.compute_type:
            return False
        for copy in widen_reused(nest, vector, self.trial, scalars):
            self._alone(self.trial.nest(copy))
        of = (self.trial.nest(vector), self.trial, vector, lanes, self.machine)
        if not only and (Products(*of).run() or Ragged(*of, *self._cut).run()):
            return True
        wide = self.trial.fresh(f"{results[0].buffer}_wide")
        if not self.trial.take(Widen(results[0].buffer, wide)):
            return False
        of = (self.trial.nest(vector), *of[1:])
        taken = any(kind(*of).run() for kind in only or (Streamed, Taps, OuterProducts))
        if not taken and (only or not self._carried(vector, lanes)):
            return False
        self._alone(self.trial.nest(f"{wide}_0"))
        return True

    def _in_whole_tiles(self, nest: Nest) -> bool:
        """Large products and sums of products, of which a tile along the lanes is four vectors."""
        vector = nest.names[0]
        lanes = lanes_of(nest, self.machine, nest.extent(vector))
        kinds = (Products, Streamed, OuterProducts)
        return any(kind(nest, self.trial, vector, lanes, self.machine).run() for kind in kinds)

    def _in_tiles(self, nest: Nest) -> bool:
        """A part of a product, with lanes along the loop that was cut."""
        return CpuNest(nest, self.trial, self.machine)._reduction(nest.names[0])

    def _left_over(self, nest: Nest) -> None:
        """What is left over of a product, with lanes along the loop that was cut if they are not too few."""
        if not self._in_tiles(nest):
            self._alone(nest)

    @property
    def _cut(self) -> tuple[Callable[[Nest], bool], Callable[[Nest], bool], Callable[[Nest], None]]:
        """What schedules parts of a product: whole large tiles, other tiles, what is left over."""
        return self._in_whole_tiles, self._in_tiles, self._left_over

    def _in_wide_taps(self, nest: Nest, vector: str, lanes: int) -> bool:
        return self._in_wide_sums(nest, vector, lanes, (Taps,))

    def _in_carried_pairs(self, nest: Nest, vector: str, lanes: int) -> bool:
        """As in pairs, with sums that wait in wide results: of outer products, whose scalars lie along results, where
        the second cache is far from holding all scalars, or all that taps read again.
        """
        others = [n for n in nest.names if n != vector]
        scalars = Roles.of(nest, vector).scalars
        along = all(any(is_contiguous(e, n, nest.shapes) for n in others) for e in scalars)
        read = dict.fromkeys(nest.summed if walks(nest) else scalars)
        far = not Memory(self.machine).holds(sum(elements(nest, e.buffer) * e.dtype.bytes for e in read), 2, FAR_READS)
        if not (scalars and along and far):
            return False
        start, wide = len(self.trial.steps), self.trial.fresh(f"{nest.results[0].buffer}_wide")
        if len(nest.results) != 1 or not self.trial.take(Widen(nest.results[0].buffer, wide)):
            return False
        carried = self._in_pairs(self.trial.nest(vector), vector, lanes)
        if not carried or not any(isinstance(s, Carry) for s in self.trial.steps[start:]):
            return False
        self._alone(self.trial.nest(f"{wide}_0"))
        return True

    def _in_pairs(self, nest: Nest, vector: str, lanes: int) -> bool:
        """A tile of sums of bfloat16 products that are taken two by two."""
        kernel, start = self.trial.kernel, len(self.trial.steps)
        pairs = Pairs(nest, vector, self.trial, self.machine)
        block_trial, panel_trial = (Trial(kernel, list(self.trial.steps)) for _ in range(2))
        if not pairs.take():
            return False
        pairs.fill()
        ready = len(self.trial.steps)
        nest = self.trial.nest(vector)
        if not worth_lanes(nest, vector) or not self._tiled(nest, vector, lanes):
            return False
        marks = Marks(kernel, start, start, ready)
        turned(self.trial, marks, vector, self.machine)
        if not pairs.in_blocks(block_trial, ready):
            pairs.in_panels(panel_trial, ready)
        return True

    def _row_sums(self) -> bool:
        """Partial sums along the rows of a map, where few results take terms from all of it."""
        lanes = self._lanes(None)
        terms = constant_extent(self.nest.inner_loops[-1]) if self.nest.inner_loops else None
        while terms is not None and lanes >= 2 * max(1, terms):
            lanes //= 2
        if lanes < 2 or not self._sums:
            return False
        return self.trial.attempt(RowSums(self.nest, self.trial, lanes, self.machine).run)

    def _in_slices(self) -> bool:
        """Lanes along maps that are windows each by itself, a slice of them turned at a time."""
        loop = sliced_loop(self.nest)
        if loop is None or not self._sums:
            return False
        lanes = self._lanes(self.nest.extent(loop))
        slices = Slices(self.nest, self.trial, loop, lanes, self.machine)
        return 2 * lanes >= self._lanes(None) and self.trial.attempt(slices.run)

    def _along_rows(self, vector: str) -> bool:
        """Lanes along the rows of a map over which a window walks."""
        extent, lanes = self.nest.extent(vector), self._lanes(None)
        phases = self.nest.phases.get(vector, 1)
        while extent is not None and lanes >= 2 * max(1, extent // phases):
            lanes //= 2  # a vector that a row does not fill needs masks, which cost less than a second vector
        constant = all(self.nest.extent(n) is not None for n in self.nest.names)
        if not constant or lanes < 2 or len(self.nest.allocations) != 1:
            return False
        return self.trial.attempt(RowTile(self.nest, self.trial, vector, lanes, self.machine).run)

    def _tiled(self, nest: Nest, vector: str, lanes: int) -> bool:
        if Roles.of(nest, vector).is_window:
            return Window(nest, self.trial, vector, lanes, self.machine).run()
        if not loops_of_reuse(nest, vector):
            return False
        phases = split_phases(nest, self.trial)
        if vector in phases.quotients:  # its places take turns: lanes would go along none of them
            return False
        return Contraction(self.trial.nest(vector), self.trial, vector, lanes, phases, self.machine).run()
