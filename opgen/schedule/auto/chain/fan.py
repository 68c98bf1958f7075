"""Nests that fan out: several results are made of the same reads.

The loops that change no read (the fan) are unrolled with the reduction inside, lanes run along the consecutive loop, so
that each read is loaded once and factors that depend on the fan alone are constants.  Intermediates of the nest's own
are made in its registers, for one vector at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from opgen.loop.analysis.polynomial import linear
from opgen.loop.nodes import Binary, Const
from opgen.loop.walk import free_vars, walk_exprs
from opgen.machine import Machine
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.nests import Nest, contiguous_loop, is_contiguous
from opgen.schedule.auto.site import lanes_of
from opgen.schedule.auto.sources import Sources, along
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import FAN_DIVISOR, FAN_TERMS
from opgen.schedule.loops import loop_names
from opgen.schedule.split import Tail
from opgen.schedule.steps import ComputeAt, Reorder, Split, Step, Unroll, Vectorize

Finder = Callable[[Sequence[Nest]], Nest | None]


@dataclass(frozen=True)
class Fan:
    """A nest that fans out: `fan` are the loops that change no read, `inside` the intermediates made in its registers,
    each after those that are made of it.
    """

    nest: Nest
    vector: str
    fan: tuple[str, ...]
    inside: tuple[str, ...]
    sources: Sources
    lanes: int

    @staticmethod
    def of(find: Finder, trial: Trial, machine: Machine) -> Fan | None:
        """The nest that `find` finds, if it fans out; quotients and remainders of its loops are resolved then."""
        before = trial.kernel, list(trial.steps)
        sources = Sources(trial.kernel)
        nest = find(sources.nests)
        if nest is not None and _split_quotients(nest, trial):
            sources = Sources(trial.kernel)
            nest = find(sources.nests)
        if nest is None:
            return None
        within = sources.within(nest)
        fan = tuple(sources.fan(nest, within))
        vector = contiguous_loop(nest)
        if vector is not None and fan and vector not in fan:
            inside = tuple(b for b in reversed(sources.writers) if b in within)
            found = Fan(nest, vector, fan, inside, sources, lanes_of(nest, machine, nest.extent(vector) or 1))
            if found.lanes > 1 and found._is_small() and found._is_consecutive():
                return found
        trial.kernel, trial.steps = before
        return None

    @property
    def outer(self) -> tuple[str, ...]:
        """The loops around those of the vectors."""
        return tuple(n for n in self.nest.names if n not in (*self.fan, self.vector))

    def run(self, trial: Trial) -> bool:
        width = self.nest.extent(self.vector)
        assert width is not None
        tail: Tail = "exact" if width % self.lanes == 0 else "overlap"
        v_o, v_l = trial.fresh(f"{self.vector}_o"), trial.fresh(f"{self.vector}_l")
        taps = [s.var for s in self.nest.inner_loops]
        steps: list[Step] = [
            Split(self.vector, self.lanes, tail, v_o, v_l),
            Reorder((*self.outer, v_o, *self.fan, v_l)),
            *(ComputeAt(buffer, v_o, "register", tail == "overlap") for buffer in self.inside),
            *(Unroll(n) for n in (*self.fan, *taps)),
            Vectorize(v_l),
        ]
        if not trial.take(*steps):
            return False
        lane_loops = self._lane_loops()
        for buffer in self.inside:
            producer = self.sources.writers[buffer]
            left = set(loop_names(trial.kernel))
            names = [n for n in (*producer.names, *(s.var for s in producer.inner_loops)) if n in left]
            if not trial.take(*(Vectorize(n) if n == lane_loops[buffer] else Unroll(n) for n in names)):
                return False
        return True

    def _lane_loops(self) -> dict[str, str | None]:
        """The loop of each intermediate's nest that runs along the lanes."""
        found: dict[str, str | None] = {}
        for buffer in self.inside:
            (reader,) = self.sources.readers[buffer]
            own = self.sources.made_by(reader)
            vector = self.vector if reader is self.nest or own is None else found[own]
            load = next(e for e in self.sources.reads(reader) if e.buffer == buffer)
            axes = [d for d, index in enumerate(load.indices) if vector in free_vars(index)]
            found[buffer] = along(self.sources.writers[buffer], buffer, axes[0]) if axes else None
        return found

    def _is_small(self) -> bool:
        """Whether all that is unrolled has a known and small number of terms."""
        counts = [_terms(self.nest, self.fan)]
        for buffer in self.inside:
            nest = self.sources.writers[buffer]
            (reader,) = self.sources.readers[buffer]
            load = next(e for e in self.sources.reads(reader) if e.buffer == buffer)
            taps = {s.var for s in reader.inner_loops} | set(self.sources.fan(reader, self.sources.within(reader)))
            axes = [d for d, index in enumerate(load.indices) if free_vars(index) & taps]
            counts.append(_terms(nest, [n for d in axes if (n := along(nest, buffer, d)) is not None]))
        return all(c is not None for c in counts) and sum(c or 0 for c in counts) <= FAN_TERMS

    def _is_consecutive(self) -> bool:
        """Whether what follows the lanes is read consecutively."""
        lanes = self._lane_loops()
        nests: list[tuple[Nest, str | None]] = [(self.nest, self.vector)]
        nests += [(self.sources.writers[buffer], lanes[buffer]) for buffer in self.inside]
        for nest, vector in nests:
            if vector is None:
                return False
            moving = [e for e in self.sources.reads(nest) if any(vector in free_vars(i) for i in e.indices)]
            if not moving or not all(is_contiguous(e, vector, nest.shapes) for e in moving):
                return False
        return True


def may_fan_out(nest: Nest, sources: Sources) -> bool:
    """Whether it is worth a closer look: a nest without such loops, or names for them to be, does not fan out."""
    return bool(_quotients(nest)) or bool(sources.fan(nest, sources.within(nest)))


def _terms(nest: Nest, loops: list[str] | tuple[str, ...]) -> int | None:
    """How many terms these loops of a nest and its reductions have."""
    counts = [nest.extent(n) for n in loops] + [constant_extent(s) for s in nest.inner_loops]
    return None if None in counts else prod(c or 0 for c in counts)


def _split_quotients(nest: Nest, trial: Trial) -> bool:
    """Split each loop of which quotients and remainders by one number are taken, so that they have names; whether there
    are any.
    """
    found = _quotients(nest)
    for loop, divisor in found.items():
        outer, inner = trial.fresh(f"{loop}_q"), trial.fresh(f"{loop}_p")
        extent = nest.extent(loop)
        tail: Tail = "exact" if extent is not None and extent % divisor == 0 else "guard"
        trial.take(Split(loop, divisor, tail, outer, inner))
    return bool(found)


def _quotients(nest: Nest) -> dict[str, int]:
    """The loops in `(loop + ...) // c` or `% c`, with c."""
    found: dict[str, int] = {}
    for e in walk_exprs(nest.core):
        if isinstance(e, Binary) and e.op in ("floordiv", "mod") and isinstance(e.right, Const):
            for name in sorted(free_vars(e.left) & set(nest.names)):
                form = linear(e.left, name)
                if form is not None and form[0] == Const(1) and 1 < int(e.right.value) <= FAN_DIVISOR:
                    found[name] = int(e.right.value)
    return found
