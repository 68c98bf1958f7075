"""Panels of nests whose sizes are not known: what the lanes of a tile read, copied so that it lies side by side.

The lines that a block of lanes reads lie a row of the input apart; where that is a power of two they share few sets of
a cache, whatever its size.  A copy of the block has none of this, and may have its dimensions in another order: lanes
that would read with a stride read consecutively.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opgen.loop import build as b
from opgen.loop.nodes import Buffer, Load
from opgen.schedule.auto.nests import Nest, depends, is_contiguous, own_axis, with_last
from opgen.schedule.auto.roles import Roles
from opgen.schedule.auto.trial import Trial
from opgen.schedule.loops import loop_names
from opgen.schedule.steps import Pack, Parallel, Reorder, Split, Transpose, Vectorize, Version


def mixes(nest: Nest, vector: str) -> bool:
    """Whether some reads are the same for all lanes."""
    return not Roles.of(nest, vector).is_window


def rows(nest: Nest, vector: str) -> list[Load]:
    """What the lanes read: consecutively, or along a dimension of its own, so that a copy can be read consecutively."""
    touched = Roles.of(nest, vector).vectors
    packable = (e for e in touched if is_contiguous(e, vector, nest.shapes) or _strided(e, vector))
    return list(packable)


def loops_of_reuse(nest: Nest, vector: str) -> list[str]:
    """The loops, innermost first, on which something that the lanes read does not depend."""
    found = rows(nest, vector)
    others = [n for n in reversed(nest.names) if n != vector]
    return [n for n in others if any(not depends(e.indices, n) for e in found)]


def _strided(load: Load, vector: str) -> bool:
    axis = own_axis(load, vector)
    return axis is not None and axis != len(load.indices) - 1


@dataclass(frozen=True)
class Panel:
    """A copy of what one iteration of a loop reads of an input, with dimension `axis` last; the lanes of the tile, of
    `width` at a time, walk along it.
    """

    buffer: Buffer
    axis: int

    @property
    def order(self) -> tuple[int, ...]:
        return with_last(len(self.buffer.shape), self.axis)

    @property
    def transposed(self) -> bool:
        return self.axis != len(self.buffer.shape) - 1

    def make(self, trial: Trial, at: str, width: int | None, lanes: int) -> bool:
        """Make the copy in each iteration of a loop; the tile is `width` wide, or (without) not split before that."""
        name = f"{self.buffer.name}_of_{at}"
        if not trial.take(Pack(self.buffer.name, self.order, name, at)):
            return False
        loops = [f"{name}_{d}" for d in range(len(self.order))]
        if not self.transposed:
            self._copied(trial, loops, lanes)
            return True
        size = self.buffer.shape[self.axis]
        fits = b.compare("ge", size, lanes) if width is None else b.compare("eq", b.mod(size, width), 0)
        if trial.take(Version(loops[0], b.both(fits, b.compare("ge", self.buffer.shape[-1], lanes)), "whole")):
            _transposed(trial, [f"{n}_whole" for n in loops], lanes, shared=width is None)
        outer, inner = trial.fresh(f"{loops[-2]}_o"), trial.fresh(f"{loops[-2]}_i")
        trial.take(Split(loops[-2], lanes, "min", outer, inner), Reorder((*loops[:-2], outer, loops[-1], inner)))
        return True

    @staticmethod
    def _copied(trial: Trial, loops: Sequence[str], lanes: int) -> None:
        """Lines as they are, in vectors."""
        outer, inner = trial.fresh(f"{loops[-1]}_o"), trial.fresh(f"{loops[-1]}_l")
        trial.take(Split(loops[-1], lanes, "guard", outer, inner), Vectorize(inner))


def _transposed(trial: Trial, loops: Sequence[str], lanes: int, shared: bool) -> None:
    """Square blocks transposed in registers, read in consecutive streams; the last ones overlap those before.  Threads
    have their parts if the copy is `shared`.
    """
    known = loop_names(trial.kernel)
    around = [n for n in loops[:-2] if n in known]
    along, across = loops[-2:]
    c_o, c_i, r_o, r_i = (f"{n}_{part}" for n in (across, along) for part in "oi")
    trial.take(
        Reorder((*around, across, along)),
        Split(across, lanes, "overlap", c_o, c_i),
        Split(along, lanes, "overlap", r_o, r_i),
        Reorder((*around, c_o, r_o, c_i, r_i)),
        Transpose(c_i, r_i),
    )
    if shared and around:
        trial.take(Parallel(around[-1]))
