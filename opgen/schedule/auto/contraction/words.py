"""A contraction made ready for its terms to be taken several at a time, by the dot products that the CPU has.

Pairs of bfloat16 are taken as they are given.  Of bytes one factor must be without a sign and the other signed: one is
copied with the other sign, if need be, and what is added to them is summed apart.
"""

from __future__ import annotations

from math import prod

from opgen.dtypes import BFLOAT16, INT8, UINT8
from opgen.loop.nodes import Load
from opgen.machine import Machine
from opgen.schedule.auto.contraction.prepared import Prepared, as_given
from opgen.schedule.auto.copies.panel import Marks
from opgen.schedule.auto.copies.prepare import elements
from opgen.schedule.auto.nests import Nest, depends, nests
from opgen.schedule.auto.roles import Roles
from opgen.schedule.auto.site import Site, lanes_of
from opgen.schedule.auto.trial import Trial
from opgen.schedule.steps import Distribute, Recode

BYTES = (UINT8, INT8)


def as_words(site: Site, machine: Machine, loop: str) -> Prepared | None:
    """The nest with factors that the machine has a dot product of; None if it has none."""
    if machine.pairs and sum(e.dtype == BFLOAT16 for e in site.roles.operands) == 2:
        return as_given(site, machine, loop)
    factors = _factors(site)
    return site.once(("words", loop), lambda: _distributed(site, machine, loop, factors)) if machine.quads and factors else None


def _factors(site: Site) -> list[Load]:
    """The two factors of bytes: the operands that differ from term to term."""
    roles = site.roles
    found = [e for e in roles.operands if any(depends(e.indices, n) for n in roles.terms)]
    return found if len(found) == 2 and all(e.dtype in BYTES for e in found) else []


def _distributed(site: Site, machine: Machine, loop: str, factors: list[Load]) -> Prepared | None:
    trial, nest, start = site.trial.fork(), site.nest, len(site.trial.steps)
    copies: list[str] = []
    if factors[0].dtype == factors[1].dtype:
        chosen = min(factors, key=lambda e: _work(nest, e, factors))
        copies.append(trial.fresh(f"{chosen.buffer}_recoded"))
        if not trial.take(Recode(chosen.buffer, copies[0])):
            return None
    sums = [trial.fresh(f"{e.buffer}_sums") for e in factors]
    apart = trial.take(Distribute(nest.inner_loops[0].var, *sums))
    if copies and not apart:
        return None
    for name in (*copies, *(sums if apart else ())):
        _scheduled(site, trial, name)
    marks = Marks(site.trial.kernel, start, start, len(trial.steps))
    return Prepared(site, trial, trial.nest(loop), loop, lanes_of(nest, machine, nest.extent(loop)), marks)


def _work(nest: Nest, recoded: Load, factors: list[Load]) -> int:
    """What is copied, and what is added up of the other factor, if one is copied with the other sign."""
    other = next(e for e in factors if e is not recoded)
    extents = Roles.of(nest).extents
    return elements(nest, recoded.buffer) + prod(n for v, n in extents.items() if depends(other.indices, v))


def _scheduled(site: Site, trial: Trial, name: str) -> None:
    """Schedule the nest that makes a buffer, if there is one."""
    found = next((n for n in nests(trial.kernel) if any(s.buffer == name for s in n.results)), None)
    if found is not None:
        site.schedule(trial, found)
