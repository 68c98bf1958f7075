"""Default schedules, chosen by a kernel's structure alone: a floor, not a peak.

CPU.  The loop along which results are contiguous gets lanes.  If the loop nest reduces and a contiguous read can be
reused, a tile of accumulators is kept in registers across the reduction.  Outer independent loops run in parallel.

CUDA.  The contiguous loop is spread over threads, the others over blocks.

Anything not recognised stays serial within the loops that are independent.
"""

from __future__ import annotations

from collections.abc import Callable

from opgen.diagnostics import InternalError
from opgen.loop.analysis.bounds import kept_proofs
from opgen.loop.nodes import For, Kernel, Store
from opgen.loop.walk import holds_loop, loops_in
from opgen.machine import Machine, typical
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.chain.chain import has_intermediates, is_chain, is_short, schedule_chain
from opgen.schedule.auto.chain.rows import RowChain
from opgen.schedule.auto.copies.pitches import pitched
from opgen.schedule.auto.cpu import CpuNest
from opgen.schedule.auto.cuda import CudaNest
from opgen.schedule.auto.decisions import Decisions
from opgen.schedule.auto.neighbours import neighbours_last
from opgen.schedule.auto.nests import (
    Nest,
    conditional_loops,
    count_of_terms,
    in_steps,
    is_around_steps,
    loops_at,
    nests,
    recurrences,
)
from opgen.schedule.auto.rings import ringed
from opgen.schedule.auto.separated import separated
from opgen.schedule.auto.several import nests_apart
from opgen.schedule.auto.single import single_terms
from opgen.schedule.auto.sources import Sources
from opgen.schedule.auto.tabulated import tabulated
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import STEP_SHARED
from opgen.schedule.declaration import Target
from opgen.schedule.fallback import Check
from opgen.schedule.schedule import Schedule
from opgen.schedule.steps import Fuse, Pack, Pair, Parallel


def default_schedule(kernel: Kernel, kind: Target = "cpu", machine: Machine | None = None) -> Schedule:
    """Return a legal schedule for a (preferably simplified) kernel on a machine, by default a typical CPU."""
    return scheduled(kernel, kind, machine)[0]


def scheduled(
    kernel: Kernel,
    kind: Target = "cpu",
    machine: Machine | None = None,
    decisions: Decisions | None = None,
    check: Check | None = None,
) -> tuple[Schedule, Kernel]:
    """Return the default schedule, and the kernel after it (so that it need not be applied again).

    With `decisions`, return the schedule to which their path leads, and record the other possible decisions there.  A
    loop nest for which the scheduler breaks, or after which `check` raises, stays as lowered (`fallback.py`).
    """
    with kept_proofs():
        trial = Trial(kernel, decisions=decisions or Decisions(), check=check)
        found = _scheduled(kernel, kind, machine, trial)
        trial.decisions.told = tuple(trial.choices)
        return found


def _scheduled(kernel: Kernel, kind: Target, machine: Machine | None, trial: Trial) -> tuple[Schedule, Kernel]:
    match kind:
        case "cpu":
            _for_cpu(trial, machine or typical())
        case "cuda":
            _for_cuda(trial)
        case _:
            raise InternalError(f"there is no kind of target '{kind}'")
    return Schedule(tuple(trial.steps)), trial.kernel


def _for_cuda(trial: Trial) -> None:
    """Schedule each loop nest by itself.

    Recurrences come one after the other, each row on one thread, unless their steps sum.
    """
    bound: list[For] = []
    for s in loops_in(trial.kernel.body):
        if not is_around_steps(s) or any(holds_loop(o, s.var) for o in bound):
            continue
        rows = loops_at(trial.kernel, s)
        steps = any(loop.kind == "ordered" for loop in rows.loops)
        summed = any(n.inner_loops for n in nests(trial.kernel) if holds_loop(s, n.names[0]))
        if not (steps and summed) and trial.attempt(CudaNest(rows, trial).run):
            bound.append(s)
    told = conditional_loops(trial.kernel)  # conditions on device memory, which the host does not read for a launch
    for nest in nests(trial.kernel):
        if nest.names[0] not in told and not any(holds_loop(s, nest.names[0]) for s in bound):
            trial.unless_broken(_named(nest), CudaNest(nest, trial).run)


def _for_cpu(trial: Trial, machine: Machine) -> None:
    def alone(nest: Nest) -> None:
        if not trial.unless_broken(_named(nest), lambda: _by_itself(nest, trial, machine)):
            trial.unless_broken(f"{_named(nest)}, in parallel", lambda: trial.take(Parallel(nest.names[0])))

    trial.unless_broken("loops over several nests", lambda: nests_apart(trial))
    trial.unless_broken("sums of one term", lambda: single_terms(trial))
    trial.unless_broken("tables", lambda: tabulated(trial, machine))
    trial.unless_broken("sums of products", lambda: separated(trial))
    trial.unless_broken("terms side by side", lambda: neighbours_last(trial))
    if not trial.unless_broken("nests that feed each other", lambda: _together(trial, machine, alone)):
        for nest in nests(trial.kernel):
            alone(nest)
    trial.unless_broken("rows of recurrences", lambda: ringed(trial, machine))


def _by_itself(nest: Nest, trial: Trial, machine: Machine) -> None:
    """Schedule a loop nest, on one thread if it is a small part of a step that runs again and again."""
    kernel, start = trial.kernel, len(trial.steps)
    _scheduled_alone(nest, trial, machine)
    alone = any(holds_loop(s, nest.names[0]) for s in _apart(kernel, machine))
    if in_steps(kernel, nest.names[0]) and (alone or count_of_terms(nest) < STEP_SHARED):
        serial = Trial(kernel)
        if serial.take(*(s for s in trial.steps[start:] if not isinstance(s, Parallel | Fuse))):
            trial.adopt(serial, start)


def _apart(kernel: Kernel, machine: Machine) -> list[For]:
    """Return the outermost loops over independent recurrences that give each thread at least one of them."""
    outer = [n.loops[0] for n in recurrences(kernel) if n.loops[0].kind == "serial"]
    return [s for s in outer if machine.cores <= (constant_extent(s) or machine.cores)]


def _scheduled_alone(nest: Nest, trial: Trial, machine: Machine) -> None:
    """Schedule a loop nest; in a long kernel, on a copy without the others, or each step would visit them all."""
    if is_short(trial.kernel) or not trial.apart(nest.names, lambda part: CpuNest(nest, part, machine).run()):
        CpuNest(nest, trial, machine).run()


def _named(nest: Nest) -> str:
    return f"the nest over {', '.join(nest.names)}"


def _together(trial: Trial, machine: Machine, alone: Callable[[Nest], None]) -> None:
    """Schedule all loop nests, those that feed each other together; `alone` schedules one by itself."""
    kernel = trial.kernel
    stepwise = any(s.kind == "ordered" for s in loops_in(kernel.body))
    linked = has_intermediates(kernel) and is_short(kernel) and not stepwise
    rows = RowChain.of(Sources(kernel), machine) if linked else None
    if rows is not None and trial.attempt(lambda: rows.run(trial, alone)):
        return
    if linked and is_chain(kernel, machine):
        schedule_chain(trial, machine, alone)
    else:
        _each(trial, machine, alone)
    if not stepwise and (has_intermediates(kernel) or _results_are_copied(trial) or _in_words(trial)):
        pitched(trial, machine)


def _each(trial: Trial, machine: Machine, alone: Callable[[Nest], None]) -> None:
    """Schedule all loop nests by themselves.

    Recurrences of a single statement are scheduled as a whole; loops around other recurrences come last.
    """
    found, all_nests = recurrences(trial.kernel), nests(trial.kernel)
    simple = [n for n in found if isinstance(n.core, Store) and CpuNest(n, trial, machine).run_steps()]
    done = {name for n in simple for name in n.names}
    for nest in all_nests:
        if done.isdisjoint(nest.names):
            alone(nest)
    others = {n.names[0] for n in found if not isinstance(n.core, Store)}
    for nest in recurrences(trial.kernel):  # as they are now
        if nest.names[0] in others:
            CpuNest(nest, trial, machine).run_steps()


def _in_words(trial: Trial) -> bool:
    """Return True if factors are packed for dot products: a tile then reads a few words in each of many rows."""
    return any(isinstance(s, Pair) for s in trial.steps)


def _results_are_copied(trial: Trial) -> bool:
    """Return True if a result is kept as a whole in another layout."""
    outputs = {o.name for o in trial.kernel.outputs}
    return any(isinstance(s, Pack) and s.at is None and s.buffer in outputs for s in trial.steps)
