"""A plan expressed as code that takes its steps, where `plan.py` cannot yet express all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from opgen.schedule.auto.trial import Trial


@dataclass(frozen=True)
class Design:
    """Steps of a schedule as code.

    `take` takes the steps in `trial`, the design's own fork of the scheduling context's trial.  It returns True if they
    were legal, and is called at most once.  A late design (`otherwise`) is tried only if no other plan is legal.  An
    example is a design for sizes at which other plans are known to be faster.
    """

    kind: str
    trial: Trial
    take: Callable[[], bool]
    about: str = ""
    otherwise: bool = False

    def __str__(self) -> str:
        return self.about
