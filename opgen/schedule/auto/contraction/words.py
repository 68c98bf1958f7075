"""Dot-product packing: a contraction prepared so that one instruction takes several of its terms.

The instruction is a dot product or that of a matrix unit.  Copies keep the terms of one instruction contiguous.  Pairs
of bfloat16 are taken unchanged.  Of two factors of bytes one must be unsigned and the other signed.  If need be one is
copied with the other signedness, and the resulting correction is summed separately.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from opgen.dtypes import BFLOAT16, INT8, UINT8
from opgen.loop.nodes import Load
from opgen.loop.walk import free_vars
from opgen.machine import Machine
from opgen.schedule.auto.contraction.prepared import Prepared, as_given
from opgen.schedule.auto.copies.blocks import transposed_blocks
from opgen.schedule.auto.copies.panel import Marks
from opgen.schedule.auto.nests import Nest, depends, is_contiguous, nests, own_axis, with_last
from opgen.schedule.auto.plan import Handle, Operand, Plan
from opgen.schedule.auto.realise import realise
from opgen.schedule.auto.roles import Roles
from opgen.schedule.auto.site import Site, lanes_of
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import PAIR_BYTES
from opgen.schedule.steps import Distribute, Pack, Pad, Pair, Permute, Recode, Step, Tighten

BYTES = (UINT8, INT8)


def as_words(site: Site, machine: Machine, loop: str) -> Prepared | None:
    """Prepare a nest's factors for the machine's dot product; return None if it has none for them."""
    if machine.pairs and sum(e.dtype == BFLOAT16 for e in site.roles.operands) == 2:
        return as_given(site, machine, loop)
    if not machine.quads or len(_factors(site.nest)) != 2:
        return None
    return site.once(("words", loop), lambda: _of_bytes(site, machine, loop))


@dataclass(frozen=True)
class Factor:
    """A factor with several terms taken at once.

    It is read without a copy if `in_place` allows it and that is legal, else from a copy with its dimensions in
    `order`.
    """

    load: Load
    order: tuple[int, ...]
    in_place: bool


def in_words(trial: Trial, loop: str, factors: Sequence[Factor], before: Sequence[Step] = ()) -> dict[str, Load] | None:
    """Take several steps of a loop at once, after the steps `before`.

    Return the copies made for it by their names, each with the load that it replaces; None if that is illegal.
    """
    fresh = [trial.fresh(f"{f.load.buffer}_pairs") for f in factors]
    choices = ([f.load.buffer, n] if f.in_place else [n] for f, n in zip(factors, fresh, strict=True))
    for first, second in product(*choices):
        steps = (*before, Pair(loop, first, second))
        if trial.take(*steps) or trial.take(Tighten(loop), *steps):
            copies = {n: f for f, n in zip(factors, fresh, strict=True) if n in (first, second)}
            turned = (Permute(n, f.order) for n, f in copies.items() if f.order != tuple(range(len(f.order))))
            return {n: f.load for n, f in copies.items()} if trial.take(*turned) else None
    return None


def with_copies(
    plan: Plan, nest: Nest, trial: Trial, machine: Machine, copies: Iterable[str], moved: Mapping[str, Handle]
) -> bool:
    """Take the steps of a plan, and those that make copies: as a whole, or `moved` into a loop.

    Return False if a step was illegal.
    """
    for name in copies:
        if name not in moved:
            transposed_blocks(trial, name, machine.vector_bytes)
    there = tuple(Operand(name, "moved", at=at) for name, at in moved.items())
    return realise(replace(plan, operands=(*plan.operands, *there)), nest, trial, machine)


def _factors(nest: Nest) -> list[Load]:
    """Return the factors of bytes: the operands that differ from term to term."""
    roles = Roles.of(nest)
    found = [e for e in roles.operands if any(depends(e.indices, n) for n in roles.terms)]
    return found if all(e.dtype in BYTES for e in found) else []


def _of_bytes(site: Site, machine: Machine, loop: str) -> Prepared | None:
    trial, start = site.trial.fork(), len(site.trial.steps)
    made = [*(_padded(site.nest, trial) if site.nest.conditions else []), *_packed(trial, loop)]
    nest = trial.nest(loop)
    factors = _factors(nest)
    if factors[0].dtype == factors[1].dtype:
        name = trial.fresh(f"{factors[0].buffer}_recoded")
        if not trial.take(Recode(factors[0].buffer, name)):
            return None
        made.append(name)
    first, second = (trial.fresh(f"{e.buffer}_sums") for e in factors)
    if trial.take(Distribute(nest.inner_loops[0].var, first, second)):
        made += [first, second]
    for name in made:
        _scheduled(site, trial, name)
    marks = Marks(site.trial.kernel, start, start, len(trial.steps))
    return Prepared(site, trial, trial.nest(loop), loop, lanes_of(nest, machine, nest.extent(loop)), marks)


def _padded(nest: Nest, trial: Trial) -> list[str]:
    """Make padded copies of factors, with zeros or their zero points beyond the ends that windows reach."""
    made: list[str] = []
    for e in _factors(nest):
        name = trial.fresh(f"{e.buffer}_padded")
        if (dims := walked(nest, e)) and trial.take(Pad(e.buffer, dims, name)):
            made.append(name)
    return made


def walked(nest: Nest, e: Load) -> tuple[int, ...]:
    """Return the dimensions in which a window accesses places beyond the ends."""
    return tuple(d for d, i in enumerate(e.indices) if len(free_vars(i) & nest.borders) > 1)


def _packed(trial: Trial, loop: str) -> list[str]:
    """Copy the operands that lanes would read with a stride.

    Operands whose neighbouring terms are contiguous are left out: these are copied by dot-product packing.
    """
    nest, made = trial.nest(loop), list[str]()
    for e in Roles.of(nest, loop).vectors:
        beside = any(
            is_contiguous(e, n, nest.shapes) and extent % PAIR_BYTES == 0 for n, extent in Roles.of(nest).counts.items()
        )
        axis = own_axis(e, loop)
        name = trial.fresh(f"{e.buffer}_packed")
        across = not beside and axis not in (None, len(e.indices) - 1) and e.dtype in BYTES
        if across and trial.take(Pack(e.buffer, with_last(len(e.indices), axis or 0), name)):
            made.append(name)
    return made


def _scheduled(site: Site, trial: Trial, name: str) -> None:
    """Schedule the loop nest that makes a buffer, if there is one; the padding of a copy is left out."""
    found = [n for n in nests(trial.kernel) if any(s.buffer == name for s in n.results)]
    if found:
        site.schedule(trial, found[-1])
