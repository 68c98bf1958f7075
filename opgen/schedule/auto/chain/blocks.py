"""Blocks in which a chain of loop nests is computed, and their sizes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from opgen.locks import cached_property
from opgen.loop.walk import free_vars
from opgen.machine import Machine
from opgen.schedule.auto.cuts import divisors
from opgen.schedule.auto.nests import Nest
from opgen.schedule.auto.sources import Sources, along
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import BLOCK_FREE, FOUND_SUMS, MADE, START
from opgen.schedule.cost.memory import Memory, Shares
from opgen.schedule.steps import ComputeAt, Parallel, Split, Step


class _Chosen(NamedTuple):
    """The best blocks: `gain` in seconds of memory time, the loop to cut and its iterations, the moved
    intermediates.
    """

    gain: float
    best: tuple[int, int] | None
    moved: tuple[str, ...]


@dataclass(frozen=True)
class Blocks:
    """The last loop nest of a chain and its outer loops."""

    last: Nest
    loops: tuple[str, ...]
    sources: Sources
    machine: Machine

    @cached_property
    def best(self) -> tuple[int, int] | None:
        """Return the loop to cut and its iterations per block; None if one block of everything is best."""
        return self._chosen.best

    @property
    def gain(self) -> float:
        """Return the seconds of memory time that blocks save over one block of everything."""
        return self._chosen.gain

    @cached_property
    def _chosen(self) -> _Chosen:
        """Return the best blocks.

        Each number of outer loops is tried, with the intermediates that follow at least that number.
        """
        found = _Chosen(0, None, ())
        for depth in sorted(set(self._movable.values())):
            moved = tuple(b for b, own in self._movable.items() if own >= depth)
            seconds, (level, size) = self._best(moved, depth)
            gain = self._seconds(moved, 1) - seconds
            if found.best is None or gain > found.gain:
                found = _Chosen(gain, None if level < 0 else (level, size), moved)
        return found

    def run(self, trial: Trial) -> bool:
        """Make the best blocks, and the intermediates in them; return False if there are none, or it is illegal."""
        if self.best is None:
            return False
        level, size = self.best
        loop = self.loops[level]
        block = trial.fresh(f"{loop}_b") if size > 1 else loop
        alone = level == 0 or self._extents[0] % self.machine.cores == 0
        steps: list[Step] = [Parallel(self.loops[0])] if alone else []  # now, while the loop holds little
        if size > 1:
            steps.append(Split(loop, size, "exact", block, trial.fresh(f"{loop}_t")))
        steps += [ComputeAt(buffer, block) for buffer in self._moved]
        if not trial.take(*steps):
            return False
        if not alone:
            trial.fused_prefix([*self.loops[:level], block][-2:], Parallel)
        return True

    @cached_property
    def _extents(self) -> tuple[int, ...]:
        return tuple(self.last.extent(n) or 0 for n in self.loops)

    @property
    def _moved(self) -> tuple[str, ...]:
        """Return the intermediates that are made in blocks, each after its readers."""
        return self._chosen.moved

    @cached_property
    def _movable(self) -> dict[str, int]:
        """Return the intermediates that could be made in blocks, each after its readers.

        The value is the number of outer loops that each follows.
        """
        followed = {b: [n in own for n in self.loops] for b, own in self._followers.items()}
        return {b: [*moves, False].index(False) for b, moves in followed.items() if any(moves[:1])}

    @cached_property
    def _followers(self) -> dict[str, dict[str, str]]:
        """Return, for each buffer of the chain, the last first, the loop of its writer that each outer loop decides
        on.
        """
        found: dict[str, dict[str, str]] = {}
        for buffer in reversed(self.sources.writers):
            followed = [self._followed_by(buffer, r, found) for r in self.sources.readers.get(buffer, [self.last])]
            found[buffer] = {n: own for n, own in followed[0].items() if all(f.get(n) == own for f in followed)}
        return found

    def _followed_by(self, buffer: str, reader: Nest, found: dict[str, dict[str, str]]) -> dict[str, str]:
        """Return the result of `_followed` for a reader that is the last loop nest or makes a buffer in `found`."""
        own = {n: n for n in self.loops} if reader is self.last else found.get(self.sources.made_by(reader) or "", {})
        return self._followed(buffer, reader, own)

    def _followed(self, buffer: str, reader: Nest, loops: dict[str, str]) -> dict[str, str]:
        """Return the loop that makes the part of an intermediate that each outer loop decides on."""
        found: dict[str, str] = {}
        for load in (e for e in self.sources.reads(reader) if e.buffer == buffer):
            for outer, loop in loops.items():
                axes = [d for d, index in enumerate(load.indices) if loop in free_vars(index)]
                own = along(self.sources.writers[buffer], buffer, axes[0]) if axes else None
                if own is not None:
                    found[outer] = own
        return found

    # How large ----------------------------------------------------------------------------------------

    def _best(self, moved: tuple[str, ...], depth: int) -> tuple[float, tuple[int, int]]:
        """Return the seconds, and the loop and its iterations per block: (-1, 1) for one block of everything."""
        best = self._seconds(moved, 1), (-1, 1)
        for level in range(depth):
            extent = self._extents[level]
            for size in divisors(extent):
                blocks = prod(self._extents[: level + 1]) // size
                if blocks > 1 and (size < extent or level == 0):
                    best = min(best, (self._seconds(moved, blocks), (level, size)))
        return best

    def _seconds(self, moved: tuple[str, ...], blocks: int) -> float:
        """Return the time that memory takes.

        Intermediates are written and read; data that serves all blocks is read by each.  Beyond the second cache a
        written line is first read, and written back later.  Some of this begins before blocks are as large as the
        cache.
        """
        piece, shared = sum(map(self._size, moved)) / blocks, self._shared(moved)
        second = self.machine.l2.size
        far = min(1.0, max(0.0, (piece / second - BLOCK_FREE) / (1 - BLOCK_FREE)))
        rates = self._rate(min(piece, second)), self._rate_of_made(max(piece, second + 1))
        made = (2 + 2 * far) * piece * ((1 - far) / rates[0] + far / rates[1])
        seconds = blocks * (made + shared / self._rate(shared + piece) + START)
        cores = self.machine.cores
        return seconds if blocks == 1 else seconds * (-(-blocks // cores) * cores / blocks)

    @cached_property
    def _memory(self) -> Memory:
        """Return a memory model in which a block may use all of the second cache."""
        return Memory(self.machine, Shares(0, 1, FOUND_SUMS))

    def _rate(self, size: float) -> float:
        return self._memory.rate(size)

    def _rate_of_made(self, size: float) -> float:
        """Return the bandwidth for intermediates from beyond the second cache."""
        return min(self._rate(size), MADE * self.machine.memory_bytes_per_second)

    def _size(self, buffer: str) -> int:
        """Return the bytes of a buffer."""
        return self.sources.size(buffer)

    def _shared(self, moved: tuple[str, ...]) -> int:
        """Return the bytes that a block reads and that are the same for all blocks."""
        found: set[str] = set()
        for buffer in moved:
            loop = self._followers[buffer][self.loops[0]]
            reads = self.sources.reads(self.sources.writers[buffer])
            found |= {e.buffer for e in reads if not any(loop in free_vars(i) for i in e.indices)}
        return sum(map(self._size, found.difference(moved)))
