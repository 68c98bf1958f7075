"""Few results at each position: lanes along the positions, all results of one in registers.

parallel n, h: for w.o: for r, s, k: vectors of w: all c: y[n, h, w, c] += g[n, h + r, w + s, k] * f[r, s, c, k]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from opgen.machine import Machine
from opgen.schedule.auto.contraction.few import Few, few
from opgen.schedule.auto.contraction.prepared import widened_copies
from opgen.schedule.auto.copies.panel import blocked_rows, panelled, panelled_items
from opgen.schedule.auto.design import Design
from opgen.schedule.auto.nests import reduces
from opgen.schedule.auto.site import Site, lanes_of
from opgen.schedule.steps import Prefetch


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
    trial, machine = tile.trial, tile.machine
    kernel, start = trial.kernel, len(trial.steps)
    if not tile.pack():
        return False
    marks = widened_copies(trial.nest(tile.row), tile.row, trial, site.schedule, (kernel, start))
    others = tuple(n for n in tile.nest.names if n not in (tile.row, tile.held))
    block = blocked_rows(trial, marks, others, machine)
    tile = replace(tile, block=block)
    if not tile.tile():
        return False
    if block is None:
        panelled_items(trial, marks, others, machine)
    else:
        at = f"{block[0]}_b"
        panelled(trial, marks, at, machine, ahead=[Prefetch("", at, tile.nest.inner_loops[-1].var)])
    return True
