"""Translation of a plan into schedule steps, in one order for all kinds.

The order is: joins and cuts, regrouped loops, the loop order, carried loops, moved copies, tiles for a matrix unit, and
skewed loops.  Then partial and running sums, lanes, prefetches, panels, transposed results, threads, merged loop nests,
ends, squares and stores follow.

Loops are found by their handles.  The name of a handle in the kernel is decided here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from opgen.loop.walk import loops_in
from opgen.machine import Machine
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.copies.blocks import transposed_blocks
from opgen.schedule.auto.copies.panel import rows_in_lanes, widened
from opgen.schedule.auto.nests import Nest
from opgen.schedule.auto.partial import in_partial_sums
from opgen.schedule.auto.plan import Carried, Cut, Handle, Operand, Plan, Private, Result, Running, Skewed, Waiting
from opgen.schedule.auto.trial import Trial
from opgen.schedule.errors import ScheduleError
from opgen.schedule.steps import (
    Carry,
    ComputeAt,
    Fill,
    Flatten,
    Merge,
    Pack,
    Parallel,
    Partition,
    Prefetch,
    Prefix,
    Regroup,
    Relay,
    Reorder,
    Skew,
    Split,
    Stage,
    Step,
    Stream,
    Tensorize,
    Transpose,
    Unroll,
    Vectorize,
)


def realise(plan: Plan, nest: Nest, trial: Trial, machine: Machine) -> bool:
    """Take the steps of a plan for a loop nest; if one is refused, return False, with the earlier ones taken."""
    trial.made = plan
    try:
        _Realiser(plan, nest, trial, machine).run()
    except ScheduleError as refusal:
        trial.refusal = refusal.message
        return False
    return True


@dataclass
class _Realiser:
    plan: Plan
    nest: Nest
    trial: Trial
    machine: Machine
    _names: dict[Handle, str] = field(default_factory=dict)
    _loops: list[Handle] = field(init=False)
    """The current loops over results, outermost first."""
    _done: list[Result | Carried] = field(default_factory=list)
    """The results already transposed, and the loops already carried."""

    def __post_init__(self) -> None:
        self._loops = list(self.nest.names)

    def run(self) -> None:
        plan = self.plan
        for operand in plan.operands:
            if operand.placement == "copy":
                self._packed(operand)
        self._arrange()
        for operand in plan.operands:
            if operand.placement == "moved" and operand.at is not None:
                self._moved(operand.buffer, operand.at)
        if plan.matrix:
            row, column, depth = map(self._name, plan.matrix)
            self._take(Tensorize(row, column, depth, self.trial.fresh("tiles")))
        for skewed in plan.skewed:
            self._skewed(skewed)
        for private in plan.private:
            self._partial(private)
        for waiting in plan.waiting:
            self._waiting(waiting)
        for running in plan.running:
            self._running(running)
        self._take(*(Unroll(self._name(n)) for n in (*plan.unrolled, *plan.tile)))
        if plan.lanes is not None and not plan.private:
            self._take(Vectorize(self._name(plan.lanes)))
        for ahead in plan.ahead:  # optional: some places are not known in advance
            self.trial.take(Prefetch(ahead.buffer, self._name(ahead.at), self._name(ahead.inside)))
        for operand in plan.operands:
            if operand.placement == "panel":
                self._packed(operand)
        self._transpose_results()
        self.trial.fused_prefix([self._name(n) for n in plan.threads], Parallel)
        self._take(*(Merge(other, self._name(self._loops[0])) for other in plan.merged))
        for end in plan.ends:
            self.trial.take(Partition(self._name(end.loop), end.at) if end.at else Unroll(self._name(end.loop)))
        if plan.squares is not None:
            row, column = plan.squares
            self._take(Transpose(self._name(row), self._name(column)))
        self._take(*(Stream(r.buffer) for r in plan.results if r.non_temporal))

    def _take(self, *steps: Step) -> None:
        if not self.trial.take(*steps):
            raise ScheduleError(self.trial.refusal)

    # Names ------------------------------------------------------------------------------------------

    def _name(self, handle: Handle) -> str:
        """Return the name of a handle in the kernel; a loop of the original kernel keeps its name."""
        return self._names.get(handle, handle)

    def _made(self, handle: Handle) -> str:
        """Return a name for a piece or a joined loop that is about to be made."""
        if handle not in self._names:
            self._names[handle] = self.trial.fresh(self._proposed(handle))
        return self._names[handle]

    def _proposed(self, handle: Handle) -> str:
        of, dot, end = handle.rpartition(".")
        if dot:
            return f"{self._name(of)}_{end}"
        outer, _, inner = handle.partition("*")
        return f"{self._name(outer)}_{self._made(inner) if '*' in inner else self._name(inner)}"

    # Loops ------------------------------------------------------------------------------------------

    def _arrange(self) -> None:
        """Join, cut and reorder loops.

        Overlapping or peeled tiles cannot be moved any more, and results are then no longer known to be written as a
        whole.  Loops are therefore brought into their order, and results transposed, before such tiles are made.
        Carried loops are moved outside while there is still a single loop to move them around.
        """
        apart, plan = any(c.apart for c in self.plan.cuts), self.plan
        for handle in plan.joins:
            self._join(handle)
        if plan.terms and not apart:
            self._sorted()
        for cut in plan.cuts:
            if cut.tail == "overlap" or cut.apart:
                self._sorted()
                self._transpose_results()
            if cut.apart or cut.tail == "guard":
                self._carry()
            self._cut(cut)
        self._take(*(Regroup(self._name(loop), self._name(inside)) for loop, inside in plan.regrouped))
        if apart or plan.carried or not plan.terms:
            self._sorted()
        self._carry()
        if plan.terms:
            inside = (*plan.terms, *plan.tile, *(plan.matrix or [n for n in (plan.lanes,) if n is not None]))
            self._take(Reorder(tuple(map(self._name, inside if apart else (*plan.order, *inside)))))

    def _standing(self, handle: Handle) -> Handle:
        """Return a loop or, while it is not cut, the loop whose outer piece it will be."""
        whole = next((c.loop for c in self.plan.cuts if c.outer == handle and c.loop in self._loops), None)
        return handle if whole is None else self._standing(whole)

    def _carry(self) -> None:
        """Move the carried loops outside, unless that is done."""
        for carried in self.plan.carried:
            if carried not in self._done:
                self._take(Carry(self._name(carried.term), self._name(self._standing(carried.at))))
                self._done.append(carried)

    def _join(self, handle: Handle) -> None:
        """Join two loops; those over results are brought together first."""
        outer, _, inner = handle.partition("*")
        if outer not in self._loops:
            self._take(Flatten(self._name(outer), self._name(inner), self._made(handle)))
            return
        others = [n for n in self._loops if n not in (outer, inner)]
        if self._loops[-2:] != [outer, inner]:
            self._reorder([*others, outer, inner])
        self._take(Flatten(self._name(outer), self._name(inner), self._made(handle)))
        self._loops = [*others, handle]

    def _cut(self, cut: Cut) -> None:
        self._take(Split(self._name(cut.loop), cut.size, cut.tail, self._made(cut.outer), self._made(cut.inner)))
        if cut.apart:
            self._take(Partition(self._name(cut.outer), cut.apart))
        if cut.loop in self._loops:
            at = self._loops.index(cut.loop)
            self._loops[at : at + 1] = [cut.outer, cut.inner]

    def _sorted(self) -> None:
        """Bring the loops over results, cut or not, into the order of the plan."""
        wanted = [*self.plan.order, *self.plan.terms, *self.plan.tile, *(self.plan.squares or ())]
        wanted += [self.plan.lanes] if self.plan.lanes is not None else []
        places = {n: i for i, n in reversed([*enumerate(wanted)])}
        first = {n: min((places[p] for p in self._pieces(n) if p in places), default=len(wanted)) for n in self._loops}
        order = sorted(self._loops, key=lambda n: first[n])
        if order != self._loops:
            self._reorder(order)

    def _pieces(self, handle: Handle) -> list[Handle]:
        """Return a loop, or all pieces that it will be cut into."""
        cut = next((c for c in self.plan.cuts if c.loop == handle), None)
        return [handle] if cut is None else [*self._pieces(cut.outer), *self._pieces(cut.inner)]

    def _reorder(self, loops: Sequence[Handle]) -> None:
        self._take(Reorder(tuple(map(self._name, loops))))
        self._loops = list(loops)

    def _skewed(self, skewed: Skewed) -> None:
        """Skew a loop over the elements that are read, if that is legal; it keeps the handle of the loop it
        replaces.
        """
        term, inner = self._name(skewed.term), self._name(skewed.inner)
        name = self.trial.fresh(f"{term}_{self._name(skewed.inner.partition('.')[0])}")
        if self.trial.take(Skew(term, inner, skewed.factor, name)):
            self._names[skewed.term] = name
            if skewed.term in self.plan.tile:  # where the sums begin and end
                self.trial.take(Unroll(term))

    # Sums -------------------------------------------------------------------------------------------

    def _partial(self, private: Private) -> None:
        """Compute a reduction in partial results."""
        partial = self.trial.fresh(f"{private.sums}_partial")
        loop = self._name(private.term)
        if not in_partial_sums(self.trial, loop, private.terms, partial, private.lanes, private.chains):
            raise ScheduleError(self.trial.refusal)

    def _waiting(self, waiting: Waiting) -> None:
        """Load accumulators into registers, and store them from there, a vector at a time."""
        kept = self.trial.fresh(f"{waiting.sums}_kept")
        self._take(Stage(waiting.sums, self._name(waiting.at), "register", False, kept))
        *rows, lanes = dict.fromkeys(s.var for s in loops_in(self.trial.kernel.body) if s.var.startswith(f"{kept}_"))
        self._take(*map(Unroll, rows), Vectorize(lanes))

    def _running(self, running: Running) -> None:
        """Compute a running sum in vectors; the sums of the preceding blocks are partial results."""
        step = self._name(running.step)
        if running.block:
            sums = self.trial.fresh(f"{step}_sums")
            self._take(Relay(step, running.block, self._made(f"{running.step}.o"), sums))
            self._partial(Private(f"{sums}_term", running.block, sums, running.lanes, self.machine.latency))
            self._take(Parallel(f"{sums}_sum"))
            self.trial.take(Prefix(f"{sums}_rest", running.lanes, f"{sums}_rest_prefix"))
        self._take(Prefix(step, running.lanes, self.trial.fresh(f"{step}_prefix")))

    # Copies -----------------------------------------------------------------------------------------

    def _packed(self, operand: Operand) -> None:
        """Make a copy or a panel, in rows of vectors or in blocks that are transposed in registers."""
        name, steps = self.trial.fresh(f"{operand.buffer}_{operand.ending}"), list[Step]()
        at = None if operand.at is None else self._name(operand.at)
        self._take(Pack(operand.buffer, operand.order, name, at))
        if operand.lanes:
            last = len(operand.order) - 1
            whole = all(constant_extent(s) for s in loops_in(self.trial.kernel.body) if s.var == f"{name}_{last}")
            steps = rows_in_lanes(name, last, operand.lanes, whole)
        else:
            transposed_blocks(self.trial, name, self.machine.vector_bytes, None if operand.placement == "copy" else ())
        if operand.wide:
            load = next(e for e in self.nest.outside_loads if e.buffer == operand.buffer)
            name, steps = widened(self.trial, load, name, steps)
        self._take(*steps)
        if operand.filled is not None:
            self.trial.take(Fill(name, self._name(operand.filled)))

    def _moved(self, copy: str, at: Handle) -> None:
        """Move an existing copy into a loop; threads share it if they do not share this loop."""
        self._take(ComputeAt(copy, self._name(at)))
        transposed_blocks(self.trial, copy, self.machine.vector_bytes, () if at in self.plan.threads else None)

    def _transpose_results(self) -> None:
        """Transpose the results in rows as they are copied out, unless that is done."""
        for result in self.plan.results:
            if result.at is not None and result not in self._done:
                self._transposed(result, self._name(result.at))
                self._done.append(result)

    def _transposed(self, result: Result, at: str) -> None:
        name = self.trial.fresh(f"{result.buffer}_rows")
        self._take(Pack(result.buffer, result.order, name, at))
        transposed_blocks(self.trial, name, self.machine.vector_bytes, ())
