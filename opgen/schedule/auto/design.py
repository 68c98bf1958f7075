"""A plan that is told by the code that takes its steps, where `plan.py` has no words yet for all that they do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from opgen.schedule.auto.trial import Trial


@dataclass(frozen=True)
class Design:
    """`take` takes the steps in `trial`, a fork of the site's that is the design's own, and says whether they were
    legal; it is asked once, if at all.  A design for want of others (`otherwise`), such as one of sizes for which
    others are known to be faster, is tried only if there are none.
    """

    kind: str
    trial: Trial
    take: Callable[[], bool]
    about: str = ""
    otherwise: bool = False

    def __str__(self) -> str:
        return self.about
