"""Choice of the cheapest plan that the kinds propose for a loop nest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from opgen.locks import cached_property
from opgen.machine import Machine
from opgen.schedule.auto.design import Design
from opgen.schedule.auto.kinds.kind import Kind
from opgen.schedule.auto.nests import Nest, count_of_terms
from opgen.schedule.auto.overrides import is_before, share_to_beat
from opgen.schedule.auto.plan import Plan
from opgen.schedule.auto.price import Price, Prices
from opgen.schedule.auto.realise import realise
from opgen.schedule.auto.site import Schedule, Site, lanes_of, terms_at_once
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import CANDIDATES, ENOUGH
from opgen.schedule.steps import Step

NONE = "the nest is of another kind"
"""Refusal of a design that takes no step."""


@dataclass(frozen=True)
class Candidate:
    """A plan and the trial of its steps, or its refusal; if `beaten`, an override ranks another plan first."""

    plan: Plan | Design
    trial: Trial
    prices: Prices
    refusal: str = ""
    beaten: bool = False

    @cached_property
    def price(self) -> Price:
        """Return the estimated cost of a legal candidate."""
        return self.prices.of(self.trial.kernel)


@dataclass(frozen=True)
class Choice:
    """Candidates for a loop nest, the cheapest first.

    `chosen` is the candidate that was taken, if any, by `steps`; `number` is that of the decision.
    """

    nest: str
    number: int
    steps: tuple[Step, ...]
    chosen: Candidate | None
    ranked: tuple[Candidate, ...]
    refused: tuple[Candidate, ...]


@dataclass(frozen=True)
class Chooser:
    """Chooser for one loop nest; `schedule` schedules the loop nests that a design leaves to others."""

    nest: Nest
    trial: Trial
    machine: Machine
    schedule: Schedule
    kinds: Sequence[Kind]
    """The kinds that are tried."""
    along: str | None = None
    """The only loop that lanes may go along, if there is such a loop."""

    def run(self) -> bool:
        """Take the steps of the cheapest candidate; return False if there is none."""
        decisions, loops = self.trial.decisions, ", ".join(self.nest.names)
        candidates = [c for c in self._candidates(decisions.thorough) if c.refusal != NONE]
        refused = tuple(c for c in candidates if c.refusal)
        legal = [c for c in candidates if not c.refusal]
        if not legal:
            self._tell(Choice(loops, 0, (), None, (), refused))
            return False
        ranked = sorted(legal, key=_rank) if len(legal) > 1 else legal
        number = len(decisions.options)
        chosen = decisions.choose(ranked[:CANDIDATES])
        steps = tuple(chosen.trial.steps[len(self.trial.steps) :])
        self.trial.follow(chosen.trial)
        self._tell(Choice(loops, number, steps, chosen, tuple(ranked), refused))
        return True

    def _tell(self, choice: Choice) -> None:
        if self.trial.decisions.thorough:
            self.trial.choices.append(choice)

    def _candidates(self, everything: bool) -> Iterator[Candidate]:
        """Yield the candidates, those of the most special kinds first.

        Unless `everything` is set, three groups are skipped: plans that an override supersedes, plans after one that is
        good enough, and late plans (`otherwise`) if there are others.
        """
        standing: list[Candidate] = []

        def is_beaten(kind: str) -> bool:
            return self._is_enough(standing) or any(is_before(c.plan.kind, kind) for c in standing)

        for otherwise in (False, True) if self.along is None else (False,):

            def wanted(late: bool, all_are: bool = everything or otherwise) -> bool:
                return all_are or not (late or self._is_enough(standing))

            site = Site(self.nest, self.trial, self.schedule, self.along, wanted)
            for kind in self.kinds:
                if not everything and (standing if otherwise else is_beaten(kind.name)):
                    continue
                for plan in kind.plans(site, self.machine):
                    beaten = bool(standing) if otherwise else is_beaten(kind.name)
                    if beaten and not everything:
                        break
                    if plan.otherwise == otherwise:
                        made = self._made(plan, beaten)
                        made = replace(made, beaten=beaten or _falls_short(made, standing))
                        standing.extend([] if made.refusal or made.beaten else [made])
                        yield made

    def _is_enough(self, standing: Sequence[Candidate]) -> bool:
        """Return True if a candidate takes little longer than the arithmetic alone, so that no other need be tried."""
        return any(c.price.seconds <= ENOUGH * self._arithmetic for c in standing)

    @cached_property
    def _arithmetic(self) -> float:
        """Return the seconds that all terms take, in full vectors."""
        terms = count_of_terms(self.nest) / terms_at_once(self.nest, self.machine)
        return terms / lanes_of(self.nest, self.machine, None) / self.machine.fma_per_second

    @cached_property
    def _prices(self) -> Prices:
        return Prices(self.trial.kernel, self.nest, self.machine)

    def _made(self, plan: Plan | Design, beaten: bool) -> Candidate:
        """Return the candidate that a plan yields; a refused plan leaves no decisions open."""
        decided = len(self.trial.decisions.options)
        if isinstance(plan, Design):
            trial = plan.trial
            taken = plan.take()
        else:
            trial = self.trial.fork()
            taken = realise(plan, self.nest, trial, self.machine)
        if not taken:
            self.trial.decisions.fail(decided)
        return Candidate(plan, trial, self._prices, "" if taken else trial.refusal or NONE, beaten)


def _falls_short(made: Candidate, standing: Sequence[Candidate]) -> bool:
    """Return True if an override puts another candidate before this one, which does not cost so much less."""
    shares = [(share_to_beat(c.plan.kind, made.plan.kind), c) for c in standing if not made.refusal]
    return any(share and made.price.seconds >= share * c.price.seconds for share, c in shares)


def _rank(candidate: Candidate) -> tuple[bool, bool, float]:
    """Return the sort key: the cheapest first, then the beaten ones, then the late ones in their order."""
    late = candidate.plan.otherwise
    return late, candidate.beaten, 0.0 if late else candidate.price.seconds
