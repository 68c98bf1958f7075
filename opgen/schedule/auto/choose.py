"""The choice of a plan for a nest: of all that the kinds propose, and what the cascade comes to, the cheapest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from opgen.machine import Machine
from opgen.schedule.auto.kinds import registry
from opgen.schedule.auto.kinds.kind import Kind
from opgen.schedule.auto.nests import Nest, nest_of
from opgen.schedule.auto.overrides import preferred
from opgen.schedule.auto.plan import Plan
from opgen.schedule.auto.price import Price, Prices
from opgen.schedule.auto.realise import realise
from opgen.schedule.auto.site import Site
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import CANDIDATES
from opgen.schedule.errors import ScheduleError
from opgen.schedule.steps import Step

CASCADE = "cascade"
"""The kind of what is not planned yet (`cpu.py`)."""


@dataclass(frozen=True)
class Candidate:
    """A plan, and what a trial of its steps came to; its price, if anybody asked for it; or why it is refused."""

    plan: Plan
    trial: Trial
    price: Price | None = None
    refusal: str = ""


@dataclass(frozen=True)
class Choice:
    """What there was to choose from for a nest, the cheapest first; `chosen` was taken, by some `steps`, if any was, as
    the decision of that number.
    """

    nest: str
    number: int
    steps: tuple[Step, ...]
    chosen: Candidate | None
    ranked: tuple[Candidate, ...]
    refused: tuple[Candidate, ...]


@dataclass(frozen=True)
class Chooser:
    """Chooses for one nest.  `cascade` schedules it as kinds do not yet, and says whether it did."""

    nest: Nest
    trial: Trial
    machine: Machine
    cascade: Callable[[Trial], bool]
    kinds: Sequence[Kind] | None = None
    """Those that are asked; None: all that are registered."""

    def run(self) -> bool:
        """Take the steps of the cheapest candidate; whether there was one."""
        decisions, loops = self.trial.decisions, ", ".join(self.nest.names)
        told = len(decisions.told)
        candidates = list(self._candidates(decisions.thorough))
        refused = tuple(c for c in candidates if c.refusal)
        legal = [c for c in candidates if not c.refusal]
        if not legal:
            decisions.tell(Choice(loops, 0, (), None, (), refused))
            return False
        ranked = self._ranked(legal) if len(legal) > 1 or decisions.thorough else legal
        number = len(decisions.options)
        chosen = decisions.choose(ranked[:CANDIDATES], f"the plan of {loops}")
        if chosen.plan.kind != CASCADE:
            decisions.forget(told)  # what the cascade chose for copies that it made
        steps = tuple(chosen.trial.steps[len(self.trial.steps) :])
        decisions.tell(Choice(loops, number, steps, chosen, tuple(ranked), refused))
        self.trial.follow(chosen.trial)
        return True

    def _candidates(self, everything: bool) -> Iterator[Candidate]:
        """What the cascade comes to, and each plan; those that are there for want of others only then, or if
        everything is asked for.
        """
        found = False
        tried = self.trial.fork()
        if self.cascade(tried):
            found = True
            yield Candidate(Plan(CASCADE), tried)
        nest = nest_of(self.trial.kernel, *self.nest.names)  # as it is now: what it reads may have been packed since
        site = Site.of(nest, self.trial)
        kinds = registry.KINDS if self.kinds is None else self.kinds
        plans = [p for kind in kinds for p in kind.plans(site, self.machine)]
        for plan in sorted(plans, key=lambda p: p.otherwise):
            if plan.otherwise and found and not everything:
                return
            made = self._realised(plan, nest)
            found = found or not made.refusal
            yield made

    def _realised(self, plan: Plan, nest: Nest) -> Candidate:
        tried = self.trial.fork()
        try:
            realise(plan, nest, tried, self.machine)
        except ScheduleError as refusal:
            return Candidate(plan, tried, refusal=refusal.message)
        return Candidate(plan, tried)

    def _ranked(self, legal: Sequence[Candidate]) -> list[Candidate]:
        """The cheapest first, what stands in an override before it; what is there for want of others in its order."""
        prices = Prices(self.trial.kernel, self.nest, self.machine)
        priced = [replace(c, price=prices.of(c.trial.kernel)) for c in legal]
        ranked = sorted(priced, key=lambda c: (c.plan.otherwise, 0 if c.plan.otherwise else _seconds(c)))
        first = preferred([c.plan.kind for c in ranked if not c.plan.otherwise])
        return [ranked[first], *ranked[:first], *ranked[first + 1 :]]


def _seconds(candidate: Candidate) -> float:
    return 0.0 if candidate.price is None else candidate.price.seconds
