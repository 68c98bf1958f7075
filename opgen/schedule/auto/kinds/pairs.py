"""Register tiles of sums whose terms are taken several at a time: bfloat16 in pairs, bytes in fours.

They use the dot products that a CPU has.

pairs of b; parallel n, y: for k.o: for c.o: tile of x by vectors of k: y[x, k] += a[x, c, c + 1] . pairs[c, k]

Scalars are read in place if their terms are adjacent.  Lanes read a copy with terms adjacent along the lanes.  A large
copy is made block by block, just before each block is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

from opgen.dtypes import BFLOAT16
from opgen.loop.nodes import Load
from opgen.machine import Machine
from opgen.schedule.auto.contraction.nest import Contraction
from opgen.schedule.auto.contraction.prepared import Prepared, waiting
from opgen.schedule.auto.contraction.words import BYTES, Factor, as_words, in_words, with_copies
from opgen.schedule.auto.copies.blocks import transposed_blocks
from opgen.schedule.auto.copies.prepare import elements, reused, split_phases
from opgen.schedule.auto.design import Design
from opgen.schedule.auto.kinds.contracted import design, prepared_for
from opgen.schedule.auto.nests import Nest, depends, is_contiguous, own_axis
from opgen.schedule.auto.plan import Handle, Plan
from opgen.schedule.auto.roles import Roles
from opgen.schedule.auto.site import Site, terms_at_once
from opgen.schedule.auto.walks import walks
from opgen.schedule.cost.calibration import FAR_READS
from opgen.schedule.cost.memory import Memory
from opgen.schedule.steps import Carry, Regroup


@dataclass(frozen=True)
class InPairs:
    name: str = "pairs"

    def plans(self, site: Site, machine: Machine) -> Iterator[Design]:
        for on, late in prepared_for(site, machine, (as_words,)):
            if _sums_wait(site.nest, on.loop, machine) and (wide := waiting(on, "sums wait")) is not None:
                yield design(self.name, wide, partial(_carried, wide, machine), machine, late)
            yield design(self.name, on, partial(_tiled, on, machine), machine, late)


def _sums_wait(nest: Nest, vector: str, machine: Machine) -> bool:
    """Return True if accumulators are better spilled to wide results between K blocks.

    That holds for outer products, whose scalars are contiguous along results, if L2 is far from holding the scalars.
    Where taps read elements again, all operands count instead of the scalars.
    """
    others = [n for n in nest.names if n != vector]
    scalars = Roles.of(nest, vector).scalars
    along = all(any(is_contiguous(e, n, nest.shapes) for n in others) for e in scalars)
    read = dict.fromkeys(nest.summed if walks(nest) else scalars)
    far = not Memory(machine).holds(sum(elements(nest, e.buffer) * e.dtype.bytes for e in read), 2, FAR_READS)
    return bool(scalars) and along and far and len(nest.results) == 1


def _carried(on: Prepared, machine: Machine) -> bool:
    start = len(on.trial.steps)
    return _tiled(on, machine) and any(isinstance(s, Carry) for s in on.trial.steps[start:])


def _tiled(on: Prepared, machine: Machine) -> bool:
    """Tile the results and copy the operands of their terms, a large one in blocks if that is legal."""
    trial, loop = on.trial, on.loop
    copies = _taken(on, machine)
    if copies is None:
        return False
    phases = split_phases(trial.nest(loop), trial)
    if loop in phases.quotients:  # its positions have phases: lanes would go along none of them
        return False
    nest, blocked = trial.nest(loop), trial.fork()
    for name in copies:
        transposed_blocks(trial, name, machine.vector_bytes)
    if not Contraction(trial.nest(loop), trial, loop, on.lanes, machine, phases).take():
        return False
    plan, at = _in_blocks(cast(Plan, trial.made), copies, nest, loop, machine)
    if at and with_copies(plan, nest, blocked, machine, copies, at) and trial.adopt(blocked, 0):
        trial.made = blocked.made
    return True


def _taken(on: Prepared, machine: Machine) -> dict[str, Load] | None:
    """Take several terms at once and return the copies that are made for it; None if that is not possible.

    A reduction must read both factors again and again, one of them in scalars.  If every read depended on the lanes, a
    copy with pairs of neighbours would be as large as one in float32.  Taps in pairs would also no longer share reads.
    """
    trial, vector = on.trial, on.loop
    nest = trial.nest(vector)
    factors = _factors(nest)
    scalar = any(not depends(e.indices, vector) for e in factors)
    if len(factors) != 2 or not scalar or not all(reused(nest, e.buffer) for e in factors):
        return None
    bfloat16 = factors[0].dtype == BFLOAT16
    terms = [s.var for s in nest.inner_loops]
    for loop in terms if bfloat16 else _by_fill(nest, terms, machine):
        inside = () if bfloat16 else tuple(Regroup(loop, n) for n in terms[terms.index(loop) + 1 :])
        found = [Factor(e, _order(e, vector, loop), not depends(e.indices, vector)) for e in factors]
        if (copies := in_words(trial, loop, found, inside)) is not None:
            return copies
    return None


def _factors(nest: Nest) -> list[Load]:
    return [e for e in nest.summed if e.dtype in (BFLOAT16, *BYTES)]


def _by_fill(nest: Nest, terms: list[str], machine: Machine) -> list[str]:
    """Return the loops whose terms may be taken four at a time, the best first.

    Sums of bytes are the same in any order, so each loop may go inside all others.  A loop that fills its groups of
    four is better, and a long one is best.
    """
    extents, size = Roles.of(nest).extents, terms_at_once(nest, machine)
    return sorted(terms, key=lambda n: (-(-extents[n] // size) * size / max(1, extents[n]), -extents[n]))


def _order(e: Load, vector: str, depth: str) -> tuple[int, ...]:
    """Return the dimensions of a copy that lanes read, in order.

    The dimension along the lanes is last.  For bytes, the dimension along which groups of terms follow each other is
    just before it.
    """
    axis, every = own_axis(e, vector), range(len(e.indices))
    if axis is None:
        return tuple(every)
    last = [] if e.dtype == BFLOAT16 else [d for d in every if d != axis and depends(e.indices[d], depth)]
    return (*(d for d in every if d != axis and d not in last), *last, axis)


def _in_blocks(
    plan: Plan, copies: Mapping[str, Load], nest: Nest, vector: str, machine: Machine
) -> tuple[Plan, dict[str, Handle]]:
    """Return the plan with blocks of vectors further outside, and the loop in which each copy is made.

    The blocks go outside of all loops in which the same part of a large copy is read.  No loop is returned if there is
    no such copy.  If a loop of terms is carried outside of tiles, every copy is made in it.
    """
    vectors = {n: e for n, e in copies.items() if depends(e.indices, vector)}
    sizes = {n: elements(nest, e.buffer) * e.dtype.bytes for n, e in vectors.items()}
    large = next((n for n, size in sizes.items() if not Memory(machine).holds(size, 2)), None)
    blocks = next((c.outer for c in plan.cuts if c.loop == vector and c.tail == "exact"), None)
    if plan.carried:
        return plan, dict.fromkeys(copies, plan.carried[-1].term)
    if large is None or blocks not in plan.order:
        return plan, {}
    read = next(e for e in nest.outside_loads if e.buffer == large)
    outside = plan.order[: plan.order.index(blocks) + 1]
    around = tuple(n for n in outside if depends(read.indices, n.partition(".")[0]))
    order = (*around, *(n for n in plan.order if n not in around))
    return replace(plan, order=order, threads=around), {large: blocks}
