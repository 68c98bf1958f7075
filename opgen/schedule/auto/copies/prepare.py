"""Preparation of a loop nest before it is tiled: packing of inputs for contiguous lanes, splitting into phases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from opgen.loop.nodes import Kernel, Load
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.copies.blocks import transposed_blocks
from opgen.schedule.auto.nests import (
    Nest,
    is_contiguous,
    nest_around,
    own_axis,
    reduces,
    with_last,
)
from opgen.schedule.auto.roles import Roles
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import USES, USES_NOT_SUMMED
from opgen.schedule.cost.sizes import elements_of
from opgen.schedule.split import Tail
from opgen.schedule.steps import Pack, Split, Widen


def pack_strided(nest: Nest, vector: str, trial: Trial, vector_bytes: int) -> Nest:
    """Copy inputs that lanes along `vector` would read with a stride, if a reduction reads them again and again."""
    packed = strided(nest, vector, trial)
    for buffer, axis in packed:
        _pack(buffer, axis, vector_bytes, trial)
    return trial.nest(vector) if packed else nest


def strided(nest: Nest, vector: str, trial: Trial) -> list[tuple[str, int]]:
    """Return the inputs to be packed for lanes along `vector`, each with the dimension that becomes last."""
    found: list[tuple[str, int]] = []
    roles = Roles.of(nest, vector)
    for load in roles.vectors if reduces(nest) else ():
        axis = own_axis(load, vector)
        if is_contiguous(load, vector, nest.shapes) or axis is None or axis == len(load.indices) - 1:
            continue  # a copy with the same last dimension would be read in the same way
        if not roles.scalars and _reads(nest) < USES * elements(nest, load.buffer):
            continue
        if load.buffer in {i.name for i in trial.kernel.inputs}:
            found.append((load.buffer, axis))
    return found


def pack_shared(nest: Nest, vector: str, trial: Trial, vector_bytes: int) -> Nest:
    """Copy inputs that lanes along `vector` would read with a stride, if reads are shared.

    Each read serves several results, or each element is read several times.
    """
    several = len(nest.results) > len(nest.outside_loads)
    around = nest_around(trial.kernel, vector)
    loops = (nest, *([] if around is None else [around]))
    count = prod(n.extent(name) or 0 for n in loops for name in n.names)
    for load in nest.outside_loads:
        reads = count * len({e for e in nest.outside_loads if e.buffer == load.buffer})
        if not several and not 0 < USES_NOT_SUMMED * elements(nest, load.buffer) <= reads:
            continue
        axis = own_axis(load, vector)
        known = load.buffer in {i.name for i in trial.kernel.inputs}  # not a copy: a buffer is packed once
        if known and axis is not None and axis != len(load.indices) - 1 and trial.nest(vector).reads(load.buffer):
            _pack(load.buffer, axis, vector_bytes, trial)
    return trial.nest(vector)


def widen_reused(nest: Nest, vector: str, trial: Trial, only: Sequence[Load] | None = None) -> list[str]:
    """Widen narrow inputs, or those in `only`, that are read again and again, to the type that is computed with.

    Each conversion costs about as much as a multiply-add.  Return a loop of each new copy's loop nest.

    If every read depends on the lanes, neighbours share reads and conversions, and a copy would only add traffic.
    """
    copies: list[str] = []
    for load in narrow(nest, vector, only):
        name = trial.fresh(f"{load.buffer}_wide")
        given = load.buffer in {i.name for i in trial.kernel.inputs}
        if trial.take(Widen(load.buffer, name)) and given and load.indices:  # a scalar's copy has no loop
            copies.append(f"{name}_0")
    return copies


def narrow(nest: Nest, vector: str, only: Sequence[Load] | None = None) -> list[Load]:
    """Return the narrow operands, or those among `only`, that get wide copies."""
    roles = Roles.of(nest, vector)
    operands = () if roles.is_window else roles.operands if only is None else only
    return [e for e in operands if e.dtype != e.dtype.compute_type and reused(nest, e.buffer)]


def reused(nest: Nest, buffer: str) -> bool:
    """Return True if each element of an input is read again and again."""
    return _reads(nest) >= USES * elements(nest, buffer)


def _reads(nest: Nest) -> int:
    """Return the number of times each load is executed; 0 if a loop's extent is not constant."""
    return prod(nest.extent(n) or 0 for n in nest.names) * prod(constant_extent(s) or 0 for s in nest.inner_loops)


def elements(nest: Nest, buffer: str) -> int:
    """Return the number of elements of a buffer; 0 if its size is not constant."""
    return elements_of(nest.shapes[buffer])


def pack_last(load: Load, axis: int, trial: Trial, vector_bytes: int) -> bool:
    """Copy the buffer of a load with one dimension last, unless it is; return True if its lanes are then contiguous."""
    if axis == len(load.indices) - 1:
        return True
    if load.buffer not in {i.name for i in trial.kernel.inputs}:
        return False
    _pack(load.buffer, axis, vector_bytes, trial)
    return True


def _pack(buffer: str, axis: int, vector_bytes: int, trial: Trial) -> None:
    """Copy an input with one dimension last."""
    rank = len(_shape(trial.kernel, buffer))
    order = with_last(rank, axis)
    name = trial.fresh(f"{buffer}_packed")
    if trial.take(Pack(buffer, order, name)):
        transposed_blocks(trial, name, vector_bytes)


def _shape(kernel: Kernel, buffer: str) -> tuple[object, ...]:
    return next(i.shape for i in kernel.inputs if i.name == buffer)


@dataclass(frozen=True)
class Phases:
    """Loops that were split to decide a divisibility; `quotients` maps each to its outer part."""

    quotients: dict[str, str]
    remainders: tuple[str, ...]


def split_phases(nest: Nest, trial: Trial, only: str | None = None) -> Phases:
    """Split each loop, or only one, that a condition `(loop + ...) % c == 0` depends on, by c.

    The condition is then the same for all places of a phase.  It stays outside of their loop, or is decided for each
    tap if taps and phases are unrolled.
    """
    quotients: dict[str, str] = {}
    remainders: list[str] = []
    for loop, step in nest.phases.items():
        outer, inner = trial.fresh(f"{loop}_q"), trial.fresh(f"{loop}_p")
        extent = nest.extent(loop)
        tail: Tail = "exact" if extent is not None and extent % step == 0 else "guard"
        if only not in (None, loop):
            continue
        if extent is not None and extent > step and trial.take(Split(loop, step, tail, outer, inner)):
            quotients[loop] = outer
            remainders.append(inner)
    return Phases(quotients, tuple(remainders))
