"""Taking steps as far as they are legal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from opgen.loop.nodes import Kernel
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import loop_names
from opgen.schedule.steps import Fuse, Step


@dataclass
class Trial:
    """A kernel, and the steps taken so far."""

    kernel: Kernel
    steps: list[Step] = field(default_factory=list)

    def take(self, *steps: Step) -> bool:
        """Take all steps, or none if one of them is illegal."""
        kernel = self.kernel
        for step in steps:
            try:
                kernel = step.run(kernel)
            except ScheduleError:
                return False
        self.kernel = kernel
        self.steps += steps
        return True

    def fresh(self, name: str) -> str:
        """A loop name that is not taken."""
        taken = set(loop_names(self.kernel))
        while name in taken:
            name += "_"
        return name

    def fused_prefix(self, loops: Sequence[str], finish: Callable[[str], Step]) -> bool:
        """Fuse the longest prefix of perfectly nested loops for which `finish` (parallel, bind) is then legal, and take
        that step.
        """
        for count in range(len(loops), 0, -1):
            fused, steps = loops[count - 1], list[Step]()
            for name in reversed(loops[: count - 1]):
                both = self.fresh(f"{name}_{fused}")
                steps.append(Fuse(name, fused, both))
                fused = both
            if self.take(*steps, finish(fused)):
                return True
        return False
