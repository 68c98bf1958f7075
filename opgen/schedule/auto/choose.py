"""The choice of a plan for a nest: of all that the kinds propose, the cheapest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from opgen.machine import Machine
from opgen.schedule.auto.design import Design
from opgen.schedule.auto.kinds.kind import Kind
from opgen.schedule.auto.nests import Nest, count_of_terms
from opgen.schedule.auto.overrides import is_before
from opgen.schedule.auto.plan import Plan
from opgen.schedule.auto.price import Price, Prices
from opgen.schedule.auto.realise import realise
from opgen.schedule.auto.site import Schedule, Site, lanes_of, terms_at_once
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import CANDIDATES, ENOUGH
from opgen.schedule.errors import ScheduleError
from opgen.schedule.steps import Step

NONE = "the nest is of another kind"
"""Why a design is refused that takes no step."""


@dataclass(frozen=True)
class Candidate:
    """A plan, and what a trial of its steps came to; its price, if anybody asked for it; or why it is refused.  `told`:
    what was chosen on the way, for the copies that it makes; `beaten`: an override puts another one before it.
    """

    plan: Plan | Design
    trial: Trial
    price: Price | None = None
    refusal: str = ""
    told: tuple[object, ...] = ()
    beaten: bool = False


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
    """Chooses for one nest; `schedule` is for the nests that a design leaves to others."""

    nest: Nest
    trial: Trial
    machine: Machine
    schedule: Schedule
    kinds: Sequence[Kind]
    """Those that are asked."""
    along: str | None = None
    """The only loop that lanes may go along, if there is such a one."""
    _prices: dict[int, Price] = field(default_factory=dict)

    def run(self) -> bool:
        """Take the steps of the cheapest candidate; whether there was one."""
        decisions, loops = self.trial.decisions, ", ".join(self.nest.names)
        candidates = [c for c in self._candidates(decisions.thorough) if c.refusal != NONE]
        refused = tuple(c for c in candidates if c.refusal)
        legal = [c for c in candidates if not c.refusal]
        if not legal:
            decisions.tell(Choice(loops, 0, (), None, (), refused))
            return False
        ranked = self._ranked(legal) if len(legal) > 1 or decisions.thorough else legal
        number = len(decisions.options)
        chosen = decisions.choose(ranked[:CANDIDATES], f"the plan of {loops}")
        for choice in chosen.told:
            decisions.tell(choice)
        steps = tuple(chosen.trial.steps[len(self.trial.steps) :])
        decisions.tell(Choice(loops, number, steps, chosen, tuple(ranked), refused))
        self.trial.follow(chosen.trial)
        return True

    def _candidates(self, everything: bool) -> Iterator[Candidate]:
        """What plans come to, those of the most special kinds first.  Left out, unless everything is asked for, are
        those before which an override puts others, those after one that is good enough, and those that are there for
        want of others where there are some.
        """
        standing: list[Candidate] = []

        def wanted(late: bool) -> bool:
            return everything or not (late or self._is_enough(standing))

        for kind, plan in self._plans(self._site(wanted), lambda name: everything or not _is_beaten(name, standing)):
            if not plan.otherwise:
                beaten = _is_beaten(kind, standing) or self._is_enough(standing)
                if everything or not beaten:
                    made = replace(self._made(plan), beaten=beaten)
                    standing.extend([] if made.refusal or beaten else [made])
                    yield made
        if self.along is None and (everything or not standing):
            for _, plan in self._plans(self._site(lambda late: True), lambda name: everything or not standing):
                if plan.otherwise:
                    made = self._made(plan)
                    standing.extend([] if made.refusal else [made])
                    yield made

    def _site(self, wanted: Callable[[bool], bool]) -> Site:
        return Site(self.nest, self.trial, self.schedule, self.along, wanted)

    def _plans(self, site: Site, asked: Callable[[str], bool]) -> Iterator[tuple[str, Plan | Design]]:
        """The plans of the kinds, as long as each is asked."""
        for kind in self.kinds:
            if asked(kind.name):
                for plan in kind.plans(site, self.machine):
                    yield kind.name, plan
                    if not asked(kind.name):
                        break

    def _is_enough(self, standing: Sequence[Candidate]) -> bool:
        """Whether a candidate takes little longer than the arithmetic alone, so that no other need be asked for."""
        return any(self._price(c).seconds <= ENOUGH * self._arithmetic for c in standing)

    @cached_property
    def _arithmetic(self) -> float:
        """The seconds that all terms take, in full vectors."""
        terms = count_of_terms(self.nest) / terms_at_once(self.nest, self.machine)
        return terms / lanes_of(self.nest, self.machine, None) / self.machine.fma_per_second

    def _price(self, candidate: Candidate) -> Price:
        """Of a legal candidate, found once."""
        key = id(candidate.trial)
        if key not in self._prices:
            self._prices[key] = self._pricing.of(candidate.trial.kernel)
        return self._prices[key]

    @cached_property
    def _pricing(self) -> Prices:
        return Prices(self.trial.kernel, self.nest, self.machine)

    def _made(self, plan: Plan | Design) -> Candidate:
        """What becomes of a plan; nothing is told of it yet, nor is there to decide in the course of it if it is
        refused.
        """
        decisions = self.trial.decisions
        told, decided = len(decisions.told), len(decisions.options)
        trial = plan.trial if isinstance(plan, Design) else self.trial.fork()
        refusal = _taken(plan, self.nest, trial, self.machine)
        if refusal:
            decisions.fail(decided)
        found = decisions.told[told:]
        decisions.forget(told)
        return Candidate(plan, trial, refusal=refusal, told=found)

    def _ranked(self, legal: Sequence[Candidate]) -> list[Candidate]:
        """The cheapest first, those before which others were put after all others; what is there for want of others in
        its order.
        """
        priced = [replace(c, price=self._price(c)) for c in legal]
        return sorted(priced, key=lambda c: (c.plan.otherwise, c.beaten, 0 if c.plan.otherwise else _seconds(c)))


def _taken(plan: Plan | Design, nest: Nest, trial: Trial, machine: Machine) -> str:
    """Take the steps of a plan; why they are refused, if they are."""
    if isinstance(plan, Design):
        return "" if plan.take() else trial.refusal or NONE
    try:
        realise(plan, nest, trial, machine)
    except ScheduleError as refusal:
        return refusal.message
    return ""


def _is_beaten(kind: str, standing: Sequence[Candidate]) -> bool:
    return any(is_before(c.plan.kind, kind) for c in standing)


def _seconds(candidate: Candidate) -> float:
    return 0.0 if candidate.price is None else candidate.price.seconds
