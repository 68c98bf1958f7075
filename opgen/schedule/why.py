"""Explanations of a kernel's schedule: all candidates of each loop nest, with their estimated costs."""

from __future__ import annotations

from collections.abc import Iterator

from opgen.loop.nodes import Kernel
from opgen.machine import Machine
from opgen.schedule.auto.choose import Candidate, Choice
from opgen.schedule.auto.decisions import Decisions
from opgen.schedule.cost.calibration import CANDIDATES
from opgen.schedule.default import scheduled


def choices(kernel: Kernel, machine: Machine) -> tuple[Choice, ...]:
    """Return the scheduler's candidates for each loop nest, in the order in which it visits them."""
    return _chosen(kernel, machine)[0]


def _chosen(kernel: Kernel, machine: Machine) -> tuple[tuple[Choice, ...], tuple[str, ...]]:
    """Return the choices, and the steps outside all of them: those of chains, which join loop nests."""
    decisions = Decisions(thorough=True)
    schedule, _ = scheduled(kernel, "cpu", machine, decisions)
    steps = [str(s) for s in schedule.steps]
    found = [c for c in decisions.told if isinstance(c, Choice)]
    last = {c.nest: c for c in found if {str(s) for s in c.steps} <= set(steps)}  # leaves out failed attempts
    shown = tuple(c for c in found if last.get(c.nest) is c)
    chosen = {str(s) for c in shown for s in c.steps}
    return shown, tuple(s for s in steps if s not in chosen)


def why(kernel: Kernel, machine: Machine) -> str:
    """Return the explanation as text: the first ten candidates of each loop nest, then the steps beyond them."""
    shown, others = _chosen(kernel, machine)
    beyond = ["\n".join(["besides these:", *(f"  {s}" for s in others)]) + "\n"] if others else []
    return "\n".join(["\n".join(_lines(choice)) + "\n" for choice in shown] + beyond)


def _lines(choice: Choice) -> Iterator[str]:
    count = len(choice.ranked) + len(choice.refused)
    yield f"nest over {choice.nest}: {count or 'no'} candidate{'' if count == 1 else 's'}"
    for number, candidate in enumerate(choice.ranked[:CANDIDATES], 1):
        yield f"  {number:2} {_priced(candidate)}{'  <- chosen' if candidate is choice.chosen else ''}"
    if len(choice.ranked) > CANDIDATES:
        yield f"     and {len(choice.ranked) - CANDIDATES} more"
    for candidate in choice.refused:
        yield f"   - {candidate.plan.kind}: {candidate.plan}"
        yield f"     refused: {candidate.refusal}"


def _priced(candidate: Candidate) -> str:
    made = "" if candidate.trial.made in (None, candidate.plan) else f" | {candidate.trial.made}"
    return f"{candidate.plan.kind}: {candidate.price}  {candidate.plan}{made}".rstrip()
