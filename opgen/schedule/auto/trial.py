"""Trial of schedule steps: takes those that are legal, and lets a search decide otherwise (`decisions.py`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from opgen.loop.nodes import Kernel
from opgen.loop.walk import declares
from opgen.schedule.auto.decisions import Decisions
from opgen.schedule.auto.nests import Nest, nest_of
from opgen.schedule.errors import ScheduleError
from opgen.schedule.fallback import Check, unless_broken
from opgen.schedule.focus import focus, run
from opgen.schedule.limits import Limits, Measured
from opgen.schedule.steps import Flatten, Fuse, Step


@dataclass
class Trial:
    """A kernel, and the steps taken so far."""

    kernel: Kernel
    steps: list[Step] = field(default_factory=list)
    decisions: Decisions = field(default_factory=Decisions)
    check: Check | None = None
    """Check that runs after each part that may break."""
    refusal: str = ""
    """Reason for the most recent refusal of steps."""
    made: object = None
    """The plan that was made last."""
    choices: list[object] = field(default_factory=list)
    """Choices made on the way, if they are to be reported."""
    _measured: Measured = field(default_factory=dict)

    def take(self, *steps: Step) -> bool:
        """Take all steps, or none if one of them is illegal."""
        kernel = self.kernel
        for step in steps:
            try:
                kernel = run(step, kernel)
            except ScheduleError as refusal:
                self.refusal = f"{step}: {refusal.message}"
                return False
        self.kernel = kernel
        self.steps += steps
        return True

    def attempt(self, run: Callable[[], bool]) -> bool:
        """Keep the steps that `run` takes if it returns True, else none of them; return its result."""
        decision = self.decisions.begin()
        return decision is not None and self._kept(run, decision)

    def _kept(self, run: Callable[[], bool], decision: int) -> bool:
        kernel, steps = self.kernel, list(self.steps)
        if run():
            return True
        self.kernel, self.steps = kernel, steps
        self.decisions.fail(decision)
        return False

    def apart(self, loops: Sequence[str], run: Callable[[Trial], object]) -> bool:
        """Take the steps that `run` takes on a part of the kernel.

        The part is the statements around the given loops and those that touch the same buffers.  Return False, with no
        step taken, if little would be left out or a step concerns other statements, too.
        """
        found = focus(self.kernel, loops)
        if found is None:
            return False
        part, decided = Trial(found.kernel, decisions=self.decisions), len(self.decisions.options)
        run(part)
        kernel = found.put_back(part.kernel) if all(map(found.holds_all_of, part.steps)) else None
        if kernel is None:
            del self.decisions.options[decided:]  # they are made again
            return False
        self.choices += part.choices
        if part.steps:
            self.kernel = kernel
            self.steps += part.steps
        return True

    def unless_broken(self, part: str, run: Callable[[], object]) -> bool:
        """Keep the steps that `run` takes, or return False and keep none if it breaks.

        The resulting kernel must be within the limits of handwritten schedules: beyond them LLVM may end the process.
        """
        kernel, limits = self.kernel, Limits.of(self.kernel, self._measured)

        def checked() -> bool:
            run()
            if self.kernel is not kernel:
                limits.require(self.kernel)
                if self.check is not None:
                    self.check(self.kernel)
            return True

        return self._kept(lambda: bool(unless_broken(part, checked)), len(self.decisions.options))

    def fork(self) -> Trial:
        """Return an independent trial that continues from here."""
        return Trial(self.kernel, list(self.steps), self.decisions, choices=list(self.choices))

    def follow(self, other: Trial) -> None:
        """Continue from the state of a fork."""
        self.kernel, self.steps, self.choices = other.kernel, other.steps, other.choices

    def adopt(self, other: Trial, kept: int) -> bool:
        """Continue with the state of another trial after the first `kept` steps; return False if decided otherwise."""
        if self.decisions.begin() is None:
            return False
        self.kernel, self.steps = other.kernel, [*self.steps[:kept], *other.steps]
        return True

    def nest(self, loop: str) -> Nest:
        """Return the current loop nest that holds a loop."""
        return nest_of(self.kernel, loop)

    def fresh(self, name: str) -> str:
        """Return a name that is unused by loops and buffers."""
        while declares(self.kernel.body, name):
            name += "_"
        return name

    def joined(self, loops: Sequence[str]) -> tuple[str, ...]:
        """Join the innermost loops as far as they advance row by row; return the loops after that."""
        names = tuple(loops)
        while len(names) > 1:
            *others, outer, inner = names
            both = self.fresh(f"{outer}_{inner}")
            if not self.take(Flatten(outer, inner, both)):
                break
            names = (*others, both)
        return names

    def fused_prefix(self, loops: Sequence[str], first: Callable[[str], Step]) -> bool:
        """Take `first` (parallel, bind) for the outermost loop, and fuse the next ones into it.

        Fusion stops at the first loop that is not independent or perfectly nested.  Return False if `first` is illegal.
        """
        if not loops or not self.take(first(loops[0])):
            return False
        fused = loops[0]
        for name in loops[1:]:
            both = self.fresh(f"{fused}_{name}")
            if not self.take(Fuse(fused, name, both)):
                break
            fused = both
        return True
