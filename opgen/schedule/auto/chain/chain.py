"""Chains of loop nests: intermediates are computed where they are used.

A loop over blocks (`blocks.py`) goes around the last loop nest of a chain.  Each block makes, uses and discards its
part of the intermediates, so that this stays in the second cache.  All other loop nests are scheduled separately.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from opgen.loop.nodes import Kernel
from opgen.loop.walk import allocs_in, outermost
from opgen.machine import Machine
from opgen.schedule.auto.chain.blocks import Blocks
from opgen.schedule.auto.chain.sum_blocks import SumBlocks
from opgen.schedule.auto.nests import Nest, contiguous_loop, inner_nests, loop_of_reads
from opgen.schedule.auto.sources import Sources
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import CHAIN_LONGEST
from opgen.schedule.steps import Reorder


def has_intermediates(kernel: Kernel) -> bool:
    """Return True if loop nests feed each other through memory."""
    return any(s.space == "heap" for s in allocs_in(kernel.body))


def is_short(kernel: Kernel) -> bool:
    """Return True if there are few enough loop nests to be considered together."""
    return len(outermost(kernel.body)[1]) <= CHAIN_LONGEST


def is_chain(kernel: Kernel, machine: Machine) -> bool:
    """Return True if loop nests feed each other so that they are better scheduled together."""
    if not has_intermediates(kernel):
        return False
    sources = Sources(kernel)
    if any(nest.extent(n) is None for nest in sources.nests for n in nest.names):
        return False
    return max(gain(sources, machine) for gain in (_gain, _gain_of_sums)) > 0


def schedule_chain(trial: Trial, machine: Machine, alone: Callable[[Nest], None]) -> None:
    """Schedule all loop nests, the last first; `alone` schedules a single one."""
    sources = Sources(trial.kernel)
    summed = _gain_of_sums(sources, machine) > _gain(sources, machine)
    for nest in reversed(sources.nests):
        find = _Find(sources.made_by(nest), frozenset(nest.names))
        if summed:
            _summed_in_blocks(find, trial, machine)
        elif _is_last(nest, sources):
            _in_blocks(find, trial, machine)
        now = find(inner_nests(trial.kernel))
        if now is not None:
            alone(now)


def _in_blocks(find: _Find, trial: Trial, machine: Machine) -> None:
    """Make blocks around the last loop nest.

    If its results are transposed relative to its reads, lanes will follow the reads.
    """
    sources = Sources(trial.kernel)
    last = find(sources.nests)
    across = loop_of_reads(last) if last is not None else None
    if across is not None and last is not None and trial.take(_with_inside(last, across)):
        sources = Sources(trial.kernel)
        last = find(sources.nests)
    if last is not None:
        _blocks(last, sources, machine).run(trial)


def _with_inside(nest: Nest, loop: str) -> Reorder:
    """Return the step that moves a loop of a loop nest innermost."""
    return Reorder((*(n for n in nest.names if n != loop), loop))


def _summed_in_blocks(find: _Find, trial: Trial, machine: Machine) -> None:
    sources = Sources(trial.kernel)
    nest = find(sources.nests)
    blocks = None if nest is None else SumBlocks.of(nest, sources, machine)
    if blocks is not None:
        blocks.run(trial)


def _gain(sources: Sources, machine: Machine) -> float:
    """Return the seconds gained by blocks around the last loop nests."""
    ends = (nest for nest in sources.nests if _is_last(nest, sources))
    return max((_blocks(nest, sources, machine).gain for nest in ends), default=0)


def _gain_of_sums(sources: Sources, machine: Machine) -> float:
    """Return the seconds gained by blocks around loop nests that sum intermediates."""
    found = (SumBlocks.of(nest, sources, machine) for nest in sources.nests)
    return max((blocks.gain for blocks in found if blocks is not None), default=0)


def _is_last(nest: Nest, sources: Sources) -> bool:
    """Return True if a loop nest ends a chain: it reads intermediates and writes a result."""
    return sources.made_by(nest) is None and any(e.buffer in sources.writers for e in nest.outside_loads)


def _blocks(nest: Nest, sources: Sources, machine: Machine) -> Blocks:
    vector = loop_of_reads(nest) or contiguous_loop(nest)
    return Blocks(nest, tuple(n for n in nest.names if n != vector), sources, machine)


@dataclass(frozen=True)
class _Find:
    """Search for a loop nest by its loops, not all of which splitting removes, or else by the intermediate that it
    writes.

    The latter is needed if a sum was divided, and another loop nest adds up its parts.  The result is None if the loop
    nest is gone: for one element no loop is left.
    """

    buffer: str | None
    loops: frozenset[str]

    def __call__(self, nests: Sequence[Nest]) -> Nest | None:
        found = (nest for nest in nests if self.loops & set(nest.names))
        writing = (nest for nest in nests if any(s.buffer == self.buffer for s in nest.results))
        return next(found, next(writing, None))
