"""A register tile of sums of bfloat16 products that are taken two by two.

pairs of b; parallel n, y: for k.o: for c.o: tile of x by vectors of k: y[x, k] += a[x, c, c + 1] . pairs[c, k]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from opgen.machine import Machine
from opgen.schedule.auto.contraction.pairs import Pairs
from opgen.schedule.auto.contraction.prepared import Prepared, as_given
from opgen.schedule.auto.contraction.tiled import tiled
from opgen.schedule.auto.copies.panel import Marks
from opgen.schedule.auto.copies.prepare import elements
from opgen.schedule.auto.copies.results import transposed_results
from opgen.schedule.auto.design import Design
from opgen.schedule.auto.kinds.contracted import finished, prepared_for
from opgen.schedule.auto.nests import Nest, is_contiguous, worth_lanes
from opgen.schedule.auto.roles import Roles
from opgen.schedule.auto.site import Site
from opgen.schedule.auto.trial import Trial
from opgen.schedule.auto.walks import walks
from opgen.schedule.cost.calibration import FAR_READS
from opgen.schedule.cost.memory import Memory
from opgen.schedule.steps import Carry, Widen


@dataclass(frozen=True)
class InPairs:
    name: str = "pairs"

    def plans(self, site: Site, machine: Machine) -> Iterator[Design]:
        if not machine.pairs:
            return
        for on, late in prepared_for(site, machine, (as_given,)):
            if _sums_wait(site.nest, on.loop, machine):
                carried = on.forked()
                take = partial(_carried, carried, machine)
                yield Design(self.name, carried.trial, take, f"lanes along {on.loop}, sums wait", late)
            yield Design(self.name, on.trial, partial(_plain, on, machine), f"lanes along {on.loop}", late)


def _sums_wait(nest: Nest, vector: str, machine: Machine) -> bool:
    """Whether sums had better wait in wide results: of outer products, whose scalars lie along results, where the
    second cache is far from holding all scalars, or all that taps read again.
    """
    others = [n for n in nest.names if n != vector]
    scalars = Roles.of(nest, vector).scalars
    along = all(any(is_contiguous(e, n, nest.shapes) for n in others) for e in scalars)
    read = dict.fromkeys(nest.summed if walks(nest) else scalars)
    far = not Memory(machine).holds(sum(elements(nest, e.buffer) * e.dtype.bytes for e in read), 2, FAR_READS)
    return bool(scalars) and along and far and len(nest.results) == 1


def _carried(on: Prepared, machine: Machine) -> bool:
    """In pairs, with sums that wait in wide results."""
    trial, result = on.trial, on.site.nest.results[0].buffer
    start, wide = len(trial.steps), trial.fresh(f"{result}_wide")
    if not trial.take(Widen(result, wide)) or not _tiled(on, machine):
        return False
    if not any(isinstance(s, Carry) for s in trial.steps[start:]):
        return False
    on.site.schedule(trial, trial.nest(f"{wide}_0"))
    finished(on, machine)
    return True


def _plain(on: Prepared, machine: Machine) -> bool:
    if not _tiled(on, machine):
        return False
    finished(on, machine)
    return True


def _tiled(on: Prepared, machine: Machine) -> bool:
    """A tile of pairs, and the copies that are made for them."""
    trial = on.trial
    kernel, start = trial.kernel, len(trial.steps)
    pairs = Pairs(trial.nest(on.loop), on.loop, trial, machine)
    in_blocks, in_panels = (Trial(kernel, list(trial.steps)) for _ in range(2))
    if not pairs.take():
        return False
    pairs.fill()
    ready = len(trial.steps)
    if not worth_lanes(trial.nest(on.loop), on.loop) or not tiled(trial, on.loop, on.lanes, machine):
        return False
    transposed_results(trial, Marks(kernel, start, start, ready), on.loop, machine)
    if not pairs.in_blocks(in_blocks, ready):
        pairs.in_panels(in_panels, ready)
    return True
