"""Panels: a copy of an input in another order made block by block, just before a block is used and while it is hot.

A copy made as a whole is written to memory and read back; a panel stays in the cache.  It is made by the thread that
uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from opgen.loop.nodes import Alloc, Kernel, Load
from opgen.loop.walk import allocs_in, loads, loops_in, skeleton
from opgen.machine import Machine
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.copies.blocks import transposed_blocks
from opgen.schedule.auto.nests import depends, nest_around, nest_of, nests, read_in_steps
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import (
    ALL,
    PANEL_LARGE,
    PANEL_OVERLAP,
    TURNS,
)
from opgen.schedule.cost.memory import Memory
from opgen.schedule.cost.sizes import bytes_of
from opgen.schedule.steps import Carry, Fuse, Pack, Parallel, Reorder, Split, Step, Unroll, Vectorize, Widen


@dataclass(frozen=True)
class Marks:
    """State of a trial: its `kernel` before inputs were packed, and three numbers of steps.

    They are the numbers at that time, after the packing, and when everything was ready for the tile.
    """

    kernel: Kernel
    before: int
    packed: int
    ready: int


def rows_in_lanes(copy: str, last: int, lanes: int, whole: bool = True) -> list[Step]:
    """Return the steps that vectorise a copy along its `last` dimension, with all vectors of a row unrolled.

    The vectors are masked, and not unrolled, unless rows are known to be `whole`.
    """
    row = f"{copy}_{last}"
    if not whole:
        return [Split(row, lanes, "guard", f"{row}_o", f"{row}_l"), Vectorize(f"{row}_l")]
    return [Split(row, lanes, "exact", f"{row}_o", f"{row}_l"), Unroll(f"{row}_o"), Vectorize(f"{row}_l")]


def widened(trial: Trial, rows: Load, name: str, steps: list[Step]) -> tuple[str, list[Step]]:
    """Return the name of a copy, and the steps that make it in the type that is computed with."""
    if rows.dtype == rows.dtype.compute_type:
        return name, steps
    wide = trial.fresh(f"{name}_wide")
    return wide, [*steps, Widen(name, wide)]


def panelled_vectors(trial: Trial, marks: Marks, vector: str, machine: Machine) -> None:
    """Replace the copy of an input by panels, one for each block of the tile along `vector`, if that pays."""
    split = next((s for s in trial.steps[marks.ready :] if isinstance(s, Split) and s.loop == vector), None)
    if split is not None and split.tail == "exact":
        panelled(trial, marks, split.outer, machine)


def panelled_across(trial: Trial, marks: Marks, vector: str, machine: Machine) -> None:
    """Replace the copy by panels as `panelled_vectors` does, for a loop nest without reduction.

    A panel covers the loops along the input's lines while it fits the second cache, so that whole lines are read.
    """
    copies = [s.buffer for s in trial.steps[marks.before : marks.packed] if isinstance(s, Pack)]
    split = next((s for s in trial.steps[marks.ready :] if isinstance(s, Split) and s.loop == vector), None)
    if len(copies) != 1 or split is None or split.tail != "exact":
        return
    if panelled_around(trial, marks, vector, machine):
        return
    found = nest_of(marks.kernel, vector)
    blocks = (found.extent(vector) or 1) // split.factor
    if Memory(machine).holds(_bytes(marks.kernel, copies[0]) // blocks, 2):
        last = [e.indices[-1] for e in found.outside_loads if e.buffer == copies[0]]
        again = Trial(trial.kernel, list(trial.steps))
        panelled(again, marks, split.outer, machine, tuple(n for n in found.names if depends(tuple(last), n)))
        made = next((s.name for s in again.steps[marks.before :] if isinstance(s, Pack) and s.at is not None), None)
        if made is not None and _copied(again.kernel, made) <= PANEL_OVERLAP * _bytes(marks.kernel, copies[0]):
            trial.adopt(again, 0)


def panelled_around(trial: Trial, marks: Marks, vector: str, machine: Machine) -> bool:
    """Replace the copy of a large input by panels around a loop nest that makes an intermediate in blocks.

    There is a panel for each iteration of a loop: the innermost whose panels copy little twice.  Return False if no
    loop qualifies, or the second cache does not hold the panels.
    """
    around = nest_around(marks.kernel, vector)
    pack = next(s for s in trial.steps[marks.before : marks.packed] if isinstance(s, Pack))
    if around is None or marks.packed != marks.ready or not _large(marks.kernel, pack.buffer, machine):
        return False
    most, memory = PANEL_OVERLAP * _bytes(marks.kernel, pack.buffer), Memory(machine)
    for loop in reversed(around.names):
        again = Trial(marks.kernel)
        if again.take(replace(pack, at=loop)) and _copied(again.kernel, pack.name) <= most:
            shared = any(s.kind == "parallel" for s in around.loops)
            panel = _allocated(again.kernel, pack.name).buffer
            transposed = transposed_blocks(again, pack.name, machine.vector_bytes, () if shared else None)
            if (
                not memory.holds(bytes_of(panel), 2, ALL)
                or not (shared or transposed)
                or not again.take(*trial.steps[marks.ready :])
            ):
                return False
            return trial.adopt(again, marks.before)
    return False


def panelled(trial: Trial, marks: Marks, blocks: str, machine: Machine, covered: tuple[str, ...] = ()) -> None:
    """Replace the copy of an input by panels, if the input is large and threads can share them.

    There is one for each iteration of `blocks` and all of the loops `covered`.
    """
    steps = trial.steps
    made = [s for s in steps[marks.before : marks.packed] if isinstance(s, Pack)]
    if len(made) != 1 or not _large(marks.kernel, made[0].buffer, machine):
        return
    if read_in_steps(marks.kernel, made[0].buffer):
        return  # the copy is made once, a panel would be made at each step
    again, (pack,) = Trial(marks.kernel), made
    between = [s for s in steps[marks.packed : marks.ready] if not _widens(s, pack)]
    wide = len(between) < marks.ready - marks.packed
    serial = [s for s in steps[marks.ready :] if not isinstance(s, Parallel | Fuse)]
    if again.take(*between, *serial) and _made(again, pack, blocks, wide, machine, covered):
        trial.adopt(again, marks.before)


def _shared_out(count: int, machine: Machine) -> bool:
    """Return True if `count` blocks keep all cores busy to the end."""
    return count >= TURNS * machine.cores or count % machine.cores == 0


def _widens(step: Step, pack: Pack) -> bool:
    return isinstance(step, Widen) and step.buffer == pack.name


def _large(kernel: Kernel, buffer: str, machine: Machine) -> bool:
    """Return True if a copy would evict the data used with it from the second cache."""
    return not Memory(machine).holds(_bytes(kernel, buffer), 2, PANEL_LARGE)


def _bytes(kernel: Kernel, buffer: str) -> int:
    """Return the bytes of an input."""
    return bytes_of(next(i for i in kernel.inputs if i.name == buffer))


def _copied(kernel: Kernel, panel: str) -> int:
    """Return the bytes of all panels that the loops around one make."""
    found = _allocated(kernel, panel)
    around = [s for s in loops_in(kernel.body) if any(p is found for p in skeleton(s))]
    return bytes_of(found.buffer) * prod(constant_extent(s) or 1 for s in around)


def _allocated(kernel: Kernel, name: str) -> Alloc:
    return next(s for s in allocs_in(kernel.body) if any(o.name == name for o in s.buffers))


def _without_gaps(kernel: Kernel, panel: Pack, inner: Sequence[str]) -> Pack:
    """Return a panel that is made in the last of the loops `inner` if it would otherwise have large gaps.

    An example is the panel of `w[g * n + j]` for some j and all g.
    """
    most = PANEL_OVERLAP * _bytes(kernel, panel.buffer)

    def is_dense(made: Pack) -> bool:
        panels = Trial(kernel)
        return panels.take(made) and _copied(panels.kernel, made.name) <= most

    if not inner or is_dense(panel):
        return panel
    further = replace(panel, at=inner[-1])
    return further if is_dense(further) else panel


def blocks_outside(
    trial: Trial, buffer: str, blocks: str, machine: Machine, covered: tuple[str, ...] = ()
) -> tuple[str, ...] | None:
    """Move a loop outside of those around it that are `covered`, or whose iterations read the same of a buffer.

    Return the loops down to it; None if threads could not share them, or the step is refused.
    """
    nest = next((n for n in nests(trial.kernel) if blocks in n.names), None)
    if nest is None:
        return None
    around = nest.names[: nest.names.index(blocks)]
    uses = [e for e in loads(nest.core) if e.buffer == buffer]
    changing = [n for n in around if n not in covered and any(depends(e.indices, n) for e in uses)]
    same = [n for n in around if n not in changing]
    if not _shared_out(prod(nest.extent(n) or 1 for n in (*changing, blocks)), machine):
        return None
    return None if same and not trial.take(Reorder((*changing, blocks, *same))) else (*changing, blocks)


def _made(trial: Trial, pack: Pack, blocks: str, wide: bool, machine: Machine, covered: tuple[str, ...]) -> bool:
    """Make the copy a panel of each iteration of `blocks`, in a wider type if `wide`.

    `blocks` goes outside all loops that use the same panel.  Return False if that is illegal.
    """
    around = blocks_outside(trial, pack.buffer, blocks, machine, covered)
    if around is None:
        return False
    name = trial.fresh(f"{pack.buffer}_panel")
    panel = Pack(pack.buffer, pack.order, name, blocks)
    nest = next(n for n in nests(trial.kernel) if blocks in n.names)
    uses = [e for e in loads(nest.core) if e.buffer == pack.buffer]
    inside = [n for n in nest.names[len(around) :] if n not in covered and any(depends(e.indices, n) for e in uses)]
    if not trial.take(_without_gaps(trial.kernel, panel, inside)):
        return False
    carried = {s.loop for s in trial.steps if isinstance(s, Carry)}  # its iterations follow each other
    shared = [n for n in around if n not in carried]
    if not transposed_blocks(trial, name, machine.vector_bytes, shared):
        return False
    return not wide or trial.take(Widen(name, trial.fresh(f"{name}_wide")))
