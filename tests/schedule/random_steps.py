"""Random steps of any primitive, drawn from its declaration."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from opgen.loop import build as b
from opgen.schedule.declaration import Field, form_of
from opgen.schedule.steps import PRIMITIVES, Step
from opgen.schedule.values import Buffered, Condition, Loop, Made, Number, OneOf


@dataclass
class Drawn:
    """What the fields of random steps are drawn from."""

    rng: random.Random
    loops: Sequence[str]
    buffers: Sequence[str]
    parameters: Sequence[str]
    made: Callable[[], str]
    """Return a name for what a step makes."""
    number: Callable[[], int]

    def step(self, *, without: Sequence[str] = ()) -> Step:
        """Return a step, most likely an illegal one."""
        make: Callable[..., Step] = PRIMITIVES[self.rng.choice(sorted(set(PRIMITIVES) - set(without)))]
        return make(**{f.name: self._field(f) for f in form_of(PRIMITIVES[make.command]).fields})

    def _field(self, f: Field) -> object:
        if f.many:
            least = 0 if isinstance(f.value, Made) else 2 if isinstance(f.value, Loop) else 1
            return tuple(self._value(f) for _ in range(self.rng.randint(least, 3)))
        return None if f.optional and self.rng.random() < 0.5 else self._value(f)

    def _value(self, f: Field) -> object:
        match f.value:
            case Loop():
                return self.rng.choice(self.loops)
            case Buffered():
                return self.rng.choice(self.buffers)
            case Made():
                return self.made()
            case Number():
                return self.number()
            case OneOf(choices=choices):
                return self.rng.choice(choices)
            case Condition():
                return b.compare("gt", b.var(self.rng.choice(self.parameters)), self.number())
            case _:
                return self.rng.random() < 0.5
